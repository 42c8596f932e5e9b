//! Named consumers: durable cursors, acknowledgement rules, REST use cases.
