//! Named consumers of agents: the durable cursor, the rules of acknowledgement, the REST use cases.
//!
//! Architecture invariant: knows neither the log (`sync`) nor delivery (`gateway`). What it needs of them it declares as [`ConsumerFeed`]; what it offers them is [`Consumers`]
//! (seed 004, design note 1).

mod api;
mod ports;
mod rest_window;
mod rules;
mod service;
mod settings;
mod store;
mod takeovers;

pub use api::{ConsumerApi, ConsumerState, Poll};
pub use ports::{AckRefused, ConsumerError, ConsumerFeed, Consumers, FeedHead, FeedPage, PollRequest, ResyncReason};
pub use rest_window::{Plan, RestPoll, WindowLimits};
pub use rules::{AckEffect, check_ack, check_position};
pub use service::ConsumerService;
pub use settings::Settings;
pub use store::{
    ConsumerKey, ConsumerStatus, CursorRow, CursorStore, Holder, InFlight, RestWindow, Save, SaveOutcome, Take, Taken, WindowWrite,
};
