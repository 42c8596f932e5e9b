//! Who may be called: the rules of URLs, then the addresses of the host. A name with any bad answer is bad.

use std::net::SocketAddr;
use std::sync::Arc;

use hooks::{HookUrl, Settings, UrlRefusal};

use crate::allowed::{AddressRules, Passed};
use crate::resolver::Resolver;
use crate::target::{HostList, Schemes, Target, TargetHost};

/// Addresses of one name that are dialled at most. All are judged.
const DIALLED_MAX: usize = 16;

/// A URL that may be called now, with the only addresses that may be dialled for it.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) target: Target,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// Judges URLs, each time anew.
#[derive(Debug)]
pub(crate) struct Guard {
    schemes: Schemes,
    ports: Vec<u16>,
    hosts: HostList,
    addresses: AddressRules,
    resolver: Arc<dyn Resolver>,
}

impl Guard {
    /// Judges by what is configured, and by where this server listens.
    pub(crate) fn new(settings: &Settings, listeners: &[SocketAddr], resolver: Arc<dyn Resolver>) -> Self {
        let schemes = if settings.allow_http { Schemes::HttpToo } else { Schemes::Https };
        Self {
            schemes,
            ports: ports(settings),
            hosts: HostList::new(&settings.url_allow_list),
            addresses: AddressRules::new(&settings.allow_networks, listeners),
            resolver,
        }
    }

    /// Judges what can be judged without asking anyone.
    fn parse(&self, url: &HookUrl) -> Result<Target, UrlRefusal> {
        let target = Target::of(url, self.schemes)?;
        if !self.hosts.allows(&target.host) {
            return Err(UrlRefusal::NotListed);
        }
        if !self.ports.contains(&target.port) && !self.addresses.opens_port(target.port) {
            return Err(UrlRefusal::Port);
        }
        Ok(target)
    }

    /// Judges a URL and every address that its host has at this moment.
    pub(crate) async fn admit(&self, url: &HookUrl) -> Result<Admitted, UrlRefusal> {
        let target = self.parse(url)?;
        let found = match &target.host {
            TargetHost::Address(address) => vec![*address],
            TargetHost::Name(name) => self.resolver.resolve(name).await.map_err(|_| UrlRefusal::Unresolvable)?,
        };
        let mut addresses: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip.to_canonical(), target.port)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            return Err(UrlRefusal::Unresolvable);
        }
        let is_usual_port = self.ports.contains(&target.port);
        for address in &addresses {
            match self.addresses.judge(*address) {
                Some(Passed::Exactly) => {}
                Some(Passed::ByAddress) if is_usual_port => {}
                Some(Passed::ByAddress) => return Err(UrlRefusal::Port),
                None => return Err(UrlRefusal::Network),
            }
        }
        addresses.truncate(DIALLED_MAX);
        Ok(Admitted { target, addresses })
    }
}

fn ports(settings: &Settings) -> Vec<u16> {
    match settings.ports.as_slice() {
        [] if settings.allow_http => vec![80, 443, 8443],
        [] => vec![443, 8443],
        ports => ports.to_vec(),
    }
}
