//! Moving everything that a store holds into a store of another engine, so that nobody who uses it can tell.
//!
//! A store of any engine is seen here as tables of plain values ([`Table`], [`Value`]), written page by page and compared afterwards. What a value
//! means is nobody's business here.
//!
//! Architecture invariant: knows no engine, no SQL and no rule of any module. Stores implement the two ports and never meet.

mod moving;
mod ports;
mod table;
mod tally;
mod value;

pub use moving::{Report, Stage, TransferError, Verified, transfer};
pub use ports::{Bound, Dump, DumpPage, Load, Started};
pub use table::{Column, Table};
pub use tally::Tally;
pub use value::{Kind, Row, Value, parse_position, position};
