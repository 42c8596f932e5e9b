//! `doorstep me`, `doorstep health`.

use client::Health;
use serde::Serialize;

use super::{cell, words};
use crate::failure::Failure;
use crate::session::Session;

/// Who the token is.
pub(crate) async fn me(session: &Session) -> Result<(), Failure> {
    let me = session.client()?.me().await?;
    let members = [
        ("tenant", me.tenant.to_string()),
        ("id", me.id.to_string()),
        ("kind", me.kind.to_string()),
        ("role", me.role.to_string()),
        ("name", cell(me.display_name.as_ref())),
        ("token", me.token_id.to_string()),
        ("scopes", words(&me.scopes)),
        ("expires", cell(me.expires_at.as_ref())),
    ];
    session.item(&me, &members)
}

#[derive(Serialize)]
struct HealthItem {
    status: &'static str,
}

/// Whether the server serves.
pub(crate) async fn health(session: &Session) -> Result<(), Failure> {
    let status = match session.client_without_token()?.health().await? {
        Health::Ready => "ready",
        Health::NotReady => "not ready",
    };
    session.item(&HealthItem { status }, &[("status", status.to_owned())])?;
    if status == "ready" { Ok(()) } else { Err(Failure::Failed("the server runs and does not serve at the moment".to_owned())) }
}
