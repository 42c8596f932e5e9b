//! `rest`: one consumer polls pages and acknowledges each over REST.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::RowName;
use crate::bench::Bench;
use crate::failure::Failure;
use crate::ground::Ground;
use crate::report::{Line, Target, Unit};
use crate::wire::{HttpConnection, Request};

/// Events published before, as many as can be polled in a window.
const EVENTS: usize = 400_000;
/// Where the position stands in a page, counted from its end; the events before it may be long.
const TAIL: usize = 256;

/// Page sizes and what is asked of them. Larger pages need a larger window than agents have by default.
const PAGES: [(usize, &str, Target); 2] =
    [(100, "events, pages of 100", Target::AtLeast(60_000.0, "")), (1_000, "events, pages of 1,000", Target::None)];

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let server = ground.serve(&[("agent.max_inflight_events", "1000")])?;
    let events = bench.sized(EVENTS);
    bench.measure("the backlog", async {
        for (page, _, _) in PAGES {
            for round in 0..bench.rounds {
                ground.stand_at_head(server.address, &ground.reader, &consumer(page, round)).await?;
            }
        }
        ground.publish(server.address, events).await
    })?;
    let mut lines = Vec::new();
    for (page, figure, target) in PAGES {
        let rates = bench.each_round(RowName::Rest, |round| {
            let consumer = Consumer { token: &ground.reader, name: consumer(page, round) };
            bench.measure("polling", consumer.work_through(server.address, page, events, bench.window))
        })?;
        lines.push(Line::new(RowName::Rest, figure, Unit::PerSecond, rates).target(target));
    }
    server.stop()?;
    Ok(lines)
}

/// A consumer of its own for each round, so that each has the whole backlog before it.
fn consumer(page: usize, round: usize) -> String {
    format!("rest-{page}-{round}")
}

struct Consumer<'a> {
    token: &'a str,
    name: String,
}

impl Consumer<'_> {
    /// Events per second that were polled and acknowledged, until the window ends or the backlog does.
    async fn work_through(&self, address: SocketAddr, page: usize, events: usize, window: Duration) -> Result<f64, Failure> {
        let mut connection = HttpConnection::connect(address).await?;
        let poll = Request::new("GET", &self.path(&format!("events?limit={page}"))).bearer(self.token).render();
        let state = Request::new("GET", &self.path("")).bearer(self.token).render();
        let first = number_behind(connection.call(&state).await?.success()?, br#""acked_seq":"#)?;
        let (mut acked, begin) = (first, Instant::now());
        while begin.elapsed() < window && acked < first + events as u64 {
            let answer = connection.call(&poll).await?.success()?;
            let cursor = number_behind(answer.get(answer.len().saturating_sub(TAIL)..).unwrap_or(answer), br#""next_cursor":"#)?;
            if cursor <= acked {
                return Err(Failure::Wrong(format!("an empty page at {acked}, in the middle of the backlog")));
            }
            let body = format!(r#"{{"seq":{cursor}}}"#);
            let ack = Request::new("POST", &self.path("ack")).bearer(self.token).json(body).render();
            connection.call(&ack).await?.success()?;
            acked = cursor;
        }
        Ok((acked - first) as f64 / begin.elapsed().as_secs_f64())
    }

    fn path(&self, end: &str) -> String {
        format!("/v1/agents/me/consumers/{}/{end}", self.name).trim_end_matches('/').to_owned()
    }
}

/// The number behind the last `name` in `text`.
fn number_behind(text: &[u8], name: &[u8]) -> Result<u64, Failure> {
    let number = text.windows(name.len()).rposition(|window| window == name).and_then(|at| {
        let digits = text.get(at + name.len()..)?;
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
    });
    number.ok_or_else(|| Failure::Wrong(format!("an answer without {}", String::from_utf8_lossy(name))))
}

#[cfg(test)]
mod tests {
    use super::number_behind;

    #[test]
    fn the_position_of_a_page_is_its_own_and_not_one_in_a_payload() {
        let page = br#"{"events":[{"payload":{"next_cursor":1}}],"next_cursor":184392,"head_seq":200000}"#;
        assert_eq!(number_behind(page, br#""next_cursor":"#).unwrap(), 184_392);
        assert!(number_behind(b"{}", br#""next_cursor":"#).is_err());
    }
}
