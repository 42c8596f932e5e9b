//! How events enter: publish, and publish later.
//!
//! Architecture invariant: the only way into the log for what principals send. Knows no HTTP and no SQL.

mod store;

pub use store::{PublishTx, Schedule, ScheduleStore, ScheduleWrite, Scheduled, ScheduledState};
