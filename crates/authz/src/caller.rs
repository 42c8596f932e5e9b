//! Who makes a request, and why it may be refused.

use std::sync::Arc;

use domain::{Actor, PrincipalId, StoreError, TenantId, Timestamp, TokenId};
use thiserror::Error;

use crate::{PrincipalKind, Role, Scopes};

/// An authenticated principal with the token that it used.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The tenant.
    pub tenant: TenantId,
    /// The principal.
    pub principal: PrincipalId,
    /// What it is.
    pub kind: PrincipalKind,
    /// Its role at authentication.
    pub role: Role,
    /// The token.
    pub token: TokenId,
    /// What the token is narrowed to.
    pub scopes: Scopes,
    /// From when the token is refused.
    pub expires_at: Option<Timestamp>,
    /// Shared with the authorizer: what revocation and changed grants are seen through.
    pub(crate) standing: Arc<crate::cache::StandingCell>,
}

impl Caller {
    /// The caller as the actor of an event.
    pub fn actor(&self) -> Actor {
        Actor { kind: self.kind.into(), id: self.principal.clone() }
    }

    /// Whether the caller may still be served at `now`; cheap, to be asked at every wake of a long-lived connection.
    pub fn standing(&self, now: Timestamp) -> Standing {
        match self.expires_at {
            Some(end) if end <= now => Standing::Unauthenticated,
            _ => self.standing.get(),
        }
    }
}

/// Whether an authenticated caller may still be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Yes.
    Good,
    /// The token expired or was revoked, or the principal is disabled or gone: close with 4012.
    Unauthenticated,
    /// The tenant is suspended or being deleted: close with 4016.
    TenantSuspended,
}

/// Why authentication failed. Nothing in it tells which part was wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AuthenticationError {
    /// No such credential, or it is not valid any more.
    #[error("the credential is missing, unknown, expired or revoked")]
    Unauthenticated,
    /// The tenant is suspended or being deleted.
    #[error("the tenant is suspended")]
    TenantSuspended,
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Denied {
    /// The caller may not know that the target exists.
    #[error("not found")]
    NotFound,
    /// The caller may not do this.
    #[error("forbidden")]
    Forbidden(DeniedReason),
    /// The caller's credential counts no more: its token expired or was revoked, or the principal is disabled or gone. Answered like a bad
    /// credential.
    #[error("unauthenticated")]
    Unauthenticated,
    /// Nothing was decided: the rights could not be read. Answered like an unavailable store.
    #[error("the rights could not be read")]
    Unavailable,
}

/// Why something is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedReason {
    /// No grant or role allows it.
    PermissionMissing,
    /// The token is narrowed to other scopes.
    ScopeMissing,
    /// Not for this kind of principal.
    SubjectKindNotAllowed,
    /// The tenant is suspended.
    TenantSuspended,
}
