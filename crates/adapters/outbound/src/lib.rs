//! The one guarded HTTP client: every call that the server makes to the outside goes through it.
//!
//! Architecture invariant: nothing is dialled but addresses that were judged for this very call. Redirects are not followed, proxies are not
//! used, and no name is resolved but by the guard. Must not know what a call means: signing, retrying and health are the core's.

mod allowed;
mod classify;
mod client;
mod connections;
mod fault;
mod guard;
mod network;
mod resolver;
mod target;
mod tls;

pub use allowed::{AllowedNetwork, InvalidAllowedNetwork};
pub use classify::{Reach, reach};
pub use client::{BODY_MAX_BYTES, Call, Outbound, Received};
pub use fault::Fault;
pub use guard::{GuardRules, Refusal};
pub use network::{InvalidNetwork, Network};
pub use resolver::{Resolver, SystemResolver, Unresolvable};
pub use target::{HostList, InvalidTarget, MAX_URL_BYTES, Schemes};
pub use tls::Trust;
