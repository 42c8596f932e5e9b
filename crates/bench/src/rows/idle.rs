//! `idle`: what a connection costs while nothing happens, in memory and in processor time.

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::RowName;
use crate::bench::Bench;
use crate::failure::Failure;
use crate::ground::{Ground, Server};
use crate::report::{self, Line, Target, Unit};
use crate::system;
use crate::wire::{Follower, Request, WireError, open_stream};

const CONSUMERS: usize = 10_000;
const STREAMS: usize = 1_000;
/// Connections that are being opened at the same time.
const OPENING: usize = 32;
/// From the last connection until memory is looked at.
const SETTLE: Duration = Duration::from_secs(2);
const QUIET: Duration = Duration::from_secs(10);
/// What a server must be told to hold so many connections of one agent.
const CONFIG: [(&str, &str); 4] = [
    ("agent.max_consumers_per_agent", "20000"),
    ("gateway.max_connections_per_principal", "20000"),
    ("gateway.max_connections", "20000"),
    ("http.max_connections", "20000"),
];

/// What a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An agent's consumer on the gateway.
    Consumer,
    /// An event stream over HTTP.
    Stream,
}

/// What one round saw.
struct Seen {
    bytes: f64,
    percent: Option<f64>,
}

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for (kind, full, name, most) in [
        (Kind::Consumer, CONSUMERS, "consumers", Target::AtMost(8_192.0, "each")),
        (Kind::Stream, STREAMS, "event streams", Target::AtMost(20_480.0, "each")),
    ] {
        // Under --scale, a hundredth of the connections is the unit.
        let wanted = bench.factor.map_or(bench.sized(full), |factor| bench.sized(full) * factor / 100);
        let connections = wanted.min(bench.connections);
        if connections < wanted {
            report::note(&format!("the system allows {connections} connections instead of {wanted}"));
        }
        let seen = bench.each_round(RowName::Idle, |_| one_round(bench, ground, kind, connections))?;
        // Under --scale, a figure has the same name at every size, so that the sizes can be compared.
        let name = if bench.factor.is_some() { name.to_owned() } else { format!("{connections} {name}") };
        lines.push(
            Line::new(RowName::Idle, format!("{name}, memory of each"), Unit::Bytes, seen.iter().map(|seen| seen.bytes).collect())
                .target(most),
        );
        let percent: Vec<f64> = seen.iter().filter_map(|seen| seen.percent).collect();
        if !percent.is_empty() {
            let busy = Line::new(RowName::Idle, format!("{name}, processor"), Unit::Percent, percent);
            lines.push(if kind == Kind::Consumer { busy.target(Target::AtMost(2.0, "")) } else { busy });
        }
    }
    Ok(lines)
}

/// Opens the connections on a fresh server, so that no memory is left over from before.
fn one_round(bench: &Bench, ground: &Ground, kind: Kind, connections: usize) -> Result<Seen, Failure> {
    let server = ground.serve(&CONFIG)?;
    let quiet = if bench.quick { QUIET / 10 } else { QUIET };
    let seen = bench.measure("idle connections", async {
        // One of its kind first: what the first one brings with it belongs to no connection.
        let mut held = JoinSet::new();
        open(&mut held, ground, &server, kind, 0..=0).await?;
        tokio::time::sleep(SETTLE).await;
        let before = server.process.resident_bytes();
        open(&mut held, ground, &server, kind, 1..=connections).await?;
        tokio::time::sleep(SETTLE).await;
        let bytes = (server.process.resident_bytes() as f64 - before as f64) / connections as f64;
        let (begin, busy) = (Instant::now(), system::processor_time(server.process.pid()));
        tokio::time::sleep(quiet).await;
        let used = system::processor_time(server.process.pid()).zip(busy).map(|(after, before)| after.saturating_sub(before));
        let passed = begin.elapsed().as_secs_f64();
        if let Some(ended) = held.try_join_next() {
            return Err(ended.map_or_else(|_| Failure::Wrong("a reader panicked".to_owned()), Failure::from));
        }
        held.shutdown().await;
        Ok(Seen { bytes, percent: used.map(|used| used.as_secs_f64() / passed * 100.0) })
    })?;
    server.stop()?;
    Ok(seen)
}

/// Opens connections, some at a time, and leaves each to a task that reads it and ends with what ended it.
async fn open(
    held: &mut JoinSet<WireError>,
    ground: &Ground,
    server: &Server,
    kind: Kind,
    numbers: std::ops::RangeInclusive<usize>,
) -> Result<(), Failure> {
    let mut opening = JoinSet::new();
    let address = server.address;
    for number in numbers {
        if opening.len() == OPENING {
            hold(held, opening.join_next().await)?;
        }
        let (reader, watcher) = (ground.reader.clone(), ground.watcher.clone());
        opening.spawn(async move {
            match kind {
                Kind::Consumer => Follower::live(address, &reader, &format!("idle-{number}")).await.map(Held::Consumer),
                Kind::Stream => {
                    let request = Request::new("GET", "/v1/events/stream").bearer(&watcher).header("accept", "text/event-stream");
                    open_stream(address, &request.render(), 200).await.map(|(stream, _)| Held::Stream(stream))
                }
            }
        });
    }
    while let Some(opened) = opening.join_next().await {
        hold(held, Some(opened))?;
    }
    Ok(())
}

/// An open connection.
enum Held {
    Consumer(Follower),
    Stream(TcpStream),
}

type Opened = Result<Result<Held, WireError>, tokio::task::JoinError>;

fn hold(held: &mut JoinSet<WireError>, opened: Option<Opened>) -> Result<(), Failure> {
    match opened {
        Some(Ok(connection)) => {
            held.spawn(stay(connection?));
            Ok(())
        }
        Some(Err(_)) => Err(Failure::Wrong("opening a connection panicked".to_owned())),
        None => Ok(()),
    }
}

/// Reads until the connection ends.
async fn stay(connection: Held) -> WireError {
    match connection {
        Held::Consumer(mut follower) => loop {
            if let Err(fault) = follower.socket.receive(|_, _| {}).await {
                return fault;
            }
        },
        Held::Stream(mut stream) => loop {
            match stream.read(&mut [0; 1024]).await {
                Ok(0) => return WireError::Ended,
                Ok(_) => {}
                Err(fault) => return fault.into(),
            }
        },
    }
}
