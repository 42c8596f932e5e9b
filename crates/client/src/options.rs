//! What a client needs to know before it can call a server.

use std::path::PathBuf;
use std::time::Duration;

use protocol::Secret;

/// Where the server is, who calls, and how long to wait.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server's address, such as `http://127.0.0.1:8080` or `https://events.example.org/base`. Never with a credential in it.
    pub url: String,
    /// The access token. Without one only `health` can be called.
    pub token: Option<Secret>,
    /// A file that the token is read from again when the server does not accept it: so a token is rotated without a restart.
    pub token_file: Option<PathBuf>,
    /// How long connecting may take, the TLS handshake included.
    pub connect_timeout: Duration,
    /// How long a whole call may take. A long poll has the time that it asks the server to wait on top.
    pub request_timeout: Duration,
    /// The most bytes of an answer's body that are read into memory; a longer one is an error.
    pub max_response_bytes: usize,
    /// The most bytes of one gateway frame; a longer one ends the connection.
    pub max_frame_bytes: usize,
}

impl ClientOptions {
    /// A client of the server at `url`, without a token and with the usual bounds.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: None,
            token_file: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            max_response_bytes: 64 << 20,
            max_frame_bytes: 32 << 20,
        }
    }

    /// Authenticates with this token.
    #[must_use]
    pub fn with_token(mut self, token: Secret) -> Self {
        self.token = Some(token);
        self
    }
}
