//! HTTP clients that can dial nothing but addresses that were judged.
//!
//! A client is made for one host and one set of addresses, and its resolver knows nothing else. It is kept while rings to the same place
//! follow each other, so that connections are used again; a name that resolves to anything else gets another client.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::guard::Admitted;
use crate::resolver::Unresolvable;
use crate::target::TargetHost;

/// Places whose clients are kept.
const PLACES_MAX: usize = 128;
/// How long a connection is kept that nobody uses; shorter than what servers commonly grant.
const IDLE: Duration = Duration::from_secs(4);
/// Unused connections that are kept for a place.
const IDLE_MAX: usize = 8;

/// The clients.
#[derive(Debug)]
pub(crate) struct Connections {
    tls: rustls::ClientConfig,
    places: Mutex<HashMap<Place, Kept>>,
    uses: AtomicU64,
}

/// Where a client calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    scheme: String,
    host: String,
    /// Sorted; each with the port.
    addresses: Vec<SocketAddr>,
}

#[derive(Debug)]
struct Kept {
    client: reqwest::Client,
    used: u64,
}

impl Connections {
    pub(crate) fn new(tls: rustls::ClientConfig) -> Self {
        Self { tls, places: Mutex::default(), uses: AtomicU64::new(0) }
    }

    /// A client that can dial what was admitted, and nothing else.
    pub(crate) fn client(&self, admitted: &Admitted) -> Result<reqwest::Client, reqwest::Error> {
        let target = &admitted.target;
        let place = Place { scheme: target.url.scheme().to_owned(), host: target.host(), addresses: admitted.addresses.clone() };
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = places.get_mut(&place) {
            kept.used = used;
            return Ok(kept.client.clone());
        }
        if places.len() >= PLACES_MAX
            && let Some(oldest) = places.iter().min_by_key(|(_, kept)| kept.used).map(|(place, _)| place.clone())
        {
            places.remove(&oldest);
        }
        let client = self.build(&target.host, &place.addresses)?;
        places.insert(place, Kept { client: client.clone(), used });
        Ok(client)
    }

    fn build(&self, host: &TargetHost, addresses: &[SocketAddr]) -> Result<reqwest::Client, reqwest::Error> {
        let name = match host {
            TargetHost::Name(name) => Some(name.clone()),
            TargetHost::Address(_) => None,
        };
        reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .tcp_nodelay(true)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_MAX)
            .dns_resolver(Pinned { name, addresses: addresses.to_vec() })
            .build()
    }
}

/// Resolves one name, to what was judged. Literal addresses are dialled without a resolver; they were judged as they are.
#[derive(Debug)]
struct Pinned {
    name: Option<String>,
    addresses: Vec<SocketAddr>,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let answer = match &self.name {
            Some(own) if own == name.as_str() => Ok(Box::new(self.addresses.clone().into_iter()) as Addrs),
            _ => Err(Box::new(Unresolvable).into()),
        };
        Box::pin(std::future::ready(answer))
    }
}
