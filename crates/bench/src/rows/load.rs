//! Closed loops of requests: each connection sends the next when the last was answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::statistics::Latencies;
use crate::wire::{HttpConnection, WireError};

/// What a load was answered with.
#[derive(Debug)]
pub(crate) struct Answered {
    /// Answers per second.
    pub(crate) rate: f64,
    /// From the write of a request to its answer.
    pub(crate) latencies: Latencies,
}

/// Sends `request` over `connections` for `window`, after a fifth of it to get going. Only answers within the window count.
pub(crate) async fn closed_loop(address: SocketAddr, request: Vec<u8>, connections: usize, window: Duration) -> Result<Answered, Failure> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(HttpConnection::connect(address).await?);
    }
    let request: Arc<[u8]> = request.into();
    let begin = Instant::now() + window / 5;
    let end = begin + window;
    let mut loops = JoinSet::new();
    for connection in open {
        loops.spawn(one_loop(connection, Arc::clone(&request), begin, end));
    }
    let mut latencies = Latencies::new();
    while let Some(ended) = loops.join_next().await {
        latencies.join(&ended.map_err(|_| Failure::Wrong("a loop of requests panicked".to_owned()))??);
    }
    Ok(Answered { rate: latencies.len() as f64 / window.as_secs_f64(), latencies })
}

async fn one_loop(mut connection: HttpConnection, request: Arc<[u8]>, begin: Instant, end: Instant) -> Result<Latencies, WireError> {
    let mut latencies = Latencies::new();
    loop {
        let sent = Instant::now();
        connection.call(&request).await?.success()?;
        let answered = Instant::now();
        if answered >= end {
            return Ok(latencies);
        }
        if answered >= begin {
            latencies.record(answered - sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::closed_loop;
    use crate::failure::Failure;
    use crate::wire::Request;

    /// Answers every request on one connection with `status`, until it ends.
    async fn serve(listener: &TcpListener, status: &str) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1024];
        while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn only_what_was_answered_counts_and_a_refusal_breaks_the_run() {
        for (status, works) in [("201 Created", true), ("503 Service Unavailable", false)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let load = closed_loop(address, Request::new("GET", "/").render(), 1, Duration::from_millis(50));
            let ((), answered) = tokio::join!(serve(&listener, status), load);
            match answered {
                Ok(answered) => assert!(works && answered.rate > 0.0 && answered.latencies.len() > 0),
                Err(failure) => assert!(!works && matches!(failure, Failure::Wire(_)), "{failure}"),
            }
        }
    }
}
