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

pub use allowed::opens_nothing;
pub use client::{ANSWER_MAX, Outbound};
pub use resolver::{Resolver, SystemResolver, Unresolvable};
pub use tls::Trust;
