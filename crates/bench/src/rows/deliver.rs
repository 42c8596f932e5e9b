//! `deliver`: from the write of a publish to the read of its dispatch, at a rate that leaves the server time to breathe.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::RowName;
use crate::bench::Bench;
use crate::failure::Failure;
use crate::ground::{Ground, PAYLOAD_BYTES, event};
use crate::report::{Line, Target, Unit};
use crate::statistics::Latencies;
use crate::wire::{Follower, HttpConnection, Request, WireError, ack_frame, dispatched_seq};

/// Events a second, all publishers together.
const RATE: u32 = 500;
/// Connections that take turns, so that one slow answer delays no other event.
const PUBLISHERS: u32 = 10;
/// Digits of a stamp: nanoseconds since the round began.
const STAMP: usize = 20;
/// What a dispatch ends with, behind the stamp: text, payload, envelope and frame close.
const END: &[u8] = br#""}}}"#;
/// How long after its publication the last event may come.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let server = ground.serve(&[])?;
    let rounds = bench.each_round(RowName::Deliver, |_| {
        bench.measure("delivery", one_round(server.address, ground.producer.clone(), &ground.reader, bench.window))
    })?;
    server.stop()?;
    let percentile = |percent| rounds.iter().map(|latencies| latencies.percentile(percent)).collect();
    let nats = Target::AtMost(0.000_43, "NATS sync always, seen");
    Ok(vec![
        Line::new(RowName::Deliver, "p50", Unit::Seconds, percentile(50.0)).target(nats),
        Line::new(RowName::Deliver, "p99", Unit::Seconds, percentile(99.0)).target(Target::AtMost(0.002, "")),
    ])
}

async fn one_round(address: SocketAddr, producer: String, reader: &str, window: Duration) -> Result<Latencies, Failure> {
    let mut follower = Follower::live(address, reader, "deliver").await?;
    let origin = Instant::now();
    let mut publishers = JoinSet::new();
    for number in 0..PUBLISHERS {
        let connection = HttpConnection::connect(address).await?;
        publishers.spawn(publish(connection, Stamped::new(&producer), number, origin, window));
    }
    let (seen, latencies) = (Cell::new(0), RefCell::new(Latencies::new()));
    {
        let mut reading = pin!(read(&mut follower, origin, &seen, &latencies));
        let sent = tokio::select! {
            fault = &mut reading => return Err(fault),
            sent = all(publishers) => sent?,
        };
        let deadline = Instant::now() + PATIENCE;
        while seen.get() < sent {
            tokio::select! {
                fault = &mut reading => return Err(fault),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
            if Instant::now() > deadline {
                return Err(Failure::Late("the dispatch of a published event"));
            }
        }
    }
    Ok(latencies.into_inner())
}

/// How many events the publishers have sent when they are done.
async fn all(mut publishers: JoinSet<Result<u64, WireError>>) -> Result<u64, Failure> {
    let mut sent = 0;
    while let Some(ended) = publishers.join_next().await {
        sent += ended.map_err(|_| Failure::Wrong("a publisher panicked".to_owned()))??;
    }
    Ok(sent)
}

/// Publishes on its own beat until the window ends, and says how often.
async fn publish(
    mut connection: HttpConnection,
    mut request: Stamped,
    number: u32,
    origin: Instant,
    window: Duration,
) -> Result<u64, WireError> {
    let step = Duration::from_secs(1) / RATE;
    let (mut due, mut sent) = (step * number, 0);
    while due < window {
        tokio::time::sleep_until((origin + due).into()).await;
        connection.call(request.stamped(origin.elapsed())).await?.success()?;
        sent += 1;
        due += step * PUBLISHERS;
    }
    Ok(sent)
}

/// Reads on, acknowledging and counting each event, until it fails.
async fn read(follower: &mut Follower, origin: Instant, seen: &Cell<u64>, latencies: &RefCell<Latencies>) -> Failure {
    loop {
        let mut odd = false;
        let received = follower.socket.receive(|text, outbox| {
            let now = origin.elapsed();
            let Some(seq) = dispatched_seq(text) else { return };
            seen.set(seen.get() + 1);
            outbox.text(&ack_frame(seq));
            match stamp(text) {
                Some(sent) => latencies.borrow_mut().record(now.saturating_sub(sent)),
                None => odd = true,
            }
        });
        match received.await {
            Err(fault) => return fault.into(),
            Ok(_) if odd => return Failure::Wrong("an event came without its stamp".to_owned()),
            Ok(_) => {}
        }
    }
}

/// The stamp of a dispatched event.
fn stamp(text: &[u8]) -> Option<Duration> {
    let (_, digits) = text.strip_suffix(END)?.split_last_chunk::<STAMP>()?;
    std::str::from_utf8(digits).ok()?.parse().ok().map(Duration::from_nanos)
}

/// A rendered request with a place for the time.
struct Stamped {
    bytes: Vec<u8>,
}

impl Stamped {
    fn new(token: &str) -> Self {
        let filling = PAYLOAD_BYTES - r#"{"text":""}"#.len() - STAMP;
        let event = event(&format!("{}{}", "x".repeat(filling), "0".repeat(STAMP)));
        Self { bytes: Request::new("POST", "/v1/events").bearer(token).json(event).render() }
    }

    fn stamped(&mut self, now: Duration) -> &[u8] {
        let digits = format!("{:0STAMP$}", now.as_nanos());
        // An event ends as a dispatch does, without the frame's brace.
        let end = self.bytes.len() - (END.len() - 1);
        if let Some(place) = self.bytes.get_mut(end - STAMP..end) {
            place.copy_from_slice(digits.as_bytes());
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Stamped, stamp};

    #[test]
    fn the_stamp_of_a_request_is_found_in_its_dispatch() {
        let mut request = Stamped::new("token");
        for nanoseconds in [0, 7, 1_234_567_890_123] {
            let now = Duration::from_nanos(nanoseconds);
            let request = String::from_utf8(request.stamped(now).to_vec()).unwrap();
            let (_, payload) = request.split_once(r#""payload":"#).unwrap();
            let dispatch = format!(r#"{{"op":"dispatch","event":{{"seq":1,"payload":{payload}}}"#);
            assert!(serde_json::from_str::<serde_json::Value>(&dispatch).is_ok(), "{dispatch}");
            assert_eq!(stamp(dispatch.as_bytes()), Some(now));
        }
        assert_eq!(stamp(br#"{"op":"cursor","seq":1}"#), None);
    }
}
