//! `start`: from the start of the process to its `listening on` line, and what it then holds in memory.

use std::time::{Duration, Instant};

use testkit::ServerOptions;

use super::{RowName, unzip};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::ground::{Ground, Server};
use crate::report::{Line, Target, Unit};

/// Events in the store, unless `--scale` has put others there.
const EVENTS: usize = 200_000;
/// From ready until memory is looked at.
const SETTLE: Duration = Duration::from_millis(500);
const MEMORY: Target = Target::AtMost(31_457_280.0, "");

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    if bench.factor.is_none() {
        let server = ground.serve(&[])?;
        bench.measure("filling the store", ground.publish(server.address, bench.sized(EVENTS)))?;
        server.stop()?;
    }
    let rounds = bench.each_round(RowName::Start, |_| {
        let empty = tempfile::tempdir_in(&bench.directory).map_err(Failure::io("make a data directory"))?;
        let options = ServerOptions::new(&bench.binary, empty.path().join("data"));
        let (empty, memory) = timed(|| Server::start(options))?;
        let (filled, filled_memory) = timed(|| ground.serve(&[]))?;
        Ok((empty, (memory, (filled, filled_memory))))
    })?;
    let (empty, rest) = unzip(rounds);
    let (memory, rest) = unzip(rest);
    let (filled, filled_memory) = unzip(rest);
    let line = |figure: &str, unit, rounds| Line::new(RowName::Start, figure, unit, rounds);
    Ok(vec![
        line("empty store, to ready", Unit::Seconds, empty).target(Target::AtMost(0.15, "")),
        line("empty store, resident", Unit::Bytes, memory).target(MEMORY),
        line("filled store, to ready", Unit::Seconds, filled).target(Target::AtMost(0.4, "with 10 M events")),
        line("filled store, resident", Unit::Bytes, filled_memory).target(MEMORY),
    ])
}

/// Seconds until a server is ready, and the bytes that it holds when it has settled.
fn timed(start: impl FnOnce() -> Result<Server, Failure>) -> Result<(f64, f64), Failure> {
    let begin = Instant::now();
    let server = start()?;
    let seconds = begin.elapsed().as_secs_f64();
    std::thread::sleep(SETTLE);
    let bytes = server.process.resident_bytes() as f64;
    server.stop()?;
    Ok((seconds, bytes))
}
