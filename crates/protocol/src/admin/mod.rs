//! Bodies of the administration routes (conventions, "Administration routes"). What is read from a client is strict; what is read from
//! the server ignores members and words that this version does not know.

mod access;
mod audit;
mod nodes;
mod operation;
mod principal;
mod scheduled;
mod staged;
mod tenant;
mod token;

pub use access::{Channel, Grant, GrantResource, NewChannel, NewGrant, NewSpace, Permission, Space};
pub use audit::{AuditDecision, AuditItem};
pub use nodes::{Node, NodeState};
pub use operation::{BackupReport, BackupRequest};
pub use principal::{Me, NewPrincipal, Principal, PrincipalChange, PrincipalKind, Role};
pub use scheduled::{ScheduledItem, ScheduledState};
pub use staged::{StagedItem, StagedState};
pub use tenant::{NewTenant, Tenant, TenantChange, TenantCreated, TenantState};
pub use token::{NewToken, Scope, TokenCreated, TokenItem};
