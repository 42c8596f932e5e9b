//! Where the NATS servers are, and under which subject nodes talk.

use std::fmt;
use std::time::Duration;

use async_nats::ServerAddr;
use thiserror::Error;

/// The settings of hints over NATS.
#[derive(Clone)]
pub struct NatsOptions {
    /// `cluster.nats_url`: `nats://user:password@host:4222`, or `tls://…`; several are separated by commas. Never logged.
    pub url: String,
    /// `cluster.nats_subject_prefix`: installations that share NATS servers are told apart by it.
    pub subject_prefix: String,
    /// Names this node in the servers' list of connections.
    pub node: String,
    /// `database.listen_reconnect_backoff_cap`: the longest pause before a lost connection is tried again.
    pub reconnect_backoff_cap: Duration,
}

impl fmt::Debug for NatsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsOptions").field("subject_prefix", &self.subject_prefix).field("node", &self.node).finish_non_exhaustive()
    }
}

/// Why hints cannot go over NATS.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum OptionsError {
    /// The address is none. It is not repeated: it may hold a password.
    #[error("cluster.nats_url cannot be used: it is not of the form nats://host:port")]
    Url,
    /// The prefix is no subject.
    #[error("cluster.nats_subject_prefix cannot be used: it must be words of letters, digits, '_' and '-', separated by dots")]
    SubjectPrefix,
}

impl NatsOptions {
    /// The servers.
    pub(crate) fn servers(&self) -> Result<Vec<ServerAddr>, OptionsError> {
        self.url.split(',').map(|url| url.trim().parse::<ServerAddr>().map_err(|_| OptionsError::Url)).collect()
    }

    /// The one subject that hints go over.
    pub(crate) fn subject(&self) -> Result<String, OptionsError> {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        if self.subject_prefix.len() > 128 || !self.subject_prefix.split('.').all(is_word) {
            return Err(OptionsError::SubjectPrefix);
        }
        Ok(format!("{}.hints", self.subject_prefix))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{NatsOptions, OptionsError};

    fn options(url: &str, prefix: &str) -> NatsOptions {
        NatsOptions {
            url: url.to_owned(),
            subject_prefix: prefix.to_owned(),
            node: "n".to_owned(),
            reconnect_backoff_cap: Duration::from_secs(1),
        }
    }

    #[test]
    fn several_servers_are_separated_by_commas() {
        let servers = options("nats://a:4222, tls://u:p@b:4223", "doorstep").servers().unwrap();
        assert_eq!(
            servers.iter().map(|server| (server.host().to_owned(), server.port())).collect::<Vec<_>>(),
            [("a".to_owned(), 4222), ("b".to_owned(), 4223)]
        );
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_repeating_it() {
        let error = options("http://user:secret@host", "doorstep").servers().unwrap_err();
        assert_eq!(error, OptionsError::Url);
        assert!(!error.to_string().contains("secret"));
        assert!(!format!("{:?}", options("nats://user:secret@host", "doorstep")).contains("secret"));
    }

    #[test]
    fn the_prefix_is_words_and_no_pattern() {
        assert_eq!(options("nats://a", "acme.doorstep-1").subject().unwrap(), "acme.doorstep-1.hints");
        for bad in ["", "a.", "a..b", "*", "a.>", "a b", &"x".repeat(129)] {
            assert_eq!(options("nats://a", bad).subject(), Err(OptionsError::SubjectPrefix), "{bad:?}");
        }
    }
}
