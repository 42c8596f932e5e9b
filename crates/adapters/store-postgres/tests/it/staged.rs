//! Publishing within an application's own transaction: `doorstep_publish`, and the mover, on a real server.

mod door;
pub(crate) mod moving;
mod support;
