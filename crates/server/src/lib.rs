//! The composition root: configuration, wiring, lifecycle, and the commands that need the server itself.
//!
//! Architecture invariant: thin. No rule of the product lives here; what is decided here is only who is given what, and in which order things start and stop.

mod command;
mod config;
mod demo;
mod documents;
mod logging;
mod offline;
mod serve;
mod store;

pub use command::main;
