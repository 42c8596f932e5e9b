//! How events enter: publish, and publish later.
//!
//! Architecture invariant: the only way into the log for what principals send. Knows no HTTP and no SQL.

mod error;
mod event;
mod fingerprint;
mod metrics;
mod publish;
mod schedule;
mod settings;
mod store;
mod validate;

pub use error::{Place, PublishError, ScheduleError};
pub use event::{NewEvent, NewRecipient};
pub use metrics::Metrics;
pub use publish::{IntakeParts, Published, PublishedEvent, Publisher};
pub use schedule::{Promoter, ScheduleBell, ScheduledPage};
pub use settings::Settings;
pub use store::{PublishTx, Schedule, ScheduleStore, ScheduleWrite, Scheduled, ScheduledState};
