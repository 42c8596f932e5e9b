//! Floors: the least work that a row's figure is made of, in a bare loop over the same library.

mod answer;
mod append;
mod postgres;
mod push;
mod shared;

pub(crate) use answer::AnswerFloor;
pub(crate) use append::AppendFloor;
pub(crate) use postgres::ClaimFloor;
pub(crate) use push::PushFloor;
pub(crate) use shared::SharedAppendFloor;
