//! Who may be called: the rules of URLs, then the addresses of the host. A name with any bad answer is bad.

use std::net::SocketAddr;
use std::sync::Arc;

use thiserror::Error;

use crate::allowed::{AddressRules, AllowedNetwork, Passed};
use crate::resolver::Resolver;
use crate::target::{HostList, InvalidTarget, Schemes, Target, TargetHost};

/// Addresses of one name that are dialled at most. All are judged.
const DIALLED_MAX: usize = 16;

/// What may be called. Names the configuration keys that it comes from.
#[derive(Clone, Debug, Default)]
pub struct GuardRules {
    /// `hooks.allow_http`.
    pub schemes: Schemes,
    /// `hooks.ports`.
    pub ports: Vec<u16>,
    /// `hooks.url_allow_list`.
    pub hosts: HostList,
    /// `hooks.allow_networks`.
    pub networks: Vec<AllowedNetwork>,
    /// Where this server listens; closed to calls unless opened exactly.
    pub listeners: Vec<SocketAddr>,
}

/// Why a URL is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its spelling, scheme, port or host.
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    /// An address of its host. It is not said which, or what is there.
    #[error("its host is not reachable from here by policy")]
    Address,
    /// Its host has no addresses.
    #[error("its host cannot be resolved")]
    Unresolvable,
}

/// A URL that may be called now, with the only addresses that may be dialled for it.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub(crate) target: Target,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// Judges URLs, each time anew.
#[derive(Debug)]
pub struct Guard {
    schemes: Schemes,
    ports: Vec<u16>,
    hosts: HostList,
    addresses: AddressRules,
    resolver: Arc<dyn Resolver>,
}

impl Guard {
    /// Judges by these rules.
    pub fn new(rules: GuardRules, resolver: Arc<dyn Resolver>) -> Self {
        let GuardRules { schemes, ports, hosts, networks, listeners } = rules;
        Self { schemes, ports, hosts, addresses: AddressRules::new(networks, listeners), resolver }
    }

    /// Judges what can be judged without asking anyone.
    ///
    /// # Errors
    /// [`InvalidTarget`].
    pub fn parse(&self, url: &str) -> Result<Target, InvalidTarget> {
        let target = Target::parse(url, self.schemes)?;
        if !self.hosts.allows(&target.host) {
            return Err(InvalidTarget::Host);
        }
        if !self.ports.contains(&target.port) && !self.addresses.opens_port(target.port) {
            return Err(InvalidTarget::Port);
        }
        Ok(target)
    }

    /// Judges a URL and every address that its host has at this moment.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn admit(&self, url: &str) -> Result<Admitted, Refusal> {
        let target = self.parse(url)?;
        let found = match &target.host {
            TargetHost::Address(address) => vec![*address],
            TargetHost::Name(name) => self.resolver.resolve(name).await.map_err(|_| Refusal::Unresolvable)?,
        };
        let mut addresses: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip.to_canonical(), target.port)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            return Err(Refusal::Unresolvable);
        }
        let is_usual_port = self.ports.contains(&target.port);
        for address in &addresses {
            match self.addresses.judge(*address) {
                Some(Passed::Exactly) => {}
                Some(Passed::ByAddress) if is_usual_port => {}
                Some(Passed::ByAddress) => return Err(InvalidTarget::Port.into()),
                None => return Err(Refusal::Address),
            }
        }
        addresses.truncate(DIALLED_MAX);
        Ok(Admitted { target, addresses })
    }
}
