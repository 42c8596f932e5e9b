//! The URL of a hook: a credential, so it is shown and logged in parts only.

use std::fmt;

use thiserror::Error;
use url::{Host, Url};

/// Why a URL is not called. The class is told, never what was found there.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
pub enum UrlRefusal {
    /// No URL, or one without a host, or longer than 2,048 bytes, or with a fragment.
    #[error("not an absolute URL without a fragment, of at most 2048 bytes")]
    Malformed,
    /// Neither https nor, where `hooks.allow_http` permits it, http.
    #[error("the scheme is not allowed")]
    Scheme,
    /// It carries a user name or a password.
    #[error("a user name or password in the URL is not allowed")]
    Userinfo,
    /// The port is not in `hooks.ports`.
    #[error("the port is not allowed")]
    Port,
    /// `hooks.url_allow_list` does not have the host.
    #[error("the host is not in the list of allowed hosts")]
    NotListed,
    /// The name has no address.
    #[error("the host name cannot be resolved")]
    Unresolvable,
    /// The host is, or one of its addresses is, in a network that hooks may not reach.
    #[error("the host is in a network that is not allowed")]
    Network,
}
crate::hook::words!(UrlRefusal {
    Malformed => "malformed",
    Scheme => "scheme",
    Userinfo => "userinfo",
    Port => "port",
    NotListed => "not_listed",
    Unresolvable => "unresolvable",
    Network => "network",
});

/// Most bytes of a URL.
const LENGTH_MAX: usize = 2_048;

/// An absolute http or https URL without userinfo and fragment. Whether it may be called is the outbound client's to say.
///
/// [`fmt::Debug`] and [`fmt::Display`] show the host only: path and query may be secrets.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HookUrl(Url);

impl HookUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`UrlRefusal::Malformed`], [`UrlRefusal::Scheme`] or [`UrlRefusal::Userinfo`].
    pub fn parse(text: &str) -> Result<Self, UrlRefusal> {
        // The parser forgives white space, backslashes, missing and additional slashes, and escapes in the host; other readers of the same text
        // would see another host.
        if text.len() > LENGTH_MAX || text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(UrlRefusal::Malformed);
        }
        let url = Url::parse(text).map_err(|_| UrlRefusal::Malformed)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlRefusal::Scheme);
        }
        let authority = authority_of(text).unwrap_or_default();
        if !url.username().is_empty() || url.password().is_some() || authority.contains('@') {
            return Err(UrlRefusal::Userinfo);
        }
        if authority.is_empty() || authority.contains('%') {
            return Err(UrlRefusal::Malformed);
        }
        if url.fragment().is_some() || url.host_str().is_none_or(str::is_empty) || url.as_str().len() > LENGTH_MAX {
            return Err(UrlRefusal::Malformed);
        }
        Ok(Self(url))
    }

    /// The whole URL, for the store and the client. Never to be logged.
    pub fn reveal(&self) -> &str {
        self.0.as_str()
    }

    /// The parsed URL, for the client. Never to be logged.
    pub const fn url(&self) -> &Url {
        &self.0
    }

    /// As owners and operators see it: without the query.
    pub fn shown(&self) -> String {
        let mut shown = self.0.clone();
        shown.set_query(None);
        shown.into()
    }

    /// The host, for logs and for the cap per host.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The host, as a name or a literal address.
    pub fn parsed_host(&self) -> Option<Host<&str>> {
        self.0.host()
    }

    /// The port that is dialled.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    /// Whether it is https.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// `@authority` of RFC 9421 (section 2.2.3) and the `Host` header: lower-case host, and the port unless it is the scheme's own.
    pub fn authority(&self) -> String {
        let host = self.host().to_ascii_lowercase();
        self.0.port().map_or(host.clone(), |port| format!("{host}:{port}"))
    }

    /// `@path` of RFC 9421 (section 2.2.6).
    pub fn path(&self) -> &str {
        self.0.path()
    }
}

/// What stands between the two slashes behind the scheme and the path; nothing when these are not there.
fn authority_of(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(':')?;
    rest.strip_prefix("//")?.split(['/', '?', '#']).next()
}

impl fmt::Display for HookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.host())
    }
}

impl fmt::Debug for HookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HookUrl({}…)", self.host())
    }
}

#[cfg(test)]
mod tests {
    use super::{HookUrl, UrlRefusal};

    #[test]
    fn what_is_no_plain_absolute_url_is_refused() {
        for (text, refusal) in [
            ("", UrlRefusal::Malformed),
            ("/path", UrlRefusal::Malformed),
            ("https://", UrlRefusal::Malformed),
            ("https://example.com/#part", UrlRefusal::Malformed),
            ("https://example.com/ x", UrlRefusal::Malformed),
            ("https:\\\\example.com/", UrlRefusal::Malformed),
            ("https://example.com\\@127.0.0.1/", UrlRefusal::Malformed),
            ("ftp://example.com/", UrlRefusal::Scheme),
            ("file:///etc/passwd", UrlRefusal::Scheme),
            ("https://sam:pw@example.com/", UrlRefusal::Userinfo),
            ("https://@example.com/", UrlRefusal::Userinfo),
            ("https://:@example.com/", UrlRefusal::Userinfo),
            ("http:example.com", UrlRefusal::Malformed),
            ("https:/example.com/", UrlRefusal::Malformed),
            ("https:///example.com/", UrlRefusal::Malformed),
            ("https:////example.com/", UrlRefusal::Malformed),
            ("https:example.com/?next=http://example.org/", UrlRefusal::Malformed),
            ("https:sam@example.com/", UrlRefusal::Userinfo),
            ("https://ex%61mple.com/", UrlRefusal::Malformed),
            ("https://%31%32%37.0.0.1/", UrlRefusal::Malformed),
            ("https://example.com%3A8443/", UrlRefusal::Malformed),
        ] {
            assert_eq!(HookUrl::parse(text), Err(refusal), "{text}");
        }
        assert_eq!(HookUrl::parse(&format!("https://example.com/{}", "x".repeat(2_048))), Err(UrlRefusal::Malformed));
    }

    #[test]
    fn a_url_shows_its_host_only_and_to_its_owner_no_query() {
        let url = HookUrl::parse("https://Hooks.Example.com:8443/services/T0/SECRET?token=CANARY").unwrap();
        for text in [format!("{url}"), format!("{url:?}")] {
            assert!(text.contains("hooks.example.com") && !text.contains("SECRET") && !text.contains("CANARY"), "{text}");
        }
        assert_eq!(url.shown(), "https://hooks.example.com:8443/services/T0/SECRET");
        assert_eq!((url.authority().as_str(), url.path(), url.port()), ("hooks.example.com:8443", "/services/T0/SECRET", 8443));
        assert_eq!(HookUrl::parse("https://example.com:443/").unwrap().authority(), "example.com");
        assert_eq!(HookUrl::parse("https://[2001:db8::1]:444").unwrap().authority(), "[2001:db8::1]:444");
    }
}
