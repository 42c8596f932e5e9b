//! Which URLs may be called at all, before any name is looked up. Must not know addresses of names.
//!
//! The text is judged before it is parsed, so that nothing depends on how forgiving a parser is: control characters, backslashes, missing
//! or additional slashes, percent signs in a host and userinfo are refused as they are written. The parser then turns every spelling of an
//! IPv4 address that exists (decimal, hexadecimal, octal, short) into that address.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;
use url::{Host, Url};

/// The longest URL, in bytes.
pub const MAX_URL_BYTES: usize = 2048;

/// A URL that may be called once its addresses were judged. Shows its host only: paths and queries are credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
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

/// Why a URL is not called, whatever its host may resolve to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidTarget {
    /// It is no URL, or is written in a way that programs read differently.
    #[error("it is not a plain URL such as https://agent.example.com/hook")]
    Malformed,
    /// Longer than [`MAX_URL_BYTES`].
    #[error("it is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
    /// Neither https, nor http where that is allowed.
    #[error("its scheme is not allowed")]
    Scheme,
    /// It has a user name or a password.
    #[error("it has a user name or a password")]
    Userinfo,
    /// Its port is not one of `hooks.ports`.
    #[error("its port is not allowed")]
    Port,
    /// Its host is not on `hooks.url_allow_list`.
    #[error("its host is not on the list of allowed hosts")]
    Host,
}

/// Which schemes are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schemes {
    /// https.
    #[default]
    Https,
    /// https and http (`hooks.allow_http`).
    HttpToo,
}

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`InvalidTarget`], except [`InvalidTarget::Port`] and [`InvalidTarget::Host`], which depend on more than the URL.
    pub fn parse(text: &str, schemes: Schemes) -> Result<Self, InvalidTarget> {
        if text.len() > MAX_URL_BYTES {
            return Err(InvalidTarget::TooLong);
        }
        let (scheme, rest) = text.split_once(':').ok_or(InvalidTarget::Malformed)?;
        judge_scheme(scheme, schemes)?;
        judge_spelling(rest)?;
        let mut url = Url::parse(text).map_err(|_| InvalidTarget::Malformed)?;
        judge_scheme(url.scheme(), schemes)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidTarget::Userinfo);
        }
        let host = match url.host().ok_or(InvalidTarget::Malformed)? {
            Host::Ipv4(address) => TargetHost::Address(address.into()),
            Host::Ipv6(address) => TargetHost::Address(IpAddr::from(address).to_canonical()),
            Host::Domain(name) => TargetHost::Name(name_of(name)?),
        };
        let port = url.port_or_known_default().ok_or(InvalidTarget::Malformed)?;
        // What is dialled, what certificates are compared with and what the receiver is told is the host that is judged here.
        url.set_host(Some(&host.to_string())).map_err(|_| InvalidTarget::Malformed)?;
        Ok(Self { url, host, port })
    }

    /// The host, for logs.
    pub fn host(&self) -> String {
        self.host.to_string()
    }
}

fn judge_scheme(scheme: &str, schemes: Schemes) -> Result<(), InvalidTarget> {
    match scheme.to_ascii_lowercase().as_str() {
        "https" => Ok(()),
        "http" if schemes == Schemes::HttpToo => Ok(()),
        _ => Err(InvalidTarget::Scheme),
    }
}

/// What follows the scheme's colon: two slashes, and an authority in which nothing can be read in two ways.
fn judge_spelling(rest: &str) -> Result<(), InvalidTarget> {
    // Parsers drop or turn such characters; fragments are never sent, so that they only confuse.
    if rest.chars().any(|c| c.is_control() || c.is_whitespace() || matches!(c, '\\' | '#')) {
        return Err(InvalidTarget::Malformed);
    }
    let rest = rest.strip_prefix("//").ok_or(InvalidTarget::Malformed)?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match () {
        () if authority.contains('@') => Err(InvalidTarget::Userinfo),
        () if authority.is_empty() || authority.contains('%') => Err(InvalidTarget::Malformed),
        () => Ok(()),
    }
}

fn name_of(name: &str) -> Result<String, InvalidTarget> {
    let name = name.strip_suffix('.').unwrap_or(name);
    // What a resolver would be asked for: names of hosts, and nothing that a C library could read as an address.
    let is_label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_numeric = name.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()) && last.parse::<f64>().is_ok());
    if name.len() > 253 || !name.split('.').all(is_label) || is_numeric {
        return Err(InvalidTarget::Malformed);
    }
    Ok(name.to_ascii_lowercase())
}

/// The hosts that may be called (`hooks.url_allow_list`): `hooks.example.com`, or `*.example.com` for every name below. Empty allows all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostList(Vec<String>);

impl HostList {
    /// A list of such entries; letters may be of either case.
    pub fn new<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Self {
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
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{HostList, InvalidTarget, MAX_URL_BYTES, Schemes, Target, TargetHost};

    fn parse(text: &str) -> Result<Target, InvalidTarget> {
        Target::parse(text, Schemes::HttpToo)
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
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        for text in ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "0x7f.1", "017700000001", "127.0.1", "１２７.0.0.1", "127。0。0。1"] {
            let target = parse(&format!("http://{text}/")).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(target.host, TargetHost::Address([127, 0, 0, 1].into()), "{text}");
        }
    }

    #[test]
    fn what_programs_read_differently_is_malformed() {
        let long = format!("https://example.com/{}", "x".repeat(MAX_URL_BYTES));
        assert_eq!(parse(&long), Err(InvalidTarget::TooLong));
        for text in [
            "", "https", "https:", "https:/", "https://", "https:///", "https:example.com", "https:/example.com", "https:///example.com",
            "https:\\\\example.com\\", "https://example.com\\@evil.example/", "https://exa\tmple.com/", "https://example.com/\n", " https://example.com/",
            "https://example.com/ ", "https://exam%70le.com/", "https://%31%32%37.0.0.1/", "https://example.com#@evil.example/", "https://[127.0.0.1]/",
            "https://[::1%25eth0]/", "https://256.256.256.256/", "https://1.2.3.4.5/", "https://0x.example.0x/", "https://example..com/", "https://-/%zz\u{7f}",
            "https://a b/", "https://example.com:99999/", "https://example.com:x/", "https://.example.com/", "https://example.com/\u{2028}",
        ] {
            assert!(matches!(parse(text), Err(InvalidTarget::Malformed | InvalidTarget::Scheme)), "{text:?}: {:?}", parse(text));
        }
    }

    #[test]
    fn only_https_is_called_and_http_where_that_is_allowed() {
        for text in ["ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1/", "ws://example.com/", "javascript:alert(1)", "https+x://example.com/"] {
            assert_eq!(parse(text), Err(InvalidTarget::Scheme), "{text}");
        }
        assert_eq!(Target::parse("http://example.com/", Schemes::Https), Err(InvalidTarget::Scheme));
        assert!(Target::parse("https://example.com/", Schemes::Https).is_ok());
    }

    #[test]
    fn userinfo_is_refused_also_when_it_is_empty() {
        for text in ["https://user@example.com/", "https://user:pw@example.com/", "https://@example.com/", "https://:@example.com/", "https://a@b@example.com/"] {
            assert_eq!(parse(text), Err(InvalidTarget::Userinfo), "{text}");
        }
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
        fn no_text_makes_the_parser_panic_and_no_host_slips_through_as_a_name_that_is_an_address(text in "(https?://)?[ -~]{0,40}", bytes in any::<u32>()) {
            let _ = parse(&text);
            let address = std::net::Ipv4Addr::from(bytes);
            let [a, b, c, d] = address.octets();
            for spelled in [format!("{bytes}"), format!("{bytes:#x}"), format!("0{bytes:o}"), format!("{a:#x}.{b}.0{c:o}.{d}"), format!("{a}.{}", bytes & 0xff_ffff)] {
                if let Ok(target) = parse(&format!("http://{spelled}/")) {
                    prop_assert!(target.host == TargetHost::Address(address.into()), "{}: {:?}", spelled, target);
                }
            }
        }
    }
}
