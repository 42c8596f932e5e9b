//! The server's address: checked once, joined with paths from then on.

use std::net::IpAddr;

use reqwest::Url;
use thiserror::Error;

/// Why a text is not a server's address.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InvalidAddress {
    /// Not a URL at all.
    #[error("not a URL ({0}): write it as in http://127.0.0.1:7420 or https://events.example.org")]
    NotAUrl(String),
    /// Neither http nor https.
    #[error("it begins with `{0}:`: write http:// or https:// before the name of the server, as in http://127.0.0.1:7420")]
    Scheme(String),
    /// A user name or password is in it; it would end up in logs.
    #[error("a credential in the address would be logged: pass the token by itself")]
    Credential,
    /// A query or fragment is in it.
    #[error("the address of a server has no query and no fragment")]
    Extra,
}

/// The server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address(Url);

impl Address {
    /// Checks `text`.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidAddress> {
        let url = Url::parse(text.trim()).map_err(|error| InvalidAddress::NotAUrl(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidAddress::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidAddress::Credential);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidAddress::Extra);
        }
        Ok(Self(url))
    }

    /// The address of `path` below the server's own, each part escaped.
    pub(crate) fn join(&self, path: &[&str]) -> Url {
        let mut url = self.0.clone();
        // Fails only for addresses that cannot be a base, which http and https ones always can.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// Whether the transport is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Whether the server is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.0.host_str().is_some_and(|host| {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            bare == "localhost" || bare.ends_with(".localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, InvalidAddress};

    #[test]
    fn paths_are_joined_below_the_base_and_escaped() {
        let bare = Address::parse("http://localhost:8080").unwrap();
        assert_eq!(bare.join(&["v1", "events"]).as_str(), "http://localhost:8080/v1/events");
        let based = Address::parse("https://example.org/doorstep/").unwrap();
        assert_eq!(based.join(&["v1", "a/b?c"]).as_str(), "https://example.org/doorstep/v1/a%2Fb%3Fc");
        assert_eq!(based.to_string(), "https://example.org/doorstep");
    }

    #[test]
    fn credentials_and_other_schemes_are_refused() {
        assert_eq!(Address::parse("http://sam:secret@localhost"), Err(InvalidAddress::Credential));
        assert_eq!(Address::parse("http://dsp_agent_x@localhost"), Err(InvalidAddress::Credential));
        assert_eq!(Address::parse("http://localhost/?token=x"), Err(InvalidAddress::Extra));
        assert_eq!(Address::parse("ws://localhost"), Err(InvalidAddress::Scheme("ws".to_owned())));
        assert!(matches!(Address::parse("localhost:8080"), Err(InvalidAddress::Scheme(_))));
        assert!(matches!(Address::parse(""), Err(InvalidAddress::NotAUrl(_))));
    }

    #[test]
    fn this_machine_is_recognised() {
        for here in ["http://localhost:1", "http://127.0.0.9", "http://[::1]:80", "http://a.localhost"] {
            assert!(Address::parse(here).unwrap().is_loopback(), "{here}");
        }
        for there in ["http://example.org", "http://10.0.0.1", "http://127.0.0.1.example.org", "https://[2001:db8::1]"] {
            assert!(!Address::parse(there).unwrap().is_loopback(), "{there}");
        }
    }
}
