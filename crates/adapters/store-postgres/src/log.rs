//! The event log: rows, pages, appends, retention.

mod append;
mod appender;
mod checksum;
mod intern;
mod page;
mod partitions;
mod ports;
mod queue;
mod recover;
mod retention;

pub(crate) use append::{body_text, slot_of};
pub(crate) use appender::Appenders;
pub(crate) use checksum::{origin_number, parse_origin};
pub(crate) use page::{LogRow, rows_at, work_rows};
pub(crate) use partitions::Partitions;
