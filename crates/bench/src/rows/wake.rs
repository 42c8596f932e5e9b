//! `wake-latency`: from the write of a publish to the answer of the `claim-next` that waits for it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::{RowName, inbox};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::ground::Ground;
use crate::report::{Line, Target, Unit};
use crate::statistics::Latencies;
use crate::wire::HttpConnection;

/// How long the worker has to be waiting before its work arrives.
const SETTLE: Duration = Duration::from_millis(2);

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let server = ground.serve(&[])?;
    let rounds = bench.each_round(RowName::WakeLatency, |_| bench.measure("wake-ups", one_round(ground, server.address, bench.window)))?;
    server.stop()?;
    let percentile = |percent| rounds.iter().map(|latencies: &Latencies| latencies.percentile(percent)).collect();
    Ok(vec![
        Line::new(RowName::WakeLatency, "p50", Unit::Seconds, percentile(50.0)).target(Target::AtMost(0.001, "")),
        Line::new(RowName::WakeLatency, "p99", Unit::Seconds, percentile(99.0)).target(Target::AtMost(0.005, "")),
    ])
}

async fn one_round(ground: &Ground, address: SocketAddr, window: Duration) -> Result<Latencies, Failure> {
    let mut worker = inbox::Worker::connect(address, &ground.reader, 1, 30).await?;
    let mut producer = HttpConnection::connect(address).await?;
    let request = inbox::give_request(ground, 1);
    let (mut latencies, end) = (Latencies::new(), Instant::now() + window);
    while Instant::now() < end {
        let publishing = async {
            tokio::time::sleep(SETTLE).await;
            let sent = Instant::now();
            producer.call(&request).await?.success()?;
            Ok::<_, Failure>(sent)
        };
        let claiming = async { Ok::<_, Failure>((worker.claim().await?, Instant::now())) };
        let (sent, (claims, woken)) = tokio::try_join!(publishing, claiming)?;
        if claims.len() != 1 {
            return Err(Failure::Wrong(format!("{} items for one publish", claims.len())));
        }
        latencies.record(woken.saturating_duration_since(sent));
        worker.acknowledge(&claims).await?;
    }
    Ok(latencies)
}
