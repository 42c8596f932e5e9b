//! How fast the store appends and reads, beside a raw loop over the same engine in the same run.
//!
//! `cargo run --release -p doorstep-store-sqlite --example append_rate [SECONDS]`
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a measurement that fails has nothing to clean up")]
#![expect(clippy::expect_used, reason = "a measurement that fails has nothing to clean up")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use authz::{AdminTx, Tenant, TenantState};
use bytes::Bytes;
use domain::{
    Audience, ChannelRef, Clock, EventId, EventOrigin, EventType, IdGenerator, Publication, Seq, StoreError, SyncEpoch, SystemClock,
    SystemIds, TenantId, run_tx,
};
use doorstep_store_sqlite::{SqliteStore, StoreOptions};
use rusqlite::{Connection, params};
use sync::{Append, LogStore, PageRange};

const BODY: usize = 512;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    let span = Duration::from_secs(seconds);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("raw.sqlite");
    raw(&path, span);

    let clock = Arc::new(SystemClock::new());
    let store = SqliteStore::open(directory.path().join("store"), StoreOptions::default(), clock.clone()).unwrap();
    let tenant = create_tenant(&store, clock.now()).await;
    for (tasks, events) in [(1, 1), (64, 1), (64, 1), (256, 1), (4, 100), (1, 1000)] {
        measure(&store, &tenant, clock.clone(), (tasks, events), span).await;
    }
    read(&store, &tenant).await;
    store.close().await;
    let started = Instant::now();
    let store = SqliteStore::open(directory.path().join("store"), StoreOptions::default(), clock).unwrap();
    println!("open again                                {:>9.1} ms", started.elapsed().as_secs_f64() * 1e3);
    store.close().await;
}

async fn create_tenant(store: &SqliteStore, created_at: domain::Timestamp) -> TenantId {
    let id = TenantId::parse("acme").unwrap();
    let tenant =
        Tenant { id: id.clone(), state: TenantState::Active, head: Seq::ZERO, epoch: SyncEpoch::new(SystemIds.uuid()), created_at };
    run_tx::<dyn AdminTx, (), StoreError, _>(store, "create_tenant", move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move { tx.create_tenant(&tenant).await })
    })
    .await
    .unwrap();
    id
}

fn publication(clock: &dyn Clock) -> Publication {
    let id = EventId::new(SystemIds.uuid());
    let head = format!(r#""id":"{id}","type":"message.created","created_at":"{}","payload":{{"text":""#, clock.now());
    let body = format!("{head}{}\"}}}}", "x".repeat(BODY.saturating_sub(head.len() + 3)));
    Publication {
        id,
        event_type: EventType::parse("message.created").unwrap(),
        channel: Some(ChannelRef::parse("support/general").unwrap()),
        audience: Audience::default(),
        origin: EventOrigin::Published,
        created_at: clock.now(),
        body: Bytes::from(body),
        deduplication: None,
    }
}

async fn measure(store: &Arc<SqliteStore>, tenant: &TenantId, clock: Arc<dyn Clock>, (tasks, events): (usize, usize), span: Duration) {
    let before = store.metrics().snapshot();
    let appended = Arc::new(AtomicU64::new(0));
    let mut running = tokio::task::JoinSet::new();
    let started = Instant::now();
    for _ in 0..tasks {
        let (store, tenant, clock, appended) = (Arc::clone(store), tenant.clone(), Arc::clone(&clock), Arc::clone(&appended));
        running.spawn(async move {
            let mut slowest = Duration::ZERO;
            let template = publication(&*clock);
            while started.elapsed() < span {
                let request = (0..events).map(|_| Publication { id: EventId::new(SystemIds.uuid()), ..template.clone() }).collect();
                let asked = Instant::now();
                store.append(&tenant, request).await.unwrap();
                slowest = slowest.max(asked.elapsed());
                appended.fetch_add(events as u64, Ordering::Relaxed);
            }
            slowest
        });
    }
    let slowest = running.join_all().await.into_iter().max().unwrap_or_default();
    let took = started.elapsed().as_secs_f64();
    let after = store.metrics().snapshot();
    let commits = (after.commits - before.commits).max(1);
    println!(
        "{tasks:>3} in flight, {events:>4} in a request      {:>9.0} events/s, {:>6.1} units per commit, {:>6.0} us per commit, slowest {:.1} ms",
        appended.load(Ordering::Relaxed) as f64 / took,
        (after.units - before.units) as f64 / commits as f64,
        (after.commit_micros - before.commit_micros) as f64 / commits as f64,
        slowest.as_secs_f64() * 1e3,
    );
}

async fn read(store: &SqliteStore, tenant: &TenantId) {
    for limit in [100, 1000] {
        let started = Instant::now();
        let (mut after, mut rows) = (Seq::ZERO, 0_usize);
        while rows < 400_000 {
            let range = PageRange { after, up_to: None, max_events: limit, max_bytes: 4 << 20 };
            let page = store.page(tenant, range).await.unwrap();
            let Some(last) = page.events.last() else { break };
            after = last.seq;
            rows += page.events.len();
        }
        println!("read in pages of {limit:>4}                      {:>9.0} events/s", rows as f64 / started.elapsed().as_secs_f64());
    }
}

/// The floor: prepared statements on one connection, nothing around them.
fn raw(path: &std::path::Path, span: Duration) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;").unwrap();
    connection
        .execute_batch("CREATE TABLE log (seq INTEGER PRIMARY KEY, id BLOB, type TEXT, channel TEXT, created_at INTEGER, body TEXT);")
        .unwrap();
    let body = "x".repeat(BODY);
    let mut seq = 0_i64;
    for size in [1, 32, 64, 100] {
        let mut insert = connection.prepare("INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5, ?6)").unwrap();
        let (started, first) = (Instant::now(), seq);
        while started.elapsed() < span {
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            for _ in 0..size {
                seq += 1;
                insert.execute(params![seq, [7_u8; 16], "message.created", "support/general", seq, body]).unwrap();
            }
            connection.execute_batch("COMMIT").unwrap();
        }
        println!(
            "raw loop, {size:>3} in a transaction            {:>9.0} events/s",
            (seq - first) as f64 / started.elapsed().as_secs_f64()
        );
    }
    let started = Instant::now();
    let mut select = connection.prepare("SELECT seq, id, type, channel, created_at, body FROM log LIMIT 400000").unwrap();
    let mut rows = select.query([]).unwrap();
    let (mut count, mut bytes) = (0_u64, 0_usize);
    while let Some(row) = rows.next().unwrap() {
        bytes += row.get_ref(5).unwrap().as_bytes().unwrap().len();
        count += 1;
    }
    println!("raw scan                                  {:>9.0} events/s ({bytes} bytes)", count as f64 / started.elapsed().as_secs_f64());
}
