//! How fast the store appends and reads, and what of the processor it takes for that. Set `TMPDIR` to choose the medium.
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
use sync::{Append, LogStore, PageRange};

const BODY: usize = 512;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let span = Duration::from_secs_f64(seconds);
    let directory = tempfile::tempdir().expect("a temporary directory");
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
    println!("open again                         {:>9.1} ms", started.elapsed().as_secs_f64() * 1e3);
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
        work: None,
    }
}

async fn measure(store: &Arc<SqliteStore>, tenant: &TenantId, clock: Arc<dyn Clock>, (tasks, events): (usize, usize), span: Duration) {
    let (before, cpu) = (store.metrics().snapshot(), Cpu::now());
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
    let (after, cpu) = (store.metrics().snapshot(), Cpu::now().since(cpu));
    let appended = appended.load(Ordering::Relaxed) as f64;
    let commits = (after.commits - before.commits).max(1);
    println!(
        "{tasks:>3} in flight, {events:>4} in a request {:>9.0} events/s, {:>5.1} units and {:>5.0} us a commit, slowest {:>6.1} ms, cpu {:.2} + {:.2} us an event",
        appended / took,
        (after.units - before.units) as f64 / commits as f64,
        (after.commit_micros - before.commit_micros) as f64 / commits as f64,
        slowest.as_secs_f64() * 1e3,
        cpu.store * 1e6 / appended,
        cpu.callers * 1e6 / appended,
    );
}

async fn read(store: &SqliteStore, tenant: &TenantId) {
    for limit in [100, 1000] {
        let (started, cpu) = (Instant::now(), Cpu::now());
        let (mut after, mut rows) = (Seq::ZERO, 0_usize);
        while rows < 400_000 {
            let range = PageRange { after, up_to: None, max_events: limit, max_bytes: 4 << 20 };
            let page = store.page(tenant, range).await.unwrap();
            let Some(last) = page.events.last() else { break };
            after = last.seq;
            rows += page.events.len();
        }
        let (rows, cpu) = (rows as f64, Cpu::now().since(cpu));
        println!(
            "read in pages of {limit:>4}            {:>9.0} events/s, cpu {:.2} + {:.2} us an event",
            rows / started.elapsed().as_secs_f64(),
            cpu.store * 1e6 / rows,
            cpu.callers * 1e6 / rows,
        );
    }
}

/// Processor seconds of this process: the store's threads, and all others.
#[derive(Clone, Copy)]
struct Cpu {
    store: f64,
    callers: f64,
}

impl Cpu {
    /// Zero where the system does not tell.
    fn now() -> Self {
        let mut cpu = Self { store: 0.0, callers: 0.0 };
        let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return cpu };
        for thread in threads.flatten() {
            let read = |file| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            let nanoseconds: f64 = read("schedstat").split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
            let share = if read("comm").starts_with("store-") { &mut cpu.store } else { &mut cpu.callers };
            *share += nanoseconds / 1e9;
        }
        cpu
    }

    fn since(self, earlier: Self) -> Self {
        Self { store: self.store - earlier.store, callers: self.callers - earlier.callers }
    }
}
