//! Reading request bodies with a pointer to whatever is wrong. The common case is one pass; only a refusal is looked at twice.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};
use thiserror::Error;

use crate::ProblemCode;
use crate::strict::object;

/// Why a body was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct InvalidBody {
    /// The code to answer with: `validation_failed`, or `payload_too_large` for one payload of the body.
    pub code: ProblemCode,
    /// Where: a JSON Pointer (RFC 6901); empty for the whole body.
    pub pointer: String,
    /// What is wrong, for people.
    pub detail: String,
}

impl InvalidBody {
    /// Bytes of a pointer; a longer one is cut to the pointer of an ancestor.
    pub const MAX_POINTER: usize = 1024;
    /// Characters of a detail; a longer one is cut.
    pub const MAX_DETAIL: usize = 300;

    /// A refusal with `validation_failed`. Both texts are cut, since they repeat what somebody sent.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let (pointer, detail) = (ancestor(pointer.into()), cut(detail.into()));
        Self { code: ProblemCode::ValidationFailed, pointer, detail }
    }
}

impl InvalidBody {
    /// The same of a part that lies at `place` in the whole.
    pub(crate) fn under(self, place: &str) -> Self {
        Self { pointer: ancestor(format!("{place}{}", self.pointer)), ..self }
    }
}

fn ancestor(mut pointer: String) -> String {
    if pointer.len() > InvalidBody::MAX_POINTER {
        pointer.truncate(pointer.floor_char_boundary(InvalidBody::MAX_POINTER));
        pointer.truncate(pointer.rfind('/').unwrap_or_default());
    }
    pointer
}

fn cut(mut detail: String) -> String {
    if let Some((end, _)) = detail.char_indices().nth(InvalidBody::MAX_DETAIL) {
        detail.truncate(end);
        detail.push('…');
    }
    detail
}

/// Reads a request body: one JSON object, UTF-8, no unknown or repeated members (as far as `T` denies them), nothing after it.
///
/// # Errors
/// What is wrong first, and where.
pub fn parse_body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, InvalidBody> {
    parse_text(utf8(bytes)?)
}

pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, InvalidBody> {
    std::str::from_utf8(bytes).map_err(|error| InvalidBody::new("", format!("not UTF-8 at byte {}", error.valid_up_to())))
}

/// [`parse_body`] of a text.
pub(crate) fn parse_text<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, InvalidBody> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match object(&mut deserializer).and_then(|value| deserializer.end().map(|()| value)) {
        Ok(value) => Ok(value),
        Err(_) => diagnose(text),
    }
}

/// Reads again with a record of the path, to say where it fails.
pub(crate) fn diagnose<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, InvalidBody> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        return Err(InvalidBody::new("", format!("not JSON: {error}")));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut track = serde_path_to_error::Track::new();
    object(serde_path_to_error::Deserializer::new(&mut deserializer, &mut track)).map_err(|error| {
        let detail = without_position(&error.to_string());
        let mut pointer = json_pointer(&track.path());
        if let Some(member) = member_named_by(&detail) {
            push_segment(&mut pointer, member);
        }
        InvalidBody::new(pointer, detail)
    })
}

/// The text of an error without where it was in the text: the pointer says it better.
fn without_position(message: &str) -> String {
    message.rfind(" at line ").and_then(|at| message.get(..at)).unwrap_or(message).to_owned()
}

/// The member that an error is about but does not lie in: one that is missing, or there twice.
fn member_named_by(detail: &str) -> Option<&str> {
    let openings = ["missing field `", "duplicate field `", "duplicate member `"];
    openings.iter().find_map(|opening| detail.strip_prefix(opening))?.strip_suffix('`')
}

fn json_pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => push_segment(&mut pointer, &index.to_string()),
            Segment::Map { key } => push_segment(&mut pointer, key),
            Segment::Enum { variant } => push_segment(&mut pointer, variant),
            Segment::Unknown => {}
        }
    }
    pointer
}

/// Appends `/name` to a JSON Pointer, escaped.
pub(crate) fn push_segment(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}
