//! Events that applications hand in within their own transactions of the database: listing them, and moving them into the log.

mod batch;
mod event;
mod hint;
mod list;
mod mover;
mod store;

pub use hint::StagedHint;
pub use list::StagedPage;
pub use mover::{Mover, MoverParts};
pub use store::{MoveTx, NoStaged, PublishLimits, Staged, StagedNumber, StagedState, StagedStore, StagedWrite};
