//! What was measured, for people and for programs.

mod line;
mod print;
mod table;

pub(crate) use line::{Line, Target, Unit};
pub(crate) use print::{busy, failed, note, progress, show, write};

use std::time::Duration;

/// Everything that a run measured.
#[derive(Debug)]
pub(crate) struct Report {
    /// Whether it was a smoke run, whose figures mean little.
    pub(crate) quick: bool,
    /// Rounds of each row.
    pub(crate) rounds: usize,
    /// How long one measurement took.
    pub(crate) window: Duration,
    /// How busy the machine was with other things when the run began; `None` where the system does not tell.
    pub(crate) load: Option<f64>,
    /// The figures.
    pub(crate) lines: Vec<Line>,
}
