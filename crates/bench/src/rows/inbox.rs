//! Workers over REST: what `claim-ack`, `wake-latency` and `claim-under-history` share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::ground::{CHANNEL, Ground, PAYLOAD_BYTES};
use crate::wire::{HttpConnection, Request};

/// Items in a request that only gives work.
const FILL: usize = 1_000;

/// An event that leaves an item for the agent `reader`.
fn work() -> String {
    let text = "x".repeat(PAYLOAD_BYTES - r#"{"text":""}"#.len());
    format!(
        r#"{{"type":"bench.task","channel":"{CHANNEL}","recipients":[{{"kind":"agent","id":"reader"}}],"payload":{{"text":"{text}"}}}}"#
    )
}

/// A request that gives `count` items.
pub(super) fn give_request(ground: &Ground, count: usize) -> Vec<u8> {
    let body = if count == 1 { work() } else { format!(r#"{{"events":[{}]}}"#, vec![work(); count].join(",")) };
    Request::new("POST", "/v1/events").bearer(&ground.producer).json(body).render()
}

/// More items than can be worked off in `window` and what leads up to it.
pub(super) fn enough(window: Duration) -> usize {
    const MOST_PER_MILLISECOND: usize = 150;
    usize::try_from(window.as_millis()).unwrap_or(usize::MAX).saturating_mul(MOST_PER_MILLISECOND)
}

/// Gives `count` items in large requests.
pub(super) async fn give(ground: &Ground, address: SocketAddr, count: usize) -> Result<(), Failure> {
    let mut connection = HttpConnection::connect(address).await?;
    let full = give_request(ground, FILL);
    for _ in 0..count.div_ceil(FILL) {
        connection.call(&full).await?.success()?;
    }
    Ok(())
}

/// A worker on one connection.
pub(super) struct Worker {
    connection: HttpConnection,
    token: String,
    claim: Vec<u8>,
}

impl Worker {
    /// Claims `batch` at once, waiting up to `wait` seconds.
    pub(super) async fn connect(address: SocketAddr, token: &str, batch: usize, wait: u32) -> Result<Self, Failure> {
        let connection = HttpConnection::connect(address).await?;
        let body = format!(r#"{{"limit":{batch},"lease_seconds":600,"wait_seconds":{wait}}}"#);
        let claim = Request::new("POST", "/v1/inbox/claim-next").bearer(token).json(body).render();
        Ok(Self { connection, token: token.to_owned(), claim })
    }

    /// Claims; answers event ids with their lease tokens.
    pub(super) async fn claim(&mut self) -> Result<Vec<(String, String)>, Failure> {
        let answer = self.connection.call(&self.claim).await?.success()?;
        claims(answer)
    }

    /// Acknowledges all of these as completed.
    pub(super) async fn acknowledge(&mut self, claims: &[(String, String)]) -> Result<(), Failure> {
        let ack = |(id, token): &(String, String)| format!(r#"{{"event_id":"{id}","lease_token":"{token}","result":"completed"}}"#);
        let acks: Vec<String> = claims.iter().map(ack).collect();
        let body = format!(r#"{{"acks":[{}]}}"#, acks.join(","));
        let request = Request::new("POST", "/v1/inbox/acknowledge").bearer(&self.token).json(body).render();
        let answer = self.connection.call(&request).await?.success()?;
        let done = count(answer, br#""outcome":"ok""#);
        if done == claims.len() { Ok(()) } else { Err(Failure::Wrong(format!("{done} of {} acknowledges counted", claims.len()))) }
    }
}

/// The items of a claim's answer, without reading more of it than their ids and tokens.
fn claims(answer: &[u8]) -> Result<Vec<(String, String)>, Failure> {
    let text = std::str::from_utf8(answer).map_err(|_| Failure::Wrong("a claim that is no text".to_owned()))?;
    let (mut claims, mut rest) = (Vec::new(), text);
    while let Some((id, after)) = quoted(rest, r#""event_id":""#) {
        let Some((token, after)) = quoted(after, r#""lease_token":""#) else {
            return Err(Failure::Wrong("a claim without a lease token".to_owned()));
        };
        claims.push((id.to_owned(), token.to_owned()));
        rest = after;
    }
    Ok(claims)
}

/// The text between `name` and the next quote, and what follows.
fn quoted<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let (_, after) = text.split_once(name)?;
    after.split_once('"')
}

fn count(text: &[u8], what: &[u8]) -> usize {
    text.windows(what.len()).filter(|window| *window == what).count()
}

/// Items per second that `workers` claim, `batch` at once, and acknowledge, within `window` after a fifth of it to get going.
pub(super) async fn work_off(address: SocketAddr, token: &str, batch: usize, workers: usize, window: Duration) -> Result<f64, Failure> {
    let begin = Instant::now() + window / 5;
    let end = begin + window;
    let (done, starved) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut loops = JoinSet::new();
    for _ in 0..workers {
        let mut worker = Worker::connect(address, token, batch, 0).await?;
        let (done, starved) = (Arc::clone(&done), Arc::clone(&starved));
        loops.spawn(async move {
            loop {
                let claims = worker.claim().await?;
                if claims.is_empty() {
                    starved.store(true, Ordering::Relaxed);
                    return Ok::<_, Failure>(());
                }
                worker.acknowledge(&claims).await?;
                let now = Instant::now();
                if now >= end {
                    return Ok(());
                }
                if now >= begin {
                    done.fetch_add(claims.len() as u64, Ordering::Relaxed);
                }
            }
        });
    }
    while let Some(ended) = loops.join_next().await {
        ended.map_err(|_| Failure::Wrong("a worker panicked".to_owned()))??;
    }
    if starved.load(Ordering::Relaxed) {
        return Err(Failure::Wrong("the workers ran out of items".to_owned()));
    }
    Ok(done.load(Ordering::Relaxed) as f64 / window.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{claims, count};

    #[test]
    fn ids_and_tokens_are_found_in_their_order() {
        let answer = br#"{"claims":[{"event_id":"a","payload":{},"lease_token":"s"},{"event_id":"b","lease_token":"t"}],"empty":false}"#;
        let expected = [("a".to_owned(), "s".to_owned()), ("b".to_owned(), "t".to_owned())];
        assert_eq!(claims(answer).unwrap(), expected);
        assert!(claims(br#"{"claims":[{"event_id":"a"}]}"#).is_err());
        assert_eq!(claims(br#"{"claims":[],"empty":true}"#).unwrap(), []);
        assert_eq!(count(br#"[{"outcome":"ok"},{"outcome":"ok"}]"#, br#""outcome":"ok""#), 2);
    }
}
