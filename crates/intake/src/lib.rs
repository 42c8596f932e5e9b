//! How events enter: publish, publish later, and publish within an application's own transaction.
//!
//! Architecture invariant: the only way into the log for what principals send. Knows no HTTP and no SQL.

mod error;
mod event;
mod fingerprint;
mod metrics;
mod publish;
mod schedule;
mod settings;
mod staged;
mod store;
mod validate;

pub use error::{Place, PublishError, ScheduleError};
pub use event::{NewEvent, NewRecipient};
pub use metrics::Metrics;
pub use publish::{IntakeParts, Published, PublishedEvent, Publisher};
pub use schedule::{Promoter, ScheduleBell, ScheduledPage};
pub use settings::Settings;
pub use staged::{
    MoveTx, Mover, MoverParts, NoStaged, PublishLimits, Staged, StagedHint, StagedNumber, StagedPage, StagedState, StagedStore, StagedWrite,
};
pub use store::{PublishTx, Schedule, ScheduleStore, ScheduleWrite, Scheduled, ScheduledState};
