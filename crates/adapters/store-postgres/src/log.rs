//! The event log: rows, pages, appends, retention.

mod append;
mod appender;
mod checksum;
mod heads;
mod intern;
mod keys;
mod page;
mod partitions;
mod ports;
mod retention;
mod work;

pub(crate) use append::{body_text, slot_of};
pub(crate) use appender::Appenders;
pub(crate) use checksum::{Columns, origin_number, parse_origin};
pub(crate) use heads::{create_head, set_state};
pub(crate) use keys::{free_key, reserve_key, stored_repeat};
pub(crate) use partitions::Partitions;
pub(crate) use work::{bodies, work_rows};
