//! Rules of consumers, each held by a test of its name.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

// The name that every other crate knows it by.
extern crate doorstep_agents as agents;

mod api;
mod cursors;
mod identities;
mod rest_window;
mod rest_window_model;
mod service;
mod world;
