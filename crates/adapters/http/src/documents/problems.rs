//! The refusals of each operation: those that every operation of its kind has, and its own, from one list of codes.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{PROBLEM_MEDIA_TYPE, Problem, ProblemCode, Vocabulary};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Header, ObjectBuilder, Ref, RefOr, Response, ResponseBuilder, Type};

/// The extension with the codes of an operation's own refusals. In the finished document it lists all of them.
pub(super) const PROBLEM_CODES: &str = "x-problem-codes";

/// What every operation can answer: an unknown parameter, a credential in the address, a fault of ours.
const EVERY: [ProblemCode; 2] = [ProblemCode::ValidationFailed, ProblemCode::Internal];
/// What every operation with a caller can answer: its credential is read from the store.
const WITH_CALLER: [ProblemCode; 4] =
    [ProblemCode::Unauthenticated, ProblemCode::Forbidden, ProblemCode::Overloaded, ProblemCode::Unavailable];
/// What every operation with a body can answer.
const WITH_BODY: [ProblemCode; 3] = [ProblemCode::PayloadTooLarge, ProblemCode::UnsupportedMediaType, ProblemCode::RequestTimeout];
/// What every operation that writes can answer.
pub(crate) const WRITING: [ProblemCode; 2] = [ProblemCode::StorageFull, ProblemCode::InDoubt];

/// Refusals by the name under which operations refer to them: many operations share the same few.
pub(super) type Refusals = BTreeMap<String, RefOr<Response>>;

/// Writes the refusals of `operation` into its responses, and what they refer to into `refusals`.
pub(super) fn document(operation: &mut Operation, public: bool, refusals: &mut Refusals) {
    let codes = codes_of(operation, public);
    let mut by_status = BTreeMap::<u16, Vec<ProblemCode>>::new();
    for code in &codes {
        by_status.entry(code.status()).or_default().push(*code);
    }
    for (status, codes) in by_status {
        let name = name(&codes);
        operation.responses.responses.insert(status.to_string(), Ref::from_response_name(&name).into());
        refusals.entry(name).or_insert_with(|| response(status, &codes).into());
    }
    let words = codes.iter().map(|code| Value::from(code.as_str())).collect();
    operation.extensions.get_or_insert_default().insert(PROBLEM_CODES.to_owned(), words);
}

fn codes_of(operation: &Operation, public: bool) -> Vec<ProblemCode> {
    let own = operation.extensions.as_ref().and_then(|extensions| extensions.get(PROBLEM_CODES));
    let own = own.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).filter_map(ProblemCode::from_word);
    let mut words: BTreeSet<&str> = own.map(ProblemCode::as_str).collect();
    let of_caller: &[ProblemCode] = if public { &[] } else { &WITH_CALLER };
    let of_body: &[ProblemCode] = if operation.request_body.is_some() { &WITH_BODY } else { &[] };
    words.extend(EVERY.iter().chain(of_caller).chain(of_body).map(|code| code.as_str()));
    ProblemCode::ALL.iter().copied().filter(|code| words.contains(code.as_str())).collect()
}

/// `ValidationFailedOrRecipientUnknown`.
fn name(codes: &[ProblemCode]) -> String {
    let word = |code: &ProblemCode| code.as_str().split('_').map(super::capitalised).collect::<String>();
    codes.iter().map(word).collect::<Vec<_>>().join("Or")
}

fn response(status: u16, codes: &[ProblemCode]) -> Response {
    let description = codes.iter().map(|code| format!("`{code}`: {}", code.describe())).collect::<Vec<_>>().join("\n\n");
    let examples = codes.iter().map(|code| (code.as_str(), ExampleBuilder::new().value(Some(example(*code))).build()));
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).examples_from_iter(examples).build();
    let response = ResponseBuilder::new().description(description).content(PROBLEM_MEDIA_TYPE, content);
    match status {
        401 => response.header("WWW-Authenticate", header("How to authenticate: `Bearer`.", Type::String)),
        429 | 503 => response.header("Retry-After", header("After how many seconds to come back.", Type::Integer)),
        _ => response,
    }
    .build()
}

fn header(description: &str, kind: Type) -> Header {
    HeaderBuilder::new().description(Some(description)).schema(Some(ObjectBuilder::new().schema_type(kind))).build()
}

fn example(code: ProblemCode) -> Value {
    let problem = Problem::new(code, code.describe(), "0197f0ab8d34-2a");
    serde_json::to_value(problem).unwrap_or_else(|_| json!({}))
}
