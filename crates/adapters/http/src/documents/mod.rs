//! The generated documents: OpenAPI from the routes, AsyncAPI from the frames. Neither can say what the code does not do.

mod asyncapi;
mod openapi;
mod problems;
#[cfg(test)]
mod tests;

use utoipa::openapi::OpenApi;

pub use asyncapi::asyncapi;

/// The OpenAPI 3.1 document of every route.
pub fn openapi() -> OpenApi {
    openapi::complete(crate::routes::all().into_openapi())
}

pub(crate) use openapi::base;
pub(crate) use problems::WRITING;

/// The document as it is served.
pub(crate) fn openapi_text(collected: OpenApi) -> String {
    openapi::complete(collected).to_json().unwrap_or_default()
}

/// The document as it is served.
pub(crate) fn asyncapi_text() -> String {
    asyncapi().to_string()
}

/// The templates of all routes.
pub(crate) fn route_templates() -> Vec<String> {
    crate::routes::all().into_openapi().paths.paths.into_keys().collect()
}

/// `word` → `Word`, as ids in both documents are written.
fn capitalised(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect()
}
