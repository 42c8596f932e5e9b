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

/// The OpenAPI document as it is committed and served: members in the order of their names. The library keeps extensions in a hash map, whose
/// order is another one in each process.
pub fn openapi_document() -> serde_json::Value {
    in_order(&serde_json::to_value(openapi()).unwrap_or_default())
}

/// The document as it is served.
pub(crate) fn openapi_text(collected: OpenApi) -> String {
    in_order(&serde_json::to_value(openapi::complete(collected)).unwrap_or_default()).to_string()
}

fn in_order(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(members) => {
            let sorted: std::collections::BTreeMap<&String, &Value> = members.iter().collect();
            Value::Object(sorted.into_iter().map(|(name, value)| (name.clone(), in_order(value))).collect())
        }
        Value::Array(elements) => Value::Array(elements.iter().map(in_order).collect()),
        other => other.clone(),
    }
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
