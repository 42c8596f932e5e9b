//! What an operator has opened (`hooks.allow_networks`), and what stays closed all the same. Must not know names and URLs.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use hooks::AllowedNetwork;

use crate::classify::{Reach, behind_nat64, is_wholly_guarded, reach};
use crate::network::Network;

/// Whether an entry is a range of which every address stays closed all the same: loopback, link-local, metadata and multicast addresses open only
/// by exact address and port, such as `127.0.0.1:9000`.
pub fn opens_nothing(entry: &AllowedNetwork) -> bool {
    match *entry {
        AllowedNetwork::Range { address, prefix } => is_wholly_guarded(&Network::around(address, prefix)),
        AllowedNetwork::Exact(_) => false,
    }
}

/// Judges addresses: the classifier, what the operator has opened, and what this server listens on.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressRules {
    networks: Vec<Network>,
    exact: Vec<SocketAddr>,
    listeners: Vec<SocketAddr>,
}

/// How an address passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// By what it is; the port has to be one of `hooks.ports`.
    ByAddress,
    /// By exact address and port, which opens that port too.
    Exactly,
}

impl AddressRules {
    /// What is opened, and the server's own listeners, which are closed unless they are opened exactly.
    pub(crate) fn new(allowed: &[AllowedNetwork], listeners: &[SocketAddr]) -> Self {
        let mut rules = Self { listeners: listeners.to_vec(), ..Self::default() };
        for entry in allowed {
            match *entry {
                AllowedNetwork::Exact(at) => rules.exact.push(SocketAddr::new(at.ip().to_canonical(), at.port())),
                AllowedNetwork::Range { address, prefix } => {
                    rules.networks.push(Network::around(address, prefix));
                }
            }
        }
        rules
    }

    /// Whether some address is opened on this port.
    pub(crate) fn opens_port(&self, port: u16) -> bool {
        self.exact.iter().any(|exact| exact.port() == port)
    }

    /// Whether this address may be dialled, and why; `None` is no.
    pub(crate) fn judge(&self, address: SocketAddr) -> Option<Passed> {
        let (ip, port) = (address.ip().to_canonical(), address.port());
        if self.exact.contains(&SocketAddr::new(ip, port)) {
            return Some(Passed::Exactly);
        }
        (self.is_open(ip) && !self.is_own_listener(ip, port)).then_some(Passed::ByAddress)
    }

    fn is_open(&self, ip: IpAddr) -> bool {
        match reach(ip) {
            Reach::Public => true,
            Reach::Guarded => false,
            // Behind NAT64 is an IPv4 address, and it is what counts.
            Reach::Private => {
                self.networks.iter().any(|network| network.contains(ip)) && behind_nat64(ip).is_none_or(|v4| self.is_open(v4))
            }
        }
    }

    fn is_own_listener(&self, ip: IpAddr, port: u16) -> bool {
        self.listeners.iter().any(|listener| {
            let own = listener.ip().to_canonical();
            listener.port() == port && (own == ip || own.is_unspecified() && is_of_this_machine(ip))
        })
    }
}

/// Whether an address is one of this machine's. No packet is sent: the system is asked from which address it would reach this one, and a
/// machine reaches itself from where it goes. When that cannot be known, it counts as one.
fn is_of_this_machine(ip: IpAddr) -> bool {
    let any: IpAddr = if ip.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    let Ok(socket) = UdpSocket::bind((any, 0)) else { return true };
    match socket.connect((ip, 9)) {
        Ok(()) => socket.local_addr().is_ok_and(|local| local.ip().to_canonical() == ip),
        // There is no way there, so it is not here.
        Err(error) => !matches!(error.kind(), std::io::ErrorKind::NetworkUnreachable | std::io::ErrorKind::HostUnreachable),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use hooks::AllowedNetwork;

    use super::{AddressRules, Passed};

    fn rules(allowed: &[&str], listeners: &[&str]) -> AddressRules {
        let allowed: Vec<_> = allowed.iter().map(|text| AllowedNetwork::parse(text).unwrap()).collect();
        let listeners: Vec<_> = listeners.iter().map(|text| text.parse().unwrap()).collect();
        AddressRules::new(&allowed, &listeners)
    }

    fn passes(rules: &AddressRules, address: &str) -> Option<Passed> {
        rules.judge(address.parse().unwrap())
    }

    #[test]
    fn a_network_opens_private_addresses_and_no_others() {
        let rules = rules(&["192.168.0.0/16", "fd12:3456::/32", "10.1.2.3/32", "172.20.1.1/16"], &[]);
        for open in ["192.168.1.9:443", "[fd12:3456::1]:443", "[::ffff:192.168.1.9]:443", "10.1.2.3:443", "172.20.9.9:443", "8.8.8.8:443"] {
            assert_eq!(passes(&rules, open), Some(Passed::ByAddress), "{open}");
        }
        for closed in ["192.169.0.1:443", "10.1.2.4:443", "10.0.0.1:443", "[fd13::1]:443", "127.0.0.1:443"] {
            let expected = (closed == "192.169.0.1:443").then_some(Passed::ByAddress);
            assert_eq!(passes(&rules, closed), expected, "{closed}");
        }
    }

    #[test]
    fn loopback_link_local_and_metadata_open_only_by_exact_address_and_port() {
        let wide = rules(&["0.0.0.0/0", "::/0", "127.0.0.0/8", "::1/128", "169.254.0.0/16"], &[]);
        let guarded = [
            "127.0.0.1:9000",
            "169.254.169.254:80",
            "100.100.100.200:80",
            "168.63.129.16:80",
            "0.0.0.0:9000",
            "224.0.0.1:9000",
            "[::1]:9000",
            "[fe80::1]:9000",
            "[fd00:ec2::254]:80",
            "[::127.0.0.1]:80",
            "[2002:7f00:1::]:80",
            "[64:ff9b::7f00:1]:80",
            "[::ffff:127.0.0.1]:9000",
        ];
        for address in guarded {
            assert_eq!(passes(&wide, address), None, "{address}");
            let exact = rules(&[address], &[]);
            assert_eq!(passes(&exact, address), Some(Passed::Exactly), "{address}");
            let mut other: SocketAddr = address.parse().unwrap();
            other.set_port(other.port() + 1);
            assert_eq!(exact.judge(other), None, "{other}");
        }
        assert_eq!(passes(&wide, "10.0.0.1:443"), Some(Passed::ByAddress));
    }

    #[test]
    fn a_range_that_opens_nothing_is_told_from_one_that_opens_something() {
        let opens_nothing = |text: &str| super::opens_nothing(&AllowedNetwork::parse(text).unwrap());
        for nothing in
            ["127.0.0.0/8", "127.0.0.1/32", "::1/128", "::ffff:127.0.0.1/128", "169.254.0.0/16", "fe80::/10", "224.0.0.0/4", "0.0.0.0/8"]
        {
            assert!(opens_nothing(nothing), "{nothing}");
        }
        for something in ["127.0.0.1:9000", "[::1]:9000", "10.0.0.0/8", "0.0.0.0/0", "::/0", "fd00::/8", "100.64.0.0/10", "64:ff9b::/96"] {
            assert!(!opens_nothing(something), "{something}");
        }
    }

    #[test]
    fn behind_nat64_the_ipv4_address_counts() {
        let rules = rules(&["64:ff9b::/96", "10.0.0.0/8"], &[]);
        assert_eq!(passes(&rules, "[64:ff9b::808:808]:443"), Some(Passed::ByAddress));
        assert_eq!(passes(&rules, "[64:ff9b::a00:1]:443"), Some(Passed::ByAddress), "10.0.0.1 is open");
        for closed in ["[64:ff9b::7f00:1]:443", "[64:ff9b::a9fe:a9fe]:443", "[64:ff9b::c0a8:1]:443"] {
            assert_eq!(passes(&rules, closed), None, "{closed}");
        }
    }

    #[test]
    fn the_servers_own_listeners_open_only_exactly() {
        let at = rules(&["192.168.0.0/16"], &["192.168.1.10:8443"]);
        assert_eq!(passes(&at, "192.168.1.10:8443"), None);
        assert_eq!(passes(&at, "[::ffff:192.168.1.10]:8443"), None);
        assert_eq!(passes(&at, "192.168.1.10:443"), Some(Passed::ByAddress));
        assert_eq!(passes(&at, "192.168.1.11:8443"), Some(Passed::ByAddress));
        let exact = rules(&["192.168.1.10:8443"], &["192.168.1.10:8443"]);
        assert_eq!(passes(&exact, "192.168.1.10:8443"), Some(Passed::Exactly));
    }

    #[test]
    fn a_listener_on_every_address_is_found_on_each_of_this_machines() {
        assert!(super::is_of_this_machine(Ipv4Addr::LOCALHOST.into()));
        assert!(!super::is_of_this_machine([192, 0, 2, 1].into()));
        assert!(rules(&[], &["0.0.0.0:443"]).is_own_listener(Ipv4Addr::LOCALHOST.into(), 443));
    }

    proptest! {
        #[test]
        fn an_exact_entry_opens_nothing_else(bits in any::<u32>(), port in 1..u16::MAX) {
            let rules = rules(&["127.0.0.1:9000"], &[]);
            let address = SocketAddr::new(IpAddr::from(Ipv4Addr::from(bits | 0x7f00_0000)), port);
            if address.ip().is_loopback() && address != "127.0.0.1:9000".parse().unwrap() {
                prop_assert_eq!(rules.judge(address), None);
            }
            prop_assert!(rules.opens_port(9000) && (port == 9000 || !rules.opens_port(port)));
        }
    }
}
