//! How fast items are claimed and acknowledged, 50 in a unit, and what history does to that. Set `TMPDIR` to choose the medium.
//!
//! `cargo run --release -p doorstep-store-sqlite --example claim_rate [ITEMS]`
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a measurement that fails has nothing to clean up")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use authz::{AdminTx, Tenant, TenantState};
use bytes::Bytes;
use domain::{
    Audience, Clock, EventId, EventOrigin, EventType, IdGenerator, PrincipalId, Priority, Publication, QueueName, Seq, StoreError,
    SyncEpoch, SystemClock, SystemIds, TenantId, Work, WorkFor, run_tx,
};
use doorstep_store_sqlite::{SqliteStore, StoreOptions};
use inbox::{AckResult, InboxTx, Item, LeaseKey, QueueFilter, Recipient, Report, Rules};
use sync::Append;

const UNIT: usize = 50;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let items = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock::new());
    let store = SqliteStore::open(directory.path().join("store"), StoreOptions::default(), clock.clone()).unwrap();
    let tenant = create_tenant(&store, clock.now()).await;
    for round in 0..3 {
        publish(&store, &tenant, &*clock, items).await;
        work(&store, &tenant, round, items).await;
    }
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

fn job(clock: &dyn Clock) -> Publication {
    let (id, agent, now) = (EventId::new(SystemIds.uuid()), PrincipalId::parse("alpha").unwrap(), clock.now());
    let work = Work {
        recipients: vec![WorkFor { agent: agent.clone(), queue: QueueName::default() }],
        priority: Priority::Normal,
        kind: None,
        source: None,
        summary: "something to do".to_owned(),
        available_at: now,
        claim_key: Rules::default().claim_key(now, Priority::Normal),
        expires_at: None,
        max_attempts: 5,
    };
    Publication {
        id,
        event_type: EventType::parse("task.created").unwrap(),
        channel: None,
        audience: Audience::new(&[agent]),
        origin: EventOrigin::Work,
        created_at: now,
        body: Bytes::from(format!(r#""id":"{id}","type":"task.created","payload":{{"text":"{}"}}}}"#, "x".repeat(400))),
        deduplication: None,
        work: Some(Arc::new(work)),
    }
}

async fn publish(store: &SqliteStore, tenant: &TenantId, clock: &dyn Clock, items: usize) {
    let (started, cpu) = (Instant::now(), store_cpu());
    for _ in 0..items / 1000 {
        store.append(tenant, (0..1000).map(|_| job(clock)).collect()).await.unwrap();
    }
    told("published", items, started, cpu);
}

/// Claims and acknowledges everything, four units in flight.
async fn work(store: &Arc<SqliteStore>, tenant: &TenantId, round: usize, items: usize) {
    let (started, cpu) = (Instant::now(), store_cpu());
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (store, tenant) = (Arc::clone(store), tenant.clone());
        workers.spawn(async move {
            let mut done = 0;
            loop {
                let claimed = claim(&store, &tenant).await;
                if claimed.is_empty() {
                    return done;
                }
                done += claimed.len();
                acknowledge(&store, &tenant, claimed.iter().map(|item| item.facts.event_id).collect()).await;
            }
        });
    }
    let done: usize = workers.join_all().await.into_iter().sum();
    told(&format!("claimed and acknowledged with {} behind them", round * items), done, started, cpu);
}

async fn claim(store: &SqliteStore, tenant: &TenantId) -> Vec<Item> {
    let recipient = Recipient { tenant: tenant.clone(), agent: PrincipalId::parse("alpha").unwrap() };
    run_tx::<dyn InboxTx, _, StoreError, _>(store, "claim", move |tx| {
        let recipient = recipient.clone();
        Box::pin(async move {
            let (now, rules) = (tx.now(), Rules::default());
            let mut row = tx.open_recipient(&recipient).await?;
            let key = tx.lease_key(&recipient.tenant, &LeaseKey::new([7; 32])).await?;
            let mut items = tx.due_items(row.number, now, None, UNIT).await?;
            items.extend(tx.available(row.number, &QueueFilter::default(), UNIT).await?);
            for item in &mut items {
                let token = key.token(&recipient.agent, item.facts.event_id, item.next_generation());
                let _ = item.claim(now, rules.lease_default, token.hash(), None, &rules);
                row.look_at(item.due_at());
            }
            tx.put(&items).await?;
            tx.save_recipient(&row).await?;
            Ok(items)
        })
    })
    .await
    .unwrap()
}

async fn acknowledge(store: &SqliteStore, tenant: &TenantId, events: Vec<EventId>) {
    let recipient = Recipient { tenant: tenant.clone(), agent: PrincipalId::parse("alpha").unwrap() };
    run_tx::<dyn InboxTx, (), StoreError, _>(store, "acknowledge", move |tx| {
        let (recipient, events) = (recipient.clone(), events.clone());
        Box::pin(async move {
            let (now, rules) = (tx.now(), Rules::default());
            let Some(row) = tx.recipient(&recipient).await? else { return Ok(()) };
            let mut items: Vec<_> = tx.find(row.number, &events).await?.into_iter().flatten().collect();
            for item in &mut items {
                let _ = item.acknowledge(now, AckResult::Completed, Report::default(), &rules);
            }
            tx.put(&items).await
        })
    })
    .await
    .unwrap();
}

fn told(what: &str, items: usize, started: Instant, cpu: Duration) {
    let (took, cpu) = (started.elapsed().as_secs_f64(), store_cpu().saturating_sub(cpu).as_secs_f64());
    let items = items as f64;
    println!("{what}: {:.0} items/s, {:.1} us of the store's processor each", items / took, cpu * 1e6 / items);
}

/// What the store's threads have used of the processor; zero where the system does not tell.
fn store_cpu() -> Duration {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let used = threads.flatten().filter_map(|thread| {
        let read = |file| std::fs::read_to_string(thread.path().join(file)).ok();
        let nanoseconds = read("schedstat")?.split(' ').next()?.parse().ok()?;
        read("comm")?.starts_with("store-").then(|| Duration::from_nanos(nanoseconds))
    });
    used.sum()
}
