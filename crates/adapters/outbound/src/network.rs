//! Blocks of addresses, as operators and registries write them. Must not know which blocks are good or bad.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// A block of addresses: `10.0.0.0/8`, `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Why a text is no block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidNetwork {
    /// It is nothing like one.
    #[error("it is not a network such as 192.168.0.0/16 or fd00::/8")]
    Malformed,
    /// Bits after the prefix are set: what is meant is unclear.
    #[error("bits after the prefix are set; the network is {0}")]
    HostBits(Network),
    /// IPv4 written as IPv6, with a prefix that reaches beyond IPv4.
    #[error("write IPv4 networks as IPv4")]
    Mapped,
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

    /// One address.
    pub const fn single(address: IpAddr) -> Self {
        let prefix = if address.is_ipv4() { 32 } else { 128 };
        Self { address, prefix }
    }

    /// Reads a block.
    ///
    /// # Errors
    /// [`InvalidNetwork`].
    pub fn parse(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = text.split_once('/').ok_or(InvalidNetwork::Malformed)?;
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork::Malformed)?;
        let is_number = !prefix.is_empty() && prefix.len() <= 3 && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix: u8 = prefix.parse().ok().filter(|_| is_number).ok_or(InvalidNetwork::Malformed)?;
        if prefix > Self::single(address).prefix {
            return Err(InvalidNetwork::Malformed);
        }
        if address.to_canonical() != address {
            return Err(InvalidNetwork::Mapped);
        }
        let first = Self { address: first(address, prefix), prefix };
        if first.address == address { Ok(first) } else { Err(InvalidNetwork::HostBits(first)) }
    }

    /// Whether the address is in the block. IPv4 is never in a block of IPv6, however it is written: canonicalise first.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && first(address, self.prefix) == self.address
    }

    /// Whether every address of `other` is in the block.
    pub fn covers(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    /// The first address and the last.
    pub fn bounds(&self) -> (IpAddr, IpAddr) {
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
mod tests {
    use std::net::IpAddr;

    use super::{InvalidNetwork, Network};

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
            let network = Network::parse(text).unwrap();
            assert_eq!(network.bounds(), (ip(low), ip(high)));
            assert_eq!(network.to_string(), text);
            assert!(network.contains(ip(low)) && network.contains(ip(high)), "{text}");
            assert!(!network.contains(ip(below)) && !network.contains(ip(above)), "{text}");
        }
        assert!(Network::parse("0.0.0.0/0").unwrap().contains(ip("255.255.255.255")));
        assert!(!Network::parse("0.0.0.0/0").unwrap().contains(ip("::1")));
        assert!(!Network::parse("::/0").unwrap().contains(ip("1.2.3.4")));
    }

    #[test]
    fn what_is_unclear_is_no_network() {
        for bad in ["", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/0008", "10/8", "::/129", "/8", "a/8"] {
            assert_eq!(Network::parse(bad), Err(InvalidNetwork::Malformed), "{bad}");
        }
        let meant = Network::parse("192.168.0.0/16").unwrap();
        assert_eq!(Network::parse("192.168.1.5/16"), Err(InvalidNetwork::HostBits(meant)));
        assert_eq!(Network::parse("::ffff:10.0.0.0/104"), Err(InvalidNetwork::Mapped));
    }
}
