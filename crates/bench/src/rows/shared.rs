//! `postgres-publish`, `postgres-publish-batch` and `postgres-nodes`: the same work over the shared store, on a throwaway cluster that is as durable as in
//! production.

use futures_util::future::try_join_all;
use testkit::postgres::{Cluster, ClusterOptions, Durability, TestDatabase};

use super::catch_up::catch_up;
use super::load::closed_loop;
use super::publish::latencies;
use super::{RowName, unzip};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::floor::SharedAppendFloor;
use crate::ground::{Ground, PAYLOAD_BYTES, Server};
use crate::report::{Line, Target, Unit};

/// What each of the three consumers of `postgres-nodes` has before it.
const EVENTS: usize = 50_000;
/// Consumers of `postgres-nodes`, and nodes.
const NODES: usize = 3;
/// Room for caches as the embedded store has, and for its log between checkpoints.
const SETTINGS: [(&str, &str); 2] = [("shared_buffers", "256MB"), ("max_wal_size", "4GB")];

/// A cluster and two databases of it: one for servers, one for floors.
struct Yard {
    store: TestDatabase,
    floor: TestDatabase,
    _cluster: Cluster,
}

impl Yard {
    /// Where PostgreSQL is not installed there is none.
    fn start(bench: &Bench) -> Option<Self> {
        let options = SETTINGS.iter().fold(ClusterOptions::new(Durability::Full), |options, (name, value)| options.with(name, value));
        let cluster = Cluster::try_start(&options).ok()?;
        let (store, floor) = bench.runtime.block_on(async { (cluster.empty_database().await, cluster.empty_database().await) });
        Some(Self { store, floor, _cluster: cluster })
    }
}

/// Single events over 64 connections.
pub(super) fn single(bench: &Bench) -> Result<Vec<Line>, Failure> {
    publish(bench, RowName::PostgresPublish, 64, 1, 64, 0.4)
}

/// 100 events in each request over 8 connections.
pub(super) fn batches(bench: &Bench) -> Result<Vec<Line>, Failure> {
    publish(bench, RowName::PostgresPublishBatch, 8, 100, 100, 0.6)
}

fn publish(bench: &Bench, row: RowName, connections: usize, events: usize, group: usize, share: f64) -> Result<Vec<Line>, Failure> {
    let Some(yard) = Yard::start(bench) else { return Ok(Vec::new()) };
    let ground = Ground::shared(bench, &yard.store.url)?;
    let server = ground.serve(&[])?;
    let request = ground.publish_request(events);
    let mut floor = bench.measure("opening the floor", SharedAppendFloor::open(&yard.floor.url, PAYLOAD_BYTES))?;
    let rounds = bench.each_round(row, |_| {
        let floor = bench.measure("the floor", floor.rate(group, bench.window))?;
        let load = closed_loop(server.address, request.clone(), connections, bench.window);
        Ok((floor, bench.measure("publishing", load)?))
    })?;
    server.stop()?;
    let (floors, answers) = unzip(rounds);
    let rates = answers.iter().map(|answered| answered.rate * events as f64).collect();
    let line = Line::new(row, "events", Unit::PerSecond, rates).over("one writer, same cluster", floors).target(Target::OfFloor(share));
    Ok([line].into_iter().chain(latencies(row, &answers, Target::None)).collect())
}

/// Three consumers that catch up at once: all on one node, and each on its own.
pub(super) fn nodes(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let Some(yard) = Yard::start(bench) else { return Ok(Vec::new()) };
    let ground = Ground::shared(bench, &yard.store.url)?;
    let servers =
        (0..NODES).map(|number| ground.serve_node(number, &[("agent.max_inflight_events", "2000")])).collect::<Result<Vec<_>, _>>()?;
    let first = servers.first().ok_or_else(|| Failure::Wrong("no node was started".to_owned()))?.address;
    let events = bench.sized(EVENTS);
    bench.measure("the backlog", async {
        for (round, spread) in rounds(bench) {
            for number in 0..NODES {
                ground.stand_at_head(first, &ground.reader, &consumer(round, spread, number)).await?;
            }
        }
        ground.publish(first, events).await
    })?;
    let measured = bench.each_round(RowName::PostgresNodes, |round| {
        let one = bench.measure("catching up on one node", all(&servers, &ground, round, false, events))?;
        let three = bench.measure("catching up on three nodes", all(&servers, &ground, round, true, events))?;
        Ok((one, three))
    })?;
    for server in servers {
        server.stop()?;
    }
    let (one, three) = unzip(measured);
    let together = Line::new(RowName::PostgresNodes, "events, one node", Unit::PerSecond, one.clone());
    Ok(vec![together, Line::new(RowName::PostgresNodes, "events, three nodes", Unit::PerSecond, three).over("one node", one)])
}

fn rounds(bench: &Bench) -> impl Iterator<Item = (usize, bool)> {
    (0..bench.rounds).flat_map(|round| [(round, false), (round, true)])
}

fn consumer(round: usize, spread: bool, number: usize) -> String {
    format!("{}-{round}-{number}", if spread { "three" } else { "one" })
}

/// Events per second of all consumers together.
async fn all(servers: &[Server], ground: &Ground, round: usize, spread: bool, events: usize) -> Result<f64, Failure> {
    let readers = servers.iter().enumerate().map(|(number, server)| {
        let address = if spread { server.address } else { servers.first().map_or(server.address, |first| first.address) };
        let name = consumer(round, spread, number);
        async move { catch_up(address, &ground.reader, &name, events).await }
    });
    Ok(try_join_all(readers).await?.into_iter().sum())
}
