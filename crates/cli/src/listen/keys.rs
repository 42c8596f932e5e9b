//! The secrets of the file, and the URL that senders call.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use client::{VerifiedDelivery, WebhookMessage, WebhookProver, WebhookRejection, WebhookSecret, WebhookVerifier};

use crate::failure::Failure;

/// The most of the file that is read.
const FILE_MAX: u64 = 64 * 1024;

/// What is verified with. The file is read again when nothing of it fits: somebody may have rotated.
#[derive(Debug)]
pub(super) struct Keys {
    file: PathBuf,
    current: Mutex<Current>,
}

#[derive(Clone, Debug)]
struct Current {
    text: String,
    verifier: WebhookVerifier,
    /// The first of the file.
    secret: WebhookSecret,
}

impl Keys {
    /// Reads the file.
    pub(super) fn read(file: PathBuf) -> Result<Self, Failure> {
        let current = read(&file)?;
        Ok(Self { file, current: Mutex::new(current) })
    }

    /// Verifies a request with the secrets of the file.
    pub(super) fn verify(&self, message: &WebhookMessage<'_>) -> Result<VerifiedDelivery, WebhookRejection> {
        let known = self.current();
        let verified = known.verifier.verify_either(message);
        if verified != Err(WebhookRejection::Signature) {
            return verified;
        }
        match read(&self.file) {
            Ok(read) if read.text != known.text => {
                let verified = read.verifier.verify_either(message);
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) = read;
                verified
            }
            _ => verified,
        }
    }

    /// What challenges are answered with: the first secret of the file.
    pub(super) fn prover(&self) -> WebhookProver {
        (&self.current().secret).into()
    }

    fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read(file: &std::path::Path) -> Result<Current, Failure> {
    use std::io::Read as _;

    let shown = file.display();
    let mut text = String::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(FILE_MAX).read_to_string(&mut text));
    read.map_err(|error| Failure::Configuration(format!("{shown} cannot be read: {error}")))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let secrets: Result<Vec<_>, _> = lines.map(WebhookSecret::parse).collect();
    let secrets = secrets.map_err(|error| Failure::Configuration(format!("{shown}: {error}")))?;
    let none = || Failure::Configuration(format!("{shown} has no secret"));
    let secret = secrets.first().cloned().ok_or_else(none)?;
    let verifier = WebhookVerifier::new(secrets).map_err(|_| none())?;
    Ok(Current { text, verifier, secret })
}

/// The URL that is registered: what signatures cover of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicUrl {
    pub(super) authority: String,
    pub(super) path: String,
}

impl PublicUrl {
    /// Reads `https://host/path`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("an absolute URL such as https://agent.example.com/hook")?;
        let port = match scheme {
            "https" => ":443",
            "http" => ":80",
            _ => return Err("a URL of https or http".to_owned()),
        };
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() || authority.contains('@') {
            return Err("a URL with a host, and without a user name".to_owned());
        }
        let authority = authority.to_ascii_lowercase();
        let authority = authority.strip_suffix(port).unwrap_or(&authority).to_owned();
        Ok(Self { authority, path: format!("/{path}") })
    }
}

#[cfg(test)]
mod tests {
    use super::PublicUrl;

    #[test]
    fn a_public_url_is_what_signatures_cover() {
        for (text, authority, path) in [
            ("https://Agent.example.com/hook?key=1", "agent.example.com", "/hook"),
            ("https://agent.example.com:443", "agent.example.com", "/"),
            ("http://agent:8080/a/b", "agent:8080", "/a/b"),
        ] {
            assert_eq!(PublicUrl::parse(text), Ok(PublicUrl { authority: authority.to_owned(), path: path.to_owned() }));
        }
        for bad in ["", "agent.example.com", "ftp://a/", "https:///x", "https://u@a/"] {
            assert!(PublicUrl::parse(bad).is_err(), "{bad}");
        }
    }
}
