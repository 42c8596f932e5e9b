//! `fan-out`: what is published goes to a thousand consumers that wait at the head, one event at a time and in bursts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{RowName, unzip};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::floor::PushFloor;
use crate::ground::{Ground, PAYLOAD_BYTES, Server};
use crate::report::{Line, Target, Unit};
use crate::wire::{Follower, HttpConnection, WireError, ack_frame, dispatched_seq};

const CONSUMERS: usize = 1_000;
/// Agents that share the consumers evenly.
const AGENTS: usize = 10;
/// Events of a burst, and after how many a consumer acknowledges.
const BURST: usize = 64;
/// How long one event or burst may take to reach everybody.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let server = ground.serve(&[])?;
    let consumers = bench.sized(CONSUMERS);
    let mut audience = bench.measure("connecting the consumers", Audience::gather(ground, &server, consumers))?;
    let mut measured = Vec::new();
    for events in [1, BURST] {
        let request = ground.publish_request(events);
        let floor = PushFloor { connections: consumers, frames_per_write: events, bytes: PAYLOAD_BYTES };
        let rounds = bench.each_round(RowName::FanOut, |_| {
            let floor = floor.rate(&bench.runtime, bench.window)?;
            let deliveries = audience.deliveries(server.address, &request, events, bench.window);
            Ok((floor, bench.measure("the fan-out", deliveries)?))
        })?;
        measured.push(unzip(rounds));
    }
    bench.runtime.block_on(audience.readers.shutdown());
    server.stop()?;
    let names = [("one event", "push, one frame a write"), ("bursts of 64", "push, 64 frames a write")];
    let targets = [Target::OfFloor(0.7), Target::AtLeast(1e6, "")];
    let line = |(((name, floor), target), (floors, rates))| {
        Line::new(RowName::FanOut, name, Unit::PerSecond, rates).over(floor, floors).target(target)
    };
    Ok(names.into_iter().zip(targets).zip(measured).map(line).collect())
}

/// Everybody who listens.
struct Audience {
    readers: JoinSet<Result<(), WireError>>,
    tally: Arc<Tally>,
    consumers: usize,
}

/// What all together have received.
#[derive(Debug, Default)]
struct Tally {
    received: AtomicU64,
    goal: AtomicU64,
    reached: Notify,
}

impl Audience {
    async fn gather(ground: &Ground, server: &Server, consumers: usize) -> Result<Self, Failure> {
        let mut audience = Self { readers: JoinSet::new(), tally: Arc::default(), consumers };
        for agent in 0..AGENTS {
            let token = ground.agent(server, &format!("fan-out-{agent}")).await?;
            for consumer in (agent..consumers).step_by(AGENTS) {
                let follower = Follower::live(server.address, &token, &format!("c{consumer}")).await?;
                audience.readers.spawn(read(follower, Arc::clone(&audience.tally)));
            }
        }
        Ok(audience)
    }

    /// Deliveries per second: the next request is sent when everybody has all events of the last.
    async fn deliveries(&mut self, address: SocketAddr, request: &[u8], events: usize, window: Duration) -> Result<f64, Failure> {
        let mut publisher = HttpConnection::connect(address).await?;
        let before = self.tally.received.load(Ordering::Relaxed);
        let begin = Instant::now();
        while begin.elapsed() < window {
            self.tally.goal.fetch_add((events * self.consumers) as u64, Ordering::Relaxed);
            tokio::select! {
                everybody = reach(&self.tally, &mut publisher, request) => everybody?,
                ended = self.readers.join_next() => match ended {
                    Some(Ok(Err(fault))) => return Err(fault.into()),
                    _ => return Err(Failure::Wrong("a consumer stopped reading".to_owned())),
                },
                () = tokio::time::sleep(PATIENCE) => return Err(Failure::Late("an event for everybody")),
            }
        }
        let delivered = self.tally.received.load(Ordering::Relaxed) - before;
        Ok(delivered as f64 / begin.elapsed().as_secs_f64())
    }
}

/// Publishes, and waits until everybody has all of it.
async fn reach(tally: &Tally, publisher: &mut HttpConnection, request: &[u8]) -> Result<(), Failure> {
    publisher.call(request).await?.success()?;
    while tally.received.load(Ordering::Relaxed) < tally.goal.load(Ordering::Relaxed) {
        tally.reached.notified().await;
    }
    Ok(())
}

/// Reads for as long as the server sends.
async fn read(mut follower: Follower, tally: Arc<Tally>) -> Result<(), WireError> {
    let mut unacknowledged = 0;
    loop {
        let mut events = 0;
        let received = follower.socket.receive(|text, outbox| {
            let Some(seq) = dispatched_seq(text) else { return };
            events += 1;
            unacknowledged += 1;
            if unacknowledged == BURST {
                unacknowledged = 0;
                outbox.text(&ack_frame(seq));
            }
        });
        received.await?;
        let received = tally.received.fetch_add(events, Ordering::Relaxed) + events;
        if events > 0 && received >= tally.goal.load(Ordering::Relaxed) {
            tally.reached.notify_one();
        }
    }
}
