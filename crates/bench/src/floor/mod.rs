//! Floors: the least work that a row's figure is made of, in a bare loop over the same library.

mod append;
mod push;

pub(crate) use append::AppendFloor;
pub(crate) use push::PushFloor;
