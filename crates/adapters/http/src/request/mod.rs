//! What every request goes through: its identity, its span, its credential, its query and its body.

mod auth;
mod body;
mod context;
mod id;
mod path;
mod query;

pub(crate) use auth::{Authenticated, bearer};
pub(crate) use body::{MediaType, media_type, parse_json, parse_json_of, read_body};
pub(crate) use context::ContextLayer;
pub(crate) use id::{RequestId, RequestIds};
pub(crate) use path::PathNames;
pub(crate) use query::Query;
