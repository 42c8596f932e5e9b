//! Events that wait for their time: listing, cancelling, promoting.

mod bell;
mod list;
mod promote;

pub use bell::ScheduleBell;
pub use list::ScheduledPage;
pub use promote::Promoter;
