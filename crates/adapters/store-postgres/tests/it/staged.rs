//! Publishing within an application's own transaction: `doorstep_publish`, and the mover, on a real server.

mod door;
mod moving;
mod support;
