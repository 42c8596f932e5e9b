//! What the OpenAPI document says beside the operations themselves.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ComponentsBuilder, Info, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};
use utoipa::{PartialSchema, ToSchema};

use super::problems::{self, Refusals};

/// The extension that names the action that an operation asks `authorize` about. Operations without it are public.
pub(super) const ACTION: &str = "x-action";

const BEARER: &str = "bearer";

const DESCRIPTION: &str = "\
Doorstep holds work for agents that are not always home, and rings when it arrives. Events are published into one log per tenant; agents \
read it as named consumers with a durable cursor, people and apps with a cursor of their own. An event with recipients leaves an item in the \
inbox of each: agents claim items, work under a lease, and acknowledge.\n\n\
Send `Authorization: Bearer <token>`; a credential in an address is refused. Refusals are problems (RFC 9457): programs match `code`, never a \
text. Unknown members and parameters are refused, unknown members of answers are to be ignored. Every answer carries `X-Request-Id`; a sane one \
of the request is kept. Where an answer is 429 or 503, `Retry-After` says when to come back.";

const TAGS: [(&str, &str); 10] = [
    ("events", "Publish, read and schedule events."),
    ("consumers", "Named consumers of agents: poll, acknowledge, look."),
    ("inbox", "Work for agents: claim, lease, acknowledge, and be told when it arrives."),
    ("hooks", "Signed requests for agents without a session: notify hooks and callbacks."),
    ("gateway", "The WebSocket; its frames are in the AsyncAPI document."),
    ("principals", "Who acts: people, apps and agents, and their tokens."),
    ("access", "Spaces, channels and grants."),
    ("tenants", "The instance operator's."),
    ("audit", "What was done, and what was refused."),
    ("operation", "Health, metrics, documents, backup."),
];

/// The document before any route is known.
pub(crate) fn base() -> OpenApi {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("dsp_<kind>_<secret>").build();
    let components = ComponentsBuilder::new()
        .security_scheme(BEARER, SecurityScheme::Http(bearer))
        .schema(protocol::Problem::name(), protocol::Problem::schema())
        .schema(protocol::ProblemCode::name(), protocol::ProblemCode::schema())
        .schema(protocol::Reason::name(), protocol::Reason::schema());
    let tags = TAGS.map(|(name, description)| TagBuilder::new().name(name).description(Some(description)).build());
    OpenApiBuilder::new().info(info()).tags(Some(tags)).components(Some(components.build())).build()
}

fn info() -> Info {
    let license = LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build();
    InfoBuilder::new().title("Doorstep").version(env!("CARGO_PKG_VERSION")).description(Some(DESCRIPTION)).license(Some(license)).build()
}

/// Adds to every operation what follows from its action and its problem codes: security and refusals.
pub(crate) fn complete(mut document: OpenApi) -> OpenApi {
    let mut refusals = Refusals::new();
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            complete_operation(operation, &mut refusals);
        }
    }
    let components = document.components.get_or_insert_default();
    components.responses.extend(refusals);
    let mut schemas = Vec::new();
    protocol::Problem::schemas(&mut schemas);
    components.schemas.extend(schemas);
    document
}

fn complete_operation(operation: &mut Operation, refusals: &mut Refusals) {
    let public = !operation.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(ACTION));
    let required = (!public).then(|| SecurityRequirement::new::<_, [&str; 0], _>(BEARER, []));
    operation.security = Some(required.into_iter().collect());
    problems::document(operation, public, refusals);
}

/// The operations of a path.
fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten()
}
