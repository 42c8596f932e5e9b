//! Who may do what: principals, tokens, grants, the one `authorize` function and the admission of deliveries.
//!
//! Architecture invariant: knows no HTTP, no SQL and no socket. Everything that decides is pure; what must be read is behind [`IdentityStore`], what must be written atomically behind
//! [`AdminTx`].

mod action;
mod authorizer;
mod caller;
mod principal;
mod store;
mod token;

pub use action::{Action, Scope, Scopes, Target};
pub use authorizer::{Admission, Authorizer};
pub use caller::{AuthenticationError, Caller, Denied, DeniedReason, Standing};
pub use principal::{
    Channel, Credential, Grant, Permission, Principal, PrincipalKind, Resource, Rights, Role, Space, Tenant, TenantState, TokenRecord,
};
pub use store::{
    AccessLogWrite, AdminTx, AuditDecision, AuditEntry, AuditFilter, AuditWrite, IdempotentAnswer, IdentityStore, IdentityWrite, Keyset,
    TokenUse,
};
pub use token::{InvalidToken, TokenHash, TokenSecret};
