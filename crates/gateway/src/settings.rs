//! What delivery can be told: every limit, window and threshold by the name of its configuration key.

use std::time::Duration;

/// Settings of delivery. The field documentation names the configuration key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `gateway.heartbeat_interval`: how often a peer is pinged. One that is silent for two intervals is closed with 4004.
    pub heartbeat_interval: Duration,
    /// `gateway.identify_timeout`: how long a new connection has until `identify` or `resume`, and then how long answering it may take.
    pub identify_timeout: Duration,
    /// `gateway.write_timeout`: how long a peer has to drain what is written at once; then it is closed with 4014.
    pub write_timeout: Duration,
    /// `gateway.max_frame_bytes`: the largest frame that a peer may send; enforced by the transport.
    pub max_frame_bytes: usize,
    /// `gateway.max_frames_per_second`: frames that a peer may send, averaged over a second or two.
    pub max_frames_per_second: u32,
    /// `gateway.max_connections`: connections of the whole process, the unidentified included.
    pub max_connections: usize,
    /// `gateway.max_connections_per_principal`: connections, streams and resumable sessions of one principal.
    pub max_connections_per_principal: usize,
    /// `sync.resume_window`: how long a session survives its connection.
    pub resume_window: Duration,
    /// `sync.catchup_page_size`: events read at once.
    pub catchup_page_size: usize,
    /// `sync.catchup_page_bytes`: bytes read at once; a larger event is read alone.
    pub catchup_page_bytes: usize,
    /// `sync.cursor_advance_every`: after how many skipped numbers a live reader is told where it stands.
    pub cursor_advance_every: u64,
    /// `sync.outbound_queue_max`: frames that are fed to a connection before they are flushed in one write.
    pub outbound_queue_max: usize,
    /// `sync.max_catchup_events`: how far behind the head a person or app may start over the gateway; farther is `too_far_behind`.
    pub max_catchup_events: u64,
    /// `database.listen_reconnect_backoff_cap`: the longest pause before what failed in the store is tried again.
    pub read_backoff_cap: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat_interval: Duration::from_secs(30),
            identify_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            max_frame_bytes: 64 * 1024,
            max_frames_per_second: 20_000,
            max_connections: 50_000,
            max_connections_per_principal: 1_000,
            resume_window: Duration::from_mins(1),
            catchup_page_size: 256,
            catchup_page_bytes: 256 * 1024,
            cursor_advance_every: 100,
            outbound_queue_max: 64,
            max_catchup_events: 10_000,
            read_backoff_cap: Duration::from_secs(5),
        }
    }
}
