//! What can be configured.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A network that hooks may reach although it is private (`hooks.allow_networks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedNetwork {
    /// An address range. Never opens loopback, link-local or metadata addresses, nor the server's own listeners.
    Range {
        /// Its first address.
        address: IpAddr,
        /// The bits that count.
        prefix: u8,
    },
    /// Exactly this address and port, whatever it is; opens the port too.
    Exact(SocketAddr),
}

impl AllowedNetwork {
    /// Reads `192.168.0.0/16`, `fd00::/8`, `127.0.0.1:8080` or `[::1]:8080`.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "a network such as 192.168.0.0/16, or an address with a port such as 127.0.0.1:8080";
        if let Ok(exact) = text.parse::<SocketAddr>() {
            return if exact.port() == 0 { Err(EXPECTED.to_owned()) } else { Ok(Self::Exact(exact)) };
        }
        let (address, prefix) = text.split_once('/').ok_or(EXPECTED)?;
        let (address, prefix): (IpAddr, u8) = (address.parse().map_err(|_| EXPECTED)?, prefix.parse().map_err(|_| EXPECTED)?);
        if prefix > if address.is_ipv4() { 32 } else { 128 } {
            return Err(EXPECTED.to_owned());
        }
        Ok(Self::Range { address, prefix })
    }
}

/// The settings of hooks, each with its key.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `hooks.max_per_agent`: hooks of one agent, of both kinds together; 0 turns hooks off.
    pub max_per_agent: usize,
    /// `hooks.max_per_tenant`: hooks of one tenant.
    pub max_per_tenant: usize,
    /// `hooks.allow_http`: whether plain http is called.
    pub allow_http: bool,
    /// `hooks.allow_networks`: private networks that may be reached.
    pub allow_networks: Vec<AllowedNetwork>,
    /// `hooks.url_allow_list`: the only hosts that may be called, names or `*.name`; any when empty.
    pub url_allow_list: Vec<String>,
    /// `hooks.ports`: the ports that may be dialled; 443 and 8443, and 80 with `hooks.allow_http`, when empty.
    pub ports: Vec<u16>,
    /// `hooks.attempt_timeout`: one attempt, from the look-up of the name to the end of the answer.
    pub attempt_timeout: Duration,
    /// `hooks.attempts`: attempts of one ring.
    pub attempts: u32,
    /// `hooks.retry`: pauses before the second attempt and those after it, give or take a fifth; the last is repeated.
    pub retry: Vec<Duration>,
    /// `hooks.retry_after_max`: the longest `Retry-After` that is honoured.
    pub retry_after_max: Duration,
    /// `hooks.disable_after`: exhausted rings in a row that disable a hook.
    pub disable_after: u32,
    /// `hooks.rotation_overlap`: how long a replaced key still signs.
    pub rotation_overlap: Duration,
    /// `hooks.keys_max`: keys of one hook that sign at the same time; the oldest goes when another comes.
    pub keys_max: usize,
    /// `hooks.outstanding_max`: outstanding rings of one hook; above, they collapse into one backlog ring per queue.
    pub outstanding_max: usize,
    /// `hooks.outstanding_failing_max`: the same of a hook whose last ring was given up.
    pub outstanding_failing_max: usize,
    /// `hooks.concurrency`: attempts at the same time. Rings that are not first attempts of healthy hooks take at most half.
    pub concurrency: usize,
    /// `hooks.concurrency_per_tenant`: the same of one tenant.
    pub concurrency_per_tenant: usize,
    /// `hooks.concurrency_per_host`: the same at one host.
    pub concurrency_per_host: usize,
    /// `hooks.poll_interval`: how often it is looked for news without being told.
    pub poll_interval: Duration,
    /// `hooks.page`: rows of the log that are looked at in one step.
    pub page: usize,
    /// `hooks.page_bytes`: bytes of the log that are looked at in one step.
    pub page_bytes: usize,
    /// `hooks.tails_max`: tenants whose hooks are told of news at once; those beyond wait for `hooks.poll_interval`.
    pub tails_max: usize,
    /// `hooks.max_queues`: queues that one hook names, and queues that one backlog is told apart into; `outstanding_max` of the latter where that is
    /// more.
    pub max_queues: usize,
    /// `hooks.log_max`: attempts kept of each hook.
    pub log_max: usize,
    /// `hooks.require_verification`: whether notify hooks must answer a challenge before they are rung.
    pub require_verification: bool,
    /// `hooks.challenge_ttl`: how long a challenge can be answered.
    pub challenge_ttl: Duration,
    /// `hooks.signature_ttl`: how long a signature by RFC 9421 counts.
    pub signature_ttl: Duration,
    /// `hooks.gather_interval`: how long the dispatcher lets news gather before it looks at the log.
    pub gather_interval: Duration,
    /// `hooks.callback_rate_max`: the most requests per minute that a callback can ask for, and what one has that asks for nothing.
    pub callback_rate_max: u32,
    /// `hooks.server_key_period`: how long one of the server's signing keys signs before the next does.
    pub server_key_period: Duration,
    /// `hooks.user_agent`: what the server calls itself.
    pub user_agent: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_per_agent: 5,
            max_per_tenant: 1_000,
            allow_http: false,
            allow_networks: Vec::new(),
            url_allow_list: Vec::new(),
            ports: Vec::new(),
            attempt_timeout: Duration::from_secs(5),
            attempts: 3,
            retry: vec![Duration::from_secs(1), Duration::from_secs(5)],
            retry_after_max: Duration::from_mins(1),
            disable_after: 10,
            rotation_overlap: Duration::from_hours(24),
            keys_max: 4,
            outstanding_max: 1_000,
            outstanding_failing_max: 16,
            concurrency: 64,
            concurrency_per_tenant: 8,
            concurrency_per_host: 4,
            poll_interval: Duration::from_secs(1),
            page: 500,
            page_bytes: 4 << 20,
            tails_max: 1_000,
            max_queues: 64,
            log_max: 50,
            require_verification: false,
            challenge_ttl: Duration::from_mins(10),
            signature_ttl: Duration::from_mins(5),
            gather_interval: Duration::from_millis(10),
            callback_rate_max: 60,
            server_key_period: Duration::from_hours(90 * 24),
            user_agent: concat!("Doorstep/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
