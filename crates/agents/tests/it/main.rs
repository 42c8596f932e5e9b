//! Rules of consumers, each held by a test of its name.

mod rest_window;
mod rest_window_model;
