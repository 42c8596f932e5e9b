//! The event log of each tenant: append, pages, tail, hot ring, retention, epoch; what nodes tell each other of it.
//!
//! Architecture invariant: one order. Sequence order is commit order; whatever reads here sees events in that order and never finds a new row at or below a position it has seen.
//! Knows no SQL, no socket and no consumer.

mod announcer;
mod hints;
mod inbox;
mod log;
mod logs;
mod metrics;
mod observer;
mod poller;
mod retention;
mod ring;
mod settings;
mod shared;
mod store;
mod tail;

pub use announcer::Announcer;
pub use hints::{Hint, HintBus, HintExchange, HintListener, HintMetrics, HintSettings, InOneProcess};
pub use log::{Position, Replaced, TenantLog};
pub use logs::Logs;
pub use metrics::{Metrics, RetentionMetrics};
pub use observer::Observer;
pub use retention::Retention;
pub use ring::HotRing;
pub use settings::Settings;
pub use store::{Append, AppendAnswer, CommitListener, Head, LogStore, LogWrite, Page, PageRange, Retired};
