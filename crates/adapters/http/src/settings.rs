//! What an operator may set about HTTP. Defaults serve a laptop and a small server alike.

use std::time::Duration;

use protocol::PublishLimits;

/// Bounds of the HTTP interface. The configuration key of each field is named in its documentation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `http.max_connections`: open connections, WebSockets included. One more is answered 503 and closed.
    pub max_connections: usize,
    /// `http.header_read_timeout`: from the first byte of a request to the end of its head.
    pub header_read_timeout: Duration,
    /// `http.keep_alive_timeout`: how long a connection may wait for its next request. Longer than what load balancers keep idle.
    pub keep_alive_timeout: Duration,
    /// `http.request_timeout`: for a request's body to arrive.
    pub request_timeout: Duration,
    /// `http.max_header_bytes`: of a request's head; at least 8 KiB.
    pub max_header_bytes: usize,
    /// `http.max_body_bytes`: of a request's body, except for publishing.
    pub max_body_bytes: usize,
    /// `publish.max_request_bytes`: of a publish request's body.
    pub max_publish_bytes: usize,
    /// `http.max_inbox_bytes`: of the body of a request about an inbox: a batch may carry many results.
    pub max_inbox_bytes: usize,
    /// `http.public_url`: how clients reach this server, such as `https://doorstep.example.net`; without a slash at its end. Without it,
    /// addresses in answers are relative or made from the request's `Host`.
    pub public_url: Option<String>,
    /// `sync.event_retention`: how long the log keeps events, as clients are told; for ever when absent.
    pub event_retention: Option<Duration>,
    /// `publish.*`: what a publish request may hold.
    pub publish: PublishLimits,
    /// `http.default_page_size`: entries of a listing that names no `limit`.
    pub default_page_size: usize,
    /// `http.max_page_size`: entries of a listing at most; a higher `limit` is capped to it.
    pub max_page_size: usize,
    /// `gateway.write_timeout`: how long a peer may leave what was sent to it unread.
    pub write_timeout: Duration,
    /// `gateway.max_frame_bytes`: of a frame from a client.
    pub max_frame_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_connections: 20_000,
            header_read_timeout: Duration::from_secs(10),
            keep_alive_timeout: Duration::from_secs(75),
            request_timeout: Duration::from_secs(30),
            max_header_bytes: 32 * 1024,
            max_body_bytes: 64 * 1024,
            max_publish_bytes: 16 * 1024 * 1024,
            max_inbox_bytes: 8 * 1024 * 1024,
            public_url: None,
            event_retention: None,
            publish: PublishLimits {
                max_events: 1_000,
                max_payload_bytes: 1024 * 1024,
                max_depth: 64,
                max_audience: 100,
                max_recipients: 100,
                max_correlation_entries: 32,
                max_correlation_chars: 256,
            },
            default_page_size: 100,
            max_page_size: 1_000,
            write_timeout: Duration::from_secs(10),
            max_frame_bytes: 64 * 1024,
        }
    }
}
