//! The event log: rows, pages, appends, retention.

mod append;
mod checksum;
mod intern;
mod page;
mod retention;
mod store;

pub(crate) use append::{append, body_text, put_key, stored_repeat};
pub(crate) use checksum::{origin_number, parse_origin};
pub(crate) use intern::Interner;
pub(crate) use page::{WorkRow, body_at, page, read, row_is_sound, work_audience, work_rows};
pub(crate) use retention::{expire_keys, raise_floor, sweep};
