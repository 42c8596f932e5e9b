//! `catch-up`: one consumer reads a long backlog over the gateway and acknowledges every hundredth event.

use std::net::SocketAddr;
use std::time::Instant;

use super::{RowName, unzip};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::floor::PushFloor;
use crate::ground::{Ground, PAYLOAD_BYTES};
use crate::report::{Line, Target, Unit};
use crate::wire::{Follower, ack_frame, dispatched_seq};

const EVENTS: usize = 200_000;
/// How many events are acknowledged at once.
const ACK_EVERY: usize = 100;
/// 1.2 times what NATS JetStream was seen to hand out and have acknowledged.
const MORE_THAN_NATS: Target = Target::AtLeast(288_000.0, "1.2 × NATS consume + ack, 240 k/s seen");

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let server = ground.serve(&[("agent.max_inflight_events", "2000")])?;
    let events = bench.sized(EVENTS);
    bench.measure("the backlog", async {
        for round in 0..bench.rounds {
            ground.stand_at_head(server.address, &ground.reader, &consumer(round)).await?;
        }
        ground.publish(server.address, events).await
    })?;
    let floor = PushFloor { connections: 1, frames_per_write: 64, bytes: PAYLOAD_BYTES };
    let rounds = bench.each_round(RowName::CatchUp, |round| {
        let floor = floor.rate(&bench.runtime, bench.window)?;
        Ok((floor, bench.measure("catching up", catch_up(server.address, &ground.reader, &consumer(round), events))?))
    })?;
    server.stop()?;
    let (floors, rates) = unzip(rounds);
    let line = Line::new(RowName::CatchUp, "events", Unit::PerSecond, rates);
    Ok(vec![line.over("push, 64 frames a write", floors).target(MORE_THAN_NATS)])
}

/// A consumer of its own for each round, so that each has the whole backlog before it.
fn consumer(round: usize) -> String {
    format!("catch-up-{round}")
}

/// Events per second, from `identify` to the last one.
pub(super) async fn catch_up(address: SocketAddr, token: &str, consumer: &str, events: usize) -> Result<f64, Failure> {
    let begin = Instant::now();
    let mut follower = Follower::identify(address, token, consumer).await?;
    let (mut seen, mut last) = (0, 0);
    while seen < events {
        let received = follower.socket.receive(|text, outbox| {
            let Some(seq) = dispatched_seq(text) else { return };
            // One that comes again counts only the first time.
            if seq <= last {
                return;
            }
            (seen, last) = (seen + 1, seq);
            if seen % ACK_EVERY == 0 {
                outbox.text(&ack_frame(seq));
            }
        });
        received.await?;
    }
    Ok(seen as f64 / begin.elapsed().as_secs_f64())
}
