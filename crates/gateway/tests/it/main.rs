//! The rules of delivery, each by its name.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by a panic"
)]

mod support;

mod clients;
mod consumers;
mod frames;
mod hints;
mod nodes;
mod polls;
mod saving;
mod sessions;
mod window_model;
mod window_rules;
