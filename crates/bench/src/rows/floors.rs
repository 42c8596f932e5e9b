//! `floors`: the raw loops alone, to see what the machine gives.

use super::RowName;
use crate::bench::Bench;
use crate::failure::Failure;
use crate::floor::{AnswerFloor, AppendFloor, PushFloor};
use crate::ground::PAYLOAD_BYTES;
use crate::report::{Line, Unit};

/// A raw loop under a name.
struct Loop<'a> {
    name: &'static str,
    rate: Box<dyn FnMut() -> Result<f64, Failure> + 'a>,
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let mut loops = vec![append(bench, "publish", 64)?, append(bench, "append-100", 100)?];
    let answers = AnswerFloor { connections: 64 };
    loops.push(Loop { name: "answer, 64 connections", rate: Box::new(move || answers.rate(&bench.runtime, bench.window)) });
    let many = bench.sized(1_000);
    loops.push(push(bench, "push, one frame a write, 1 socket", 1, 1));
    loops.push(push(bench, "push, 64 frames a write, 1 socket", 1, 64));
    loops.push(push(bench, "push, one frame a write, many sockets", many, 1));
    loops.push(push(bench, "push, 64 frames a write, many sockets", many, 64));
    let rounds = bench.each_round(RowName::Floors, |_| loops.iter_mut().map(|floor| (floor.rate)()).collect::<Result<Vec<f64>, _>>())?;
    let rates = |index: usize| rounds.iter().filter_map(|round| round.get(index).copied()).collect();
    let line = |(index, floor): (usize, &Loop<'_>)| Line::new(RowName::Floors, floor.name, Unit::PerSecond, rates(index));
    Ok(loops.iter().enumerate().map(line).collect())
}

fn append<'a>(bench: &'a Bench, name: &'static str, group: usize) -> Result<Loop<'a>, Failure> {
    let mut floor = AppendFloor::open(&bench.directory, PAYLOAD_BYTES)?;
    Ok(Loop { name, rate: Box::new(move || floor.rate(group, bench.window)) })
}

fn push<'a>(bench: &'a Bench, name: &'static str, connections: usize, frames_per_write: usize) -> Loop<'a> {
    let floor = PushFloor { connections, frames_per_write, bytes: PAYLOAD_BYTES };
    Loop { name, rate: Box::new(move || floor.rate(&bench.runtime, bench.window)) }
}
