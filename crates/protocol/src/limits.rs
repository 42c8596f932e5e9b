//! The bounds that a parser needs. Their values come from configuration; nothing here has a default.

/// Bounds of a publish request (`publish.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishLimits {
    /// Events in one request.
    pub max_events: usize,
    /// Bytes of one event's payload.
    pub max_payload_bytes: usize,
    /// Objects and arrays nested in a payload, itself included. Readers that stop at 128 levels (`serde_json` is one) also count the
    /// envelope's three, so a value above 120 makes events that they cannot read.
    pub max_depth: usize,
    /// Principals in one event's audience.
    pub max_audience: usize,
    /// Recipients of one event.
    pub max_recipients: usize,
    /// Members of one event's correlation.
    pub max_correlation_entries: usize,
    /// Characters of one name or value of a correlation.
    pub max_correlation_chars: usize,
}
