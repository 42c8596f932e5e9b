//! Which URLs may be called at all, before any name is looked up: scheme, host and port. How a URL may be spelled is the business of
//! [`HookUrl`], whose parser turns every spelling of an IPv4 address (decimal, hexadecimal, octal, short) into that address.

use std::fmt;
use std::net::IpAddr;

use hooks::{HookUrl, UrlRefusal};
use url::{Host, Url};

/// A URL that may be called once its addresses were judged. Shows its host only: paths and queries are credentials.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: Url,
    pub(crate) host: TargetHost,
    pub(crate) port: u16,
}

/// Whom a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetHost {
    /// A name, in lower case and without a final dot.
    Name(String),
    /// An address, in its canonical form.
    Address(IpAddr),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({}://{}:{}/…)", self.url.scheme(), self.host, self.port)
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Which schemes are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Schemes {
    /// https.
    #[default]
    Https,
    /// https and http (`hooks.allow_http`).
    HttpToo,
}

impl Target {
    /// Takes a URL apart.
    pub(crate) fn of(url: &HookUrl, schemes: Schemes) -> Result<Self, UrlRefusal> {
        match url.url().scheme() {
            "https" => {}
            "http" if schemes == Schemes::HttpToo => {}
            _ => return Err(UrlRefusal::Scheme),
        }
        let host = match url.parsed_host().ok_or(UrlRefusal::Malformed)? {
            Host::Ipv4(address) => TargetHost::Address(address.into()),
            Host::Ipv6(address) => TargetHost::Address(IpAddr::from(address).to_canonical()),
            Host::Domain(name) => TargetHost::Name(name_of(name)?),
        };
        let port = url.url().port_or_known_default().ok_or(UrlRefusal::Malformed)?;
        // What is dialled, what certificates are compared with and what the receiver is told is the host that is judged here.
        let mut url = url.url().clone();
        url.set_host(Some(&host.to_string())).map_err(|_| UrlRefusal::Malformed)?;
        Ok(Self { url, host, port })
    }

    /// The host, for logs.
    pub(crate) fn host(&self) -> String {
        self.host.to_string()
    }
}

fn name_of(name: &str) -> Result<String, UrlRefusal> {
    let name = name.strip_suffix('.').unwrap_or(name);
    // What a resolver would be asked for: names of hosts, and nothing that a C library could read as an address.
    let is_label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_numeric =
        name.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()) && last.parse::<f64>().is_ok());
    if name.len() > 253 || !name.split('.').all(is_label) || is_numeric {
        return Err(UrlRefusal::Malformed);
    }
    Ok(name.to_ascii_lowercase())
}

/// The hosts that may be called (`hooks.url_allow_list`): `hooks.example.com`, or `*.example.com` for every name below. Empty allows all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostList(Vec<String>);

impl HostList {
    /// A list of such entries; letters may be of either case.
    pub(crate) fn new<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Self {
        Self(entries.into_iter().map(|entry| entry.as_ref().trim().trim_end_matches('.').to_ascii_lowercase()).collect())
    }

    pub(crate) fn allows(&self, host: &TargetHost) -> bool {
        let host = host.to_string();
        self.0.is_empty()
            || self.0.iter().any(|entry| match entry.strip_prefix('*') {
                Some(suffix) => suffix.starts_with('.') && host.len() > suffix.len() && host.ends_with(suffix),
                None => *entry == host,
            })
    }
}

#[cfg(test)]
mod tests {
    use hooks::{HookUrl, UrlRefusal};
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{HostList, Schemes, Target, TargetHost};

    fn parse(text: &str) -> Result<Target, UrlRefusal> {
        Target::of(&HookUrl::parse(text)?, Schemes::HttpToo)
    }

    #[test]
    fn plain_urls_are_taken_with_their_port() {
        for (text, host, port) in [
            ("https://agent.example.com/hook?key=1", "agent.example.com", 443),
            ("HTTPS://Agent.Example.COM./", "agent.example.com", 443),
            ("http://agent:8080", "agent", 8080),
            ("https://bücher.example/", "xn--bcher-kva.example", 443),
            ("https://[2606:4700::1]:8443/", "[2606:4700::1]", 8443),
            ("https://[::ffff:8.8.8.8]/", "8.8.8.8", 443),
            ("https://a_b.example/%41?x=%20@", "a_b.example", 443),
        ] {
            let target = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((target.host().as_str(), target.port), (host, port), "{text}");
            assert_eq!(target.url.host_str(), Some(host), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        for text in [
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "0x7f.1",
            "017700000001",
            "127.0.1",
            "１２７.0.0.1",
            "127。0。0。1",
            "%31%32%37.0.0.1",
        ] {
            match parse(&format!("http://{text}/")) {
                Ok(target) => assert_eq!(target.host, TargetHost::Address([127, 0, 0, 1].into()), "{text}"),
                Err(refusal) => assert_eq!(refusal, UrlRefusal::Malformed, "{text}"),
            }
        }
    }

    #[test]
    fn hosts_that_are_neither_names_nor_addresses_are_malformed() {
        for text in [
            "https://[127.0.0.1]/",
            "https://[::1%25eth0]/",
            "https://256.256.256.256/",
            "https://1.2.3.4.5/",
            "https://0x.example.0x/",
            "https://example..com/",
            "https://.example.com/",
            "https://./",
            "https://a*b.example/",
            "https://a,b.example/",
            "https://a;b.example/",
            "https://exa%00mple.com/",
            "https://example.com:99999/",
        ] {
            assert_eq!(parse(text), Err(UrlRefusal::Malformed), "{text}");
        }
    }

    #[test]
    fn only_https_is_called_and_http_where_that_is_allowed() {
        let url = HookUrl::parse("http://example.com/").unwrap();
        assert_eq!(Target::of(&url, Schemes::Https), Err(UrlRefusal::Scheme));
        assert!(Target::of(&url, Schemes::HttpToo).is_ok());
        assert!(Target::of(&HookUrl::parse("https://example.com/").unwrap(), Schemes::Https).is_ok());
    }

    #[test]
    fn a_target_shows_its_host_and_nothing_that_could_be_a_credential() {
        let shown = format!("{:?}", parse("https://agent.example.com/SECRET?key=SECRET").unwrap());
        assert!(shown.contains("agent.example.com") && !shown.contains("SECRET"), "{shown}");
    }

    #[test]
    fn a_list_of_hosts_admits_its_hosts_and_names_below() {
        let list = HostList::new(["Hooks.example.com", "*.agents.example", "192.168.1.9"]);
        for (url, expected) in [
            ("https://hooks.example.com/", true),
            ("https://a.hooks.example.com/", false),
            ("https://a.agents.example/", true),
            ("https://a.b.agents.example./", true),
            ("https://agents.example/", false),
            ("https://evilagents.example/", false),
            ("https://192.168.1.9/", true),
            ("https://3232235785/", true),
            ("https://192.168.1.10/", false),
        ] {
            assert_eq!(list.allows(&parse(url).unwrap().host), expected, "{url}");
        }
        assert!(HostList::default().allows(&parse("https://anything.example/").unwrap().host));
        assert!(!HostList::new(["*"]).allows(&parse("https://anything.example/").unwrap().host), "a star alone is no name");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic_and_no_spelling_of_an_address_is_taken_for_a_name(text in "(https?://)?[ -~]{0,40}", bytes in any::<u32>()) {
            let _ = parse(&text);
            let address = std::net::Ipv4Addr::from(bytes);
            let [a, b, c, d] = address.octets();
            for spelled in [
                format!("{bytes}"),
                format!("{bytes:#x}"),
                format!("0{bytes:o}"),
                format!("{a:#x}.{b}.0{c:o}.{d}"),
                format!("{a}.{}", bytes & 0xff_ffff),
            ] {
                if let Ok(target) = parse(&format!("http://{spelled}/")) {
                    prop_assert!(target.host == TargetHost::Address(address.into()), "{}: {:?}", spelled, target);
                }
            }
        }
    }
}
