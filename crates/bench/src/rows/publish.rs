//! `publish` and `publish-batch`: events that are durable when they are answered, beside rows of the same size in a bare transaction.

use super::load::{Answered, closed_loop};
use super::{RowName, unzip};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::floor::{AnswerFloor, AppendFloor};
use crate::ground::{Ground, PAYLOAD_BYTES};
use crate::report::{Line, Target, Unit};
use crate::wire::Request;

/// Six times what NATS JetStream with `sync always` was seen to take.
const SIX_TIMES_NATS: Target = Target::AtLeast(46_200.0, "6 × NATS sync always, 7.7 k/s seen");

/// How events are published.
struct Shape {
    row: RowName,
    connections: usize,
    events: usize,
    floor: &'static str,
    group: usize,
    share: f64,
}

/// Single events over 64 connections.
pub(super) fn single(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let shape = Shape { row: RowName::Publish, connections: 64, events: 1, floor: "group commit of 64", group: 64, share: 0.4 };
    let (raw, health) = health(bench, ground, shape.connections)?;
    let (floors, answers) = measure(bench, ground, &shape)?;
    let rates: Vec<f64> = answers.iter().map(|answered| answered.rate).collect();
    let mut lines = vec![
        Line::new(shape.row, "events", Unit::PerSecond, rates.clone()).over(shape.floor, floors).target(Target::OfFloor(shape.share)),
        Line::new(shape.row, "events, beside NATS", Unit::PerSecond, rates).target(SIX_TIMES_NATS),
    ];
    lines.extend(latencies(shape.row, &answers, Target::AtMost(0.005, "")));
    lines.push(Line::new(shape.row, "GET /healthz instead", Unit::PerSecond, health).over("raw answers", raw));
    Ok(lines)
}

/// 100 events in each request over 8 connections.
pub(super) fn batches(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let shape = Shape { row: RowName::PublishBatch, connections: 8, events: 100, floor: "append of 100", group: 100, share: 0.6 };
    let (floors, answers) = measure(bench, ground, &shape)?;
    let rates = answers.iter().map(|answered| answered.rate * shape.events as f64).collect();
    let mut lines =
        vec![Line::new(shape.row, "events", Unit::PerSecond, rates).over(shape.floor, floors).target(Target::OfFloor(shape.share))];
    lines.extend(latencies(shape.row, &answers, Target::None));
    Ok(lines)
}

/// What HTTP alone leaves room for: the same connections ask for something that touches neither rights nor store.
fn health(bench: &Bench, ground: &Ground, connections: usize) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let server = ground.serve(&[])?;
    let floor = AnswerFloor { connections };
    let request = Request::new("GET", "/healthz").render();
    let rates = bench.each_round(RowName::Publish, |_| {
        let load = closed_loop(server.address, request.clone(), connections, bench.window);
        let floor = floor.rate(&bench.runtime, bench.window)?;
        Ok((floor, bench.measure("asking for health", load)?.rate))
    })?;
    server.stop()?;
    Ok(unzip(rates))
}

fn measure(bench: &Bench, ground: &Ground, shape: &Shape) -> Result<(Vec<f64>, Vec<Answered>), Failure> {
    let server = ground.serve(&[])?;
    let request = ground.publish_request(shape.events);
    let mut floor = AppendFloor::open(&bench.directory, PAYLOAD_BYTES)?;
    let rounds = bench.each_round(shape.row, |_| {
        let floor = floor.rate(shape.group, bench.window)?;
        let load = closed_loop(server.address, request.clone(), shape.connections, bench.window);
        Ok((floor, bench.measure("publishing", load)?))
    })?;
    server.stop()?;
    Ok(unzip(rounds))
}

pub(super) fn latencies(row: RowName, answers: &[Answered], target: Target) -> [Line; 2] {
    let percentile = |percent| answers.iter().map(|answered| answered.latencies.percentile(percent)).collect();
    [Line::new(row, "p50", Unit::Seconds, percentile(50.0)), Line::new(row, "p99", Unit::Seconds, percentile(99.0)).target(target)]
}
