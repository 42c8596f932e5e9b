//! Which addresses the outside world is made of: the one classifier that every outbound call is judged by.
//!
//! IPv4 is open but for a list; IPv6 is closed but for the global unicast block, minus a list (design page "hooks and intake", section SSRF;
//! the registries of special-purpose addresses, RFC 6890). Must not know what an operator has opened.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::network::Network;

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To the public internet.
    Public,
    /// To a private or reserved network, which an operator may open.
    Private,
    /// To this machine, to its link, to a cloud's metadata, or to many at once: never opened as part of a network.
    Guarded,
}

/// IPv4 that an operator may open.
const PRIVATE_V4: [Network; 15] = [
    Network::v4(10, 0, 0, 0, 8),
    Network::v4(100, 64, 0, 0, 10),
    Network::v4(172, 16, 0, 0, 12),
    Network::v4(192, 0, 0, 0, 24),
    Network::v4(192, 0, 2, 0, 24),
    Network::v4(192, 31, 196, 0, 24),
    Network::v4(192, 52, 193, 0, 24),
    Network::v4(192, 88, 99, 0, 24),
    Network::v4(192, 168, 0, 0, 16),
    Network::v4(192, 175, 48, 0, 24),
    Network::v4(198, 18, 0, 0, 15),
    Network::v4(198, 51, 100, 0, 24),
    Network::v4(203, 0, 113, 0, 24),
    Network::v4(240, 0, 0, 0, 4),
    // The platform's address of a cloud; guarded, and in the list of what is not public, too.
    Network::v4(168, 63, 129, 16, 32),
];

/// IPv4 that is never opened as part of a network.
const GUARDED_V4: [Network; 9] = [
    // "This network": Linux reaches loopback by it.
    Network::v4(0, 0, 0, 0, 8),
    Network::v4(127, 0, 0, 0, 8),
    // Link-local, and the metadata services of most clouds.
    Network::v4(169, 254, 0, 0, 16),
    Network::v4(224, 0, 0, 0, 4),
    Network::v4(255, 255, 255, 255, 32),
    // Metadata services that are elsewhere.
    Network::v4(100, 100, 100, 200, 32),
    Network::v4(168, 63, 129, 16, 32),
    Network::v4(192, 0, 0, 192, 32),
    // A private network's own service on every machine of it (its addresses are of 100.64.0.0/10).
    Network::v4(100, 100, 100, 100, 32),
];

/// IPv6 that is global unicast.
const GLOBAL_V6: Network = Network::v6(0x2000, 0, 0, 3);

/// What is not public in it.
const EXCEPTIONS_V6: [Network; 5] = [
    Network::v6(0x2001, 0, 0, 23),
    Network::v6(0x2001, 0xdb8, 0, 32),
    Network::v6(0x2002, 0, 0, 16),
    Network::v6(0x3fff, 0, 0, 20),
    Network::v6(0x2620, 0x4f, 0x8000, 48),
];

/// IPv6 that is never opened as part of a network.
const GUARDED_V6: [Network; 10] = [
    // Unspecified, loopback, and IPv4-compatible addresses.
    Network::v6(0, 0, 0, 96),
    Network::v6(0xfe80, 0, 0, 10),
    Network::v6(0xff00, 0, 0, 8),
    // IPv4 in other clothes, whose address can't be told reliably: local NAT64, Teredo, 6to4.
    Network::v6(0x64, 0xff9b, 1, 48),
    Network::v6(0x2001, 0, 0, 32),
    Network::v6(0x2002, 0, 0, 16),
    // Metadata services inside unique local space.
    Network::v6(0xfd00, 0xec2, 0, 32),
    Network::v6(0xfd20, 0xce, 0, 32),
    Network::v6(0xfd00, 0x42, 0, 32),
    Network::v6(0xfd00, 0xc1, 0, 32),
];

/// The well-known prefix of NAT64 (RFC 6052): the last four bytes are IPv4.
const NAT64: Network = Network::v6(0x64, 0xff9b, 0, 96);

/// Where an address leads. IPv4 that is written as IPv6 (`::ffff:…`) counts as the IPv4 that it is.
pub(crate) fn reach(address: IpAddr) -> Reach {
    match address.to_canonical() {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let is_in = |networks: &[Network]| networks.iter().any(|network| network.contains(address.into()));
    match () {
        () if is_in(&GUARDED_V4) => Reach::Guarded,
        () if is_in(&PRIVATE_V4) => Reach::Private,
        () => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let is_in = |networks: &[Network]| networks.iter().any(|network| network.contains(address.into()));
    match () {
        () if is_in(&GUARDED_V6) || is_translated(address) => Reach::Guarded,
        () if !GLOBAL_V6.contains(address.into()) || is_in(&EXCEPTIONS_V6) => Reach::Private,
        () => Reach::Public,
    }
}

/// IPv4-translated (RFC 2765): `::ffff:0:a.b.c.d`.
fn is_translated(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [0, 0, 0, 0, 0xffff, 0, _, _])
}

/// Whether no address of a network can be opened as part of it.
pub(crate) fn is_wholly_guarded(network: &Network) -> bool {
    GUARDED_V4.iter().chain(&GUARDED_V6).any(|guarded| guarded.covers(network))
}

/// The IPv4 address behind a NAT64 one.
pub(crate) fn behind_nat64(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(v6) = address else { return None };
    let [.., high, low] = v6.segments();
    NAT64.contains(address).then(|| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{GLOBAL_V6, Reach, behind_nat64, reach};
    use crate::network::{Network, network};

    /// The list of the design page, spelled again: what a test copies from the code it cannot judge.
    const REFUSED_V4: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 \
                              192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 \
                              203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32";
    const EXCEPTIONS_V6: &str = "2001::/23 2001:db8::/32 2002::/16 3fff::/20 2620:4f:8000::/48";

    fn networks(text: &str) -> Vec<Network> {
        text.split_whitespace().map(network).collect()
    }

    fn neighbours(network: &Network) -> Vec<IpAddr> {
        match network.bounds() {
            (IpAddr::V4(low), IpAddr::V4(high)) => [low.to_bits().checked_sub(1), high.to_bits().checked_add(1)]
                .into_iter()
                .flatten()
                .map(|bits| Ipv4Addr::from(bits).into())
                .collect(),
            (IpAddr::V6(low), IpAddr::V6(high)) => [low.to_bits().checked_sub(1), high.to_bits().checked_add(1)]
                .into_iter()
                .flatten()
                .map(|bits| Ipv6Addr::from(bits).into())
                .collect(),
            bounds => panic!("{bounds:?}"),
        }
    }

    #[test]
    fn every_refused_block_is_refused_from_end_to_end_and_not_beyond() {
        let refused = networks(REFUSED_V4);
        for network in &refused {
            let (low, high) = network.bounds();
            assert!(reach(low) != Reach::Public && reach(high) != Reach::Public, "{network}");
            for outside in neighbours(network) {
                let is_refused = refused.iter().any(|other| other.contains(outside));
                assert_eq!(reach(outside) != Reach::Public, is_refused, "{outside}");
            }
        }
        for network in networks(EXCEPTIONS_V6) {
            let (low, high) = network.bounds();
            assert!(reach(low) != Reach::Public && reach(high) != Reach::Public, "{network}");
            for outside in neighbours(&network) {
                let is_refused = networks(EXCEPTIONS_V6).iter().any(|other| other.contains(outside)) || !GLOBAL_V6.contains(outside);
                assert_eq!(reach(outside) != Reach::Public, is_refused, "{outside}");
            }
        }
    }

    #[test]
    fn what_leads_to_this_machine_its_link_or_metadata_is_guarded() {
        for guarded in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2001:0:1::",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:0:127.0.0.1",
        ] {
            assert_eq!(reach(guarded.parse().unwrap()), Reach::Guarded, "{guarded}");
        }
        for private in [
            "10.1.2.3",
            "192.168.1.1",
            "100.64.0.1",
            "fc00::1",
            "fdff::1",
            "::ffff:10.0.0.1",
            "64:ff9b::808:808",
            "fec0::1",
            "100::1",
            "5f00::1",
        ] {
            assert_eq!(reach(private.parse().unwrap()), Reach::Private, "{private}");
        }
        for public in ["8.8.8.8", "::ffff:8.8.8.8", "2606:4700:4700::1111", "2a00:1450::1", "2001:200::1"] {
            assert_eq!(reach(public.parse().unwrap()), Reach::Public, "{public}");
        }
    }

    #[test]
    fn nat64_has_its_ipv4_at_the_end() {
        assert_eq!(behind_nat64("64:ff9b::7f00:1".parse().unwrap()), Some("127.0.0.1".parse().unwrap()));
        assert_eq!(behind_nat64("64:ff9b:1::7f00:1".parse().unwrap()), None);
        assert_eq!(behind_nat64("8.8.8.8".parse().unwrap()), None);
    }

    proptest! {
        #[test]
        fn an_ipv4_address_is_public_exactly_when_no_block_of_the_design_has_it(bits in any::<u32>()) {
            let address = IpAddr::from(Ipv4Addr::from(bits));
            let refused = networks(REFUSED_V4).iter().any(|network| network.contains(address));
            prop_assert_eq!(reach(address) != Reach::Public, refused);
        }

        #[test]
        fn every_address_of_a_refused_block_is_refused(index in 0..19_usize, bits in any::<u32>()) {
            let network = networks(REFUSED_V4)[index];
            let (IpAddr::V4(low), IpAddr::V4(high)) = network.bounds() else { panic!("{network}") };
            let address = Ipv4Addr::from(low.to_bits() | (bits & (high.to_bits() ^ low.to_bits())));
            prop_assert!(reach(address.into()) != Reach::Public, "{}", address);
            let mapped = address.to_ipv6_mapped();
            prop_assert_eq!(reach(mapped.into()), reach(address.into()), "the same written as IPv6");
            for carried in [u128::from(bits), 0x64_ff9b << 96 | u128::from(bits), 0x2002 << 112 | u128::from(bits) << 80] {
                prop_assert!(reach(Ipv6Addr::from(carried).into()) != Reach::Public, "carried by IPv6");
            }
        }

        #[test]
        fn an_ipv6_address_is_public_exactly_inside_global_unicast_without_the_exceptions(bits in any::<u128>(), top in any::<bool>()) {
            // Half of them inside 2000::/3, or the test would hardly look there.
            let bits = if top { bits >> 3 | 1 << 125 } else { bits };
            let address = Ipv6Addr::from(bits);
            if address.to_ipv4_mapped().is_none() {
                let is_public = (address.segments()[0] & 0xe000) == 0x2000
                    && !networks(EXCEPTIONS_V6).iter().any(|network| network.contains(address.into()));
                prop_assert_eq!(reach(address.into()) == Reach::Public, is_public);
            }
        }
    }
}
