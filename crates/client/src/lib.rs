//! The Rust SDK: REST, and a reconnecting consumer as an async stream.
