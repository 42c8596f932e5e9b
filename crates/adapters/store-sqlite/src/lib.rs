//! The embedded store: every store port on SQLite.
