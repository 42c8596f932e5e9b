//! Listings: which page is asked for, and how it is answered.

use std::str::FromStr;

use authz::{Keyset, Listing};
use axum::response::Response;
use protocol::Page;
use serde::Serialize;

use super::reply;
use crate::Settings;
use crate::refusal::Refusal;
use crate::request::Query;

/// Reads `limit` and `cursor`; the cursor of this listing is a `K`.
pub(crate) fn keyset<K: FromStr + ToString>(query: &mut Query<'_>, settings: &Settings) -> Result<Keyset, Refusal> {
    let limit = query.limit(settings.default_page_size, settings.max_page_size)?;
    let after = query.parsed::<K>("cursor", "the next_cursor of a page")?;
    Ok(Keyset { after: after.map(|key| key.to_string()), limit })
}

/// 200 with a page.
pub(crate) fn answer<T, W: Serialize>(listing: Listing<T>, show: impl FnMut(T) -> W) -> Result<Response, Refusal> {
    reply::ok(&Page { items: listing.items.into_iter().map(show).collect(), next_cursor: listing.next })
}
