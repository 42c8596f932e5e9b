//! `claim-ack`: workers claim and acknowledge over REST, beside the `SKIP LOCKED` loop that one would write over PostgreSQL.

use super::{RowName, inbox};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::floor::ClaimFloor;
use crate::ground::{Ground, PAYLOAD_BYTES};
use crate::report::{Line, Target, Unit};

/// How work is taken.
struct Shape {
    figure: &'static str,
    batch: usize,
    workers: usize,
    /// Workers of the floor: PostgreSQL gets slower with more.
    floor_workers: usize,
    floor: &'static str,
    share: f64,
}

const SHAPES: [Shape; 2] = [
    Shape { figure: "items, 50 at once, 8 workers", batch: 50, workers: 8, floor_workers: 8, floor: "SKIP LOCKED, 50 at once", share: 1.0 },
    Shape {
        figure: "items, one by one, 64 workers",
        batch: 1,
        workers: 64,
        floor_workers: 8,
        floor: "SKIP LOCKED, one by one, 8 workers",
        share: 2.0,
    },
];

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let server = ground.serve(&[])?;
    let floor = ClaimFloor::start(&bench.directory)?;
    let mut lines = Vec::new();
    for shape in &SHAPES {
        let rounds = bench.each_round(RowName::ClaimAck, |_| {
            let least = match &floor {
                Some(floor) => floor.rate(shape.batch, shape.floor_workers, PAYLOAD_BYTES, bench.window)?,
                None => 0.0,
            };
            bench.measure("giving work", inbox::give(ground, server.address, inbox::enough(bench.window)))?;
            let rate =
                bench.measure("claiming", inbox::work_off(server.address, &ground.reader, shape.batch, shape.workers, bench.window))?;
            // What is left would make the next round's items older than its own.
            bench.measure("clearing", clear(server.address, &ground.reader))?;
            Ok((least, rate))
        })?;
        let (floors, rates) = super::unzip(rounds);
        let line = Line::new(RowName::ClaimAck, shape.figure, Unit::PerSecond, rates);
        lines.push(match floor {
            Some(_) => line.over(shape.floor, floors).target(Target::OfFloor(shape.share)),
            None => line,
        });
    }
    server.stop()?;
    Ok(lines)
}

/// Works off whatever is there.
async fn clear(address: std::net::SocketAddr, token: &str) -> Result<(), Failure> {
    let mut worker = inbox::Worker::connect(address, token, 100, 0).await?;
    loop {
        let claims = worker.claim().await?;
        if claims.is_empty() {
            return Ok(());
        }
        worker.acknowledge(&claims).await?;
    }
}
