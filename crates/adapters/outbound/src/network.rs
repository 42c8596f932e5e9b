//! Blocks of addresses, as operators and registries write them. Must not know which blocks are good or bad.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A block of addresses: `10.0.0.0/8`, `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// A block of IPv4 addresses, for tables.
    pub(crate) const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    /// A block of IPv6 addresses that begins with these three groups, for tables.
    pub(crate) const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Self {
        Self { address: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix }
    }

    /// The block of this length that an address is in. IPv4 that is written as IPv6 is IPv4, unless the block reaches beyond it.
    pub(crate) fn around(address: IpAddr, prefix: u8) -> Self {
        match (address, address.to_canonical()) {
            (IpAddr::V6(_), canonical @ IpAddr::V4(_)) if prefix >= 96 => Self::around(canonical, prefix - 96),
            (address, _) => Self { address: first(address, prefix), prefix },
        }
    }

    /// Whether the address is in the block. IPv4 is never in a block of IPv6, however it is written: canonicalise first.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && first(address, self.prefix) == self.address
    }

    /// Whether every address of `other` is in the block.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    /// The first address and the last.
    #[cfg(test)]
    pub(crate) fn bounds(&self) -> (IpAddr, IpAddr) {
        match self.address {
            IpAddr::V4(address) => (self.address, (address | !Ipv4Addr::from_bits(mask4(self.prefix))).into()),
            IpAddr::V6(address) => (self.address, (address | !Ipv6Addr::from_bits(mask6(self.prefix))).into()),
        }
    }
}

fn first(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => (address & Ipv4Addr::from_bits(mask4(prefix))).into(),
        IpAddr::V6(address) => (address & Ipv6Addr::from_bits(mask6(prefix))).into(),
    }
}

fn mask4(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(0)
}

fn mask6(prefix: u8) -> u128 {
    u128::MAX.checked_shl(128_u32.saturating_sub(prefix.into())).unwrap_or(0)
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
pub(crate) fn network(text: &str) -> Network {
    let (address, prefix) = text.split_once('/').expect("a network");
    Network::around(address.parse().expect("an address"), prefix.parse().expect("a length"))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::network;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_reaches_from_its_first_address_to_its_last() {
        for (text, low, high, below, above) in [
            ("10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("168.63.129.16/32", "168.63.129.16", "168.63.129.16", "168.63.129.15", "168.63.129.17"),
            ("fd00::/8", "fd00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fcff::", "fe00::"),
        ] {
            let network = network(text);
            assert_eq!(network.bounds(), (ip(low), ip(high)));
            assert_eq!(network.to_string(), text);
            assert!(network.contains(ip(low)) && network.contains(ip(high)), "{text}");
            assert!(!network.contains(ip(below)) && !network.contains(ip(above)), "{text}");
        }
        assert!(network("0.0.0.0/0").contains(ip("255.255.255.255")));
        assert!(!network("0.0.0.0/0").contains(ip("::1")));
        assert!(!network("::/0").contains(ip("1.2.3.4")));
    }

    #[test]
    fn however_it_is_written_it_is_the_same_network() {
        assert_eq!(network("192.168.1.5/16"), network("192.168.0.0/16"));
        assert_eq!(network("::ffff:10.0.0.0/104"), network("10.0.0.0/8"));
        assert_eq!(network("fd12:3456::1/32"), network("fd12:3456::/32"));
        assert!(network("10.0.0.0/8").covers(&network("10.1.0.0/16")) && !network("10.1.0.0/16").covers(&network("10.0.0.0/8")));
    }
}
