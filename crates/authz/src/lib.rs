//! Who may do what: principals, tokens, grants, the one `authorize` function and the admission of deliveries.
//!
//! Architecture invariant: knows no HTTP, no SQL and no socket. Everything that decides is pure; what must be read is behind [`IdentityStore`], what must be written atomically behind
//! [`AdminTx`].

mod action;
mod admin;
mod admission;
mod authorizer;
mod cache;
mod caller;
mod change;
mod denials;
mod metrics;
mod principal;
mod rights;
mod rule;
mod settings;
mod store;
mod token;

pub use action::{Action, Scope, Scopes, Target};
pub use admin::{
    Admin, AdminError, AnswerOf, CreatedTenant, IdempotencyKey, Idempotent, IssuedToken, Listing, Made, Me, NewGrant, NewPrincipal,
    NewTenant, NewToken, Outcome, PrincipalPatch,
};
pub use admission::Admission;
pub use authorizer::{Authorizer, DEFAULT_TENANT};
pub use caller::{AuthenticationError, Caller, Denied, DeniedReason, Standing};
pub use change::{ACCESS_CHANGED, AGENT_UPDATED, AccessChange, Change};
pub use metrics::Metrics;
pub use principal::{
    Channel, Credential, Grant, Permission, Principal, PrincipalKind, Resource, Rights, Role, Space, Tenant, TenantState, TokenRecord,
};
pub use settings::Settings;
pub use store::{
    AccessLogWrite, AdminTx, AnswerWrite, AuditDecision, AuditEntry, AuditFilter, AuditWrite, IdempotentAnswer, IdentityStore,
    IdentityWrite, Keyset, TokenUse,
};
pub use token::{InvalidToken, TokenHash, TokenSecret};
