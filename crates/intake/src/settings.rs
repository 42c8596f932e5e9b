//! What configuration says about publishing.

use std::time::Duration;

/// Settings of this module (configuration sections `publish` and `intake`, and `sync.deduplication_window`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Events in one request (`publish.max_events`).
    pub max_events: usize,
    /// Bytes of one event's payload (`publish.max_payload_bytes`).
    pub max_payload_bytes: usize,
    /// Objects and arrays nested in a payload, itself included (`publish.max_depth`).
    pub max_depth: usize,
    /// Principals in one event's audience, recipients included (`publish.max_audience`).
    pub max_audience: usize,
    /// Recipients of one event (`publish.max_recipients`).
    pub max_recipients: usize,
    /// Members of one event's correlation (`publish.max_correlation_entries`).
    pub max_correlation_entries: usize,
    /// Characters of one name or value of a correlation (`publish.max_correlation_chars`).
    pub max_correlation_chars: usize,
    /// For how long a deduplication key is remembered (`sync.deduplication_window`).
    pub deduplication_window: Duration,
    /// How far in the future an event may be scheduled (`intake.schedule_horizon`).
    pub schedule_horizon: Duration,
    /// Scheduled events that are promoted in one step (`intake.promote_batch`).
    pub promote_batch: usize,
    /// After how long at the latest it is looked for due events that nobody announced (`intake.promote_interval`).
    pub promote_interval: Duration,
    /// After how long promotion is tried again when the store fails (`intake.promote_retry`).
    pub promote_retry: Duration,
    /// How often it is looked for events that applications handed in within their own transactions (`intake.staged_interval`).
    pub staged_interval: Duration,
    /// For how long those that could not be appended are listed (`intake.staged_retention`).
    pub staged_retention: Duration,
    /// What items live by: attempts, and the boost of their priority (configuration section `inbox`).
    pub items: inbox::Rules,
    /// Most entries of one page of scheduled events (`http.max_page_size`).
    pub list_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            max_events: 1_000,
            max_payload_bytes: 1 << 20,
            max_depth: 64,
            max_audience: 100,
            max_recipients: 100,
            max_correlation_entries: 32,
            max_correlation_chars: 256,
            deduplication_window: DAY * 7,
            schedule_horizon: DAY * 366,
            promote_batch: 200,
            promote_interval: Duration::from_secs(10),
            promote_retry: Duration::from_secs(1),
            staged_interval: Duration::from_millis(250),
            staged_retention: DAY * 30,
            items: inbox::Rules::default(),
            list_max: 1_000,
        }
    }
}
