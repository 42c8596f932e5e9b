//! Principals, tokens, spaces, channels, grants, the audit log and stored answers.

mod audit;
mod read;
mod rows;
mod write;

pub(crate) use audit::{add as add_audit, store_answer};
pub(crate) use rows::{collect, first};
pub(crate) use write::*;
