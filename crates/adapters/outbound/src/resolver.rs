//! From names to addresses. A port of its own, so that tests decide what a name resolves to, and when that changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use async_trait::async_trait;
use thiserror::Error;
use tokio::sync::Semaphore;

/// Looks names up.
#[async_trait]
pub trait Resolver: Send + Sync + std::fmt::Debug {
    /// Every address of a name, as of now. The name is in lower case and has no final dot.
    ///
    /// # Errors
    /// [`Unresolvable`].
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, Unresolvable>;
}

/// A name has no addresses, or they could not be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the name cannot be resolved")]
pub struct Unresolvable;

/// Look-ups at once at most. Each may hold a thread for as long as the system's resolver takes, which no timeout of ours ends.
const LOOKUPS_MAX: usize = 128;

/// The system's resolver, with its hosts file and its configuration.
#[derive(Debug)]
pub struct SystemResolver {
    lookups: std::sync::Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { lookups: std::sync::Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, Unresolvable> {
        // Names of this machine are no matter of the network (RFC 6761, section 6.3).
        if name == "localhost" || name.ends_with(".localhost") {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let permit = std::sync::Arc::clone(&self.lookups).acquire_owned().await.map_err(|_| Unresolvable)?;
        let name = name.to_owned();
        // The permit is held by the thread, also when nobody waits for it any more.
        let lookup = move || {
            let _permit = permit;
            std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 0)).map(|found| found.map(|address| address.ip()).collect::<Vec<_>>())
        };
        match tokio::task::spawn_blocking(lookup).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            _ => Err(Unresolvable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Resolver as _, SystemResolver, Unresolvable};

    #[tokio::test]
    async fn names_of_this_machine_are_not_asked_for() {
        let resolver = SystemResolver::default();
        for name in ["localhost", "agent.localhost"] {
            assert!(resolver.resolve(name).await.unwrap().iter().all(std::net::IpAddr::is_loopback), "{name}");
        }
    }

    #[tokio::test]
    async fn a_name_that_cannot_exist_is_unresolvable() {
        assert_eq!(SystemResolver::default().resolve("no-such-host.invalid").await, Err(Unresolvable));
    }
}
