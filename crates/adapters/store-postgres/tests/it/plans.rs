//! The cost of statements, on tables that are full: each finds its rows through an index, and none is there for nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agents::{ConsumerKey, Holder, RestWindow, Save, Take, WindowWrite};
use domain::{ConsumerName, Publication};
use hooks::DueQuery;
use inbox::{InboxStore, LeaseHash, QueueFilter, Rules};
use intake::{Schedule, ScheduleStore};
use sqlx_core::executor::Executor;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_postgres::PgConnection;
use testkit::ManualClock;
use testkit::conformance::hooks::{EVERY_GROUP, ring_at};
use testkit::conformance::inbox::{agent, part, poll_range};
use testkit::conformance::support::{Fixture, START, range, seq};

use crate::conformance::Opened;

/// Statements that read a whole table, each with the reason why that is no harm.
const WHOLE_TABLES: &[(&str, &str)] = &[
    ("hooks/groups", "sixteen rows"),
    ("hooks/server_keys", "two or three keys of the instance"),
    ("hooks/lock_server_keys", "two or three keys of the instance"),
    ("hooks/totals", "counts, for metrics"),
    ("union/inbox_totals", "one row per inbox, for metrics"),
    ("store/migrations", "one row per release of the schema"),
    ("cluster/nodes", "one row per server process"),
    ("cluster/forget_nodes", "one row per server process"),
    ("cluster/give_all_back", "one row per kind of background work"),
    ("intake/put_publish_limits", "one row"),
    ("sync/new_epochs", "every log gets a new epoch, while no server runs"),
    ("inbox/end_sessions", "the same step of an operator"),
    ("inbox/forget_claims", "the same step of an operator"),
    ("inbox/forget_lease_keys", "the same step of an operator"),
];

/// How a statement begins that is no query: it has no plan.
const NO_PLAN: &[&str] = &["BEGIN", "CREATE", "ROLLBACK", "SET", "ALTER", "DROP", "ANALYZE"];
/// The same for what goes with an end of a transaction.
const NO_PLAN_EITHER: &[&str] = &["store/commit"];

/// Tables that grow with the load.
const LARGE: &[&str] = &[
    "event_log",
    "deduplication_keys",
    "inbox_items",
    "inbox_ended",
    "inbox_recipients",
    "inbox_queues",
    "inbox_payloads",
    "inbox_claims",
    "agent_consumer_cursors",
    "scheduled_events",
    "hooks",
    "hook_deliveries",
    "hook_attempts",
    "hook_keys",
    "principals",
    "tokens",
    "audit_log",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found
}

/// `module/name` to text.
pub(crate) fn statements() -> BTreeMap<String, String> {
    let folder = root().join("queries");
    let name = |path: &Path| path.strip_prefix(&folder).unwrap().with_extension("").to_str().unwrap().replace('\\', "/");
    files(&folder, "sql").into_iter().map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn every_statement_is_used() {
    let sources: String = files(&root().join("src"), "rs").iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let unused: Vec<_> = statements().into_keys().filter(|name| !sources.contains(&format!("\"{name}\""))).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

async fn run(session: &mut PgConnection, text: impl Into<String>) -> Result<u64, sqlx_core::Error> {
    session.execute(sqlx_core::raw_sql::raw_sql(AssertSqlSafe(text.into()))).await.map(|done| done.rows_affected())
}

/// The plan that a session of the store uses for a statement, whatever its values.
async fn plan(session: &mut PgConnection, text: &str) -> Result<Vec<String>, sqlx_core::Error> {
    let values = (1..100).take_while(|number| text.contains(&format!("${number}"))).count();
    run(session, format!("PREPARE tested AS {text}")).await?;
    let unbound = vec!["NULL"; values].join(", ");
    let unbound = if values == 0 { String::new() } else { format!("({unbound})") };
    let steps = sqlx_core::query_scalar::query_scalar(AssertSqlSafe(format!("EXPLAIN EXECUTE tested{unbound}"))).persistent(false);
    let steps = steps.fetch_all(&mut *session).await;
    run(session, "DEALLOCATE tested").await?;
    steps
}

/// A database in which every table that grows has grown.
async fn filled() -> (Fixture, Opened) {
    let clock = Arc::new(ManualClock::new(START));
    let first = Opened::in_new_database(clock.clone()).await;
    let beside = Opened::over(Arc::clone(&first.database), clock.clone()).await;
    let fixture = Fixture::over(Box::new(first), clock);
    fixture.create_tenant("acme").await;
    for number in 0..30 {
        fixture.create_principal(&format!("agent{number}"), authz::PrincipalKind::Agent).await;
    }
    for batch in 0..40 {
        let mut jobs: Vec<Publication> = Vec::new();
        for number in 0..250 {
            let deduplication = fixture.keyed(&format!("k{batch}-{number}"), "a").deduplication;
            let name = format!("agent{}", (batch * 250 + number) % 29);
            let mut work = fixture.work(&[&format!("{name}/q{}", number % 3)]);
            work.expires_at = (number % 10 == 0).then(|| fixture.now().plus(Duration::from_hours(9)));
            jobs.push(Publication { deduplication, ..fixture.job_of(work) });
            jobs.push(fixture.event("x"));
        }
        fixture.append(jobs).await.unwrap();
        fixture.clock.advance(Duration::from_secs(1));
    }
    for number in 0..30 {
        let hook = fixture.hook_for(&format!("agent{number}")).await;
        let rings: Vec<_> = (1..=200).map(|cause| ring_at(&hook, cause, fixture.now().plus(Duration::from_secs(cause)))).collect();
        fixture.add(&rings).await.unwrap();
    }
    for number in 0..300 {
        let key = consumer(number % 30, number / 30);
        fixture.store.take(&Take { key, holder: Holder::Rest }, 99).await.unwrap();
    }
    let (tenant, publisher) = (fixture.tenant.clone(), agent("agent1"));
    let waiting: Vec<Schedule> = (0..2_000)
        .map(|number| Schedule {
            publication: fixture.event("later"),
            publisher: publisher.clone(),
            available_at: fixture.now().plus(Duration::from_secs(60 + number)),
        })
        .collect();
    let scheduled = fixture.publish_tx(move |tx| {
        let (tenant, waiting) = (tenant.clone(), waiting.clone());
        Box::pin(async move {
            for schedule in &waiting {
                tx.schedule(&tenant, schedule).await?;
            }
            Ok(())
        })
    });
    scheduled.await.unwrap();
    run(&mut beside.raw().await, "ANALYZE").await.unwrap();
    (fixture, beside)
}

fn consumer(number: usize, turn: usize) -> ConsumerKey {
    ConsumerKey {
        tenant: testkit::conformance::support::tenant("acme"),
        agent: agent(&format!("agent{number}")),
        name: ConsumerName::parse(&format!("c{turn}")).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_finds_its_rows_through_an_index() {
    let (fixture, beside) = filled().await;
    let mut session = beside.raw().await;
    run(&mut session, "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off").await.unwrap();
    let (mut whole, mut strange) = (Vec::new(), Vec::new());
    for (name, text) in statements() {
        let mut lines = text.lines().filter(|line| !line.starts_with("--"));
        let first = lines.next().unwrap();
        if NO_PLAN.iter().any(|start| first.starts_with(start)) || NO_PLAN_EITHER.contains(&name.as_str()) {
            continue;
        }
        match plan(&mut session, &text).await {
            Ok(steps) if steps.iter().any(|step| step.contains("Seq Scan on ")) => whole.push(format!("{name}: {steps:#?}")),
            Ok(_) => {}
            Err(error) => strange.push(format!("{name}: {error}")),
        }
    }
    let allowed = |line: &String| WHOLE_TABLES.iter().any(|(name, _)| line.starts_with(&format!("{name}: ")));
    assert!(strange.is_empty(), "{strange:#?}");
    assert!(whole.iter().all(allowed), "{}", whole.into_iter().filter(|line| !allowed(line)).collect::<Vec<_>>().join("\n"));
    drop(fixture);
}

/// Rows of each large table that were read from end to end, and rows that were read through an index.
async fn reads(beside: &Opened) -> BTreeMap<String, (i64, i64)> {
    let statement = "SELECT regexp_replace(relname, '_[0-9]+$', ''), sum(seq_tup_read)::BIGINT, sum(idx_tup_fetch)::BIGINT
                     FROM pg_stat_user_tables WHERE schemaname = 'doorstep' GROUP BY 1";
    let rows: Vec<(String, Option<i64>, Option<i64>)> =
        sqlx_core::query_as::query_as(statement).fetch_all(&mut beside.raw().await).await.unwrap();
    let counted = rows.into_iter().filter(|(name, ..)| LARGE.contains(&name.as_str()));
    counted.map(|(name, whole, indexed)| (name, (whole.unwrap_or(0), indexed.unwrap_or(0)))).collect()
}

/// Calls of every hot path: each is answered from a few rows, also where functions of the database hide their statements.
async fn hot_paths(fixture: &Fixture) {
    let store = &fixture.store;
    let deduplication = fixture.keyed("k3-7", "a").deduplication;
    let repeat = Publication { deduplication, ..fixture.job(&["agent2"]) };
    fixture.append(vec![repeat, fixture.keyed("new", "a"), fixture.job(&["agent1", "agent2"])]).await.unwrap();
    store.head(&fixture.tenant).await.unwrap();
    store.page(&fixture.tenant, sync::PageRange { max_events: 50, ..range(10_000) }).await.unwrap();
    let recipient = fixture.recipient("agent1");
    store.view(&recipient).await.unwrap();
    let page = store.poll(&recipient, &poll_range(100, 20)).await.unwrap();
    assert_eq!(page.items.len(), 20);
    store.backlog(&recipient, &QueueFilter::default(), fixture.now(), 50).await.unwrap();
    store.items(&recipient, &inbox::ItemFilter::default(), part(None, 20)).await.unwrap();
    let asked: Vec<_> = page.items.iter().map(|item| (item.facts.inbox_seq, item.facts.event_id)).collect();
    assert!(store.envelopes(&fixture.tenant, &asked).await.unwrap().iter().all(Option::is_some));
    let claimed = fixture.inbox(move |tx| {
        let recipient = recipient.clone();
        Box::pin(async move {
            let row = tx.recipient(&recipient).await?.unwrap();
            let mut items = tx.available(row.number, &QueueFilter::default(), 10).await?;
            for item in &mut items {
                item.claim(tx.now(), Duration::from_mins(1), LeaseHash::of("t"), None, &Rules::default()).unwrap();
            }
            tx.put(&items).await?;
            tx.due_items(row.number, tx.now(), None, 10).await?;
            tx.next_due_item(row.number).await?;
            tx.claimed(row.number, 50).await?;
            Ok(items.len())
        })
    });
    assert_eq!(claimed.await, Ok(10));
    InboxStore::due(&**store, fixture.now(), 10).await.unwrap();
    InboxStore::next_due(&**store).await.unwrap();
    let key = consumer(3, 3);
    let taken = store.take(&Take { key: key.clone(), holder: Holder::Rest }, 99).await.unwrap();
    let window = RestWindow { read: seq(9), ..RestWindow::default() };
    assert!(store.write_window(&WindowWrite { key: key.clone(), expected_version: taken.row.window_version, window }).await.unwrap());
    store.save(&[Save { key: key.clone(), holder: Holder::Rest, acked: Some(taken.head) }]).await.unwrap();
    store.ack(&key, taken.head).await.unwrap();
    store.status(&key).await.unwrap();
    let query = DueQuery {
        now: fixture.now().plus(Duration::from_secs(5)),
        hooks: 5,
        per_hook: 5,
        groups: &EVERY_GROUP,
        except: &[],
        except_tenants: &[],
    };
    assert_eq!(fixture.due(query).await.len(), 5);
    fixture.next_due().await;
    ScheduleStore::due(&**store, fixture.now().plus(Duration::from_secs(70)), 5).await.unwrap();
    ScheduleStore::next_due(&**store).await.unwrap();
    store.expire_keys(fixture.now(), 10).await.unwrap();
}

/// What the hot paths read of tables, beyond what they should, when these are all they are to look at.
async fn reads_too_much(fixture: Fixture, beside: &Opened, is_meant: impl Fn(&str) -> bool) -> (Fixture, Vec<String>) {
    // Counters are written when a session ends.
    let fixture = fixture.reopen().await;
    let before = reads(beside).await;
    hot_paths(&fixture).await;
    let fixture = fixture.reopen().await;
    let mut much = Vec::new();
    for (table, (whole, indexed)) in reads(beside).await.into_iter().filter(|(table, _)| is_meant(table)) {
        let (was_whole, was_indexed) = before[&table];
        if whole > was_whole || indexed - was_indexed > 1_500 {
            much.push(format!("{table}: {} rows from end to end, {} through an index", whole - was_whole, indexed - was_indexed));
        }
    }
    (fixture, much)
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_paths_read_few_rows_of_tables_that_are_full() {
    let (fixture, beside) = filled().await;
    let mut session = beside.raw().await;
    let full = "SELECT relname FROM pg_class WHERE relnamespace = 'doorstep'::regnamespace AND reltuples >= 1000";
    let full: Vec<String> = sqlx_core::query_scalar::query_scalar(full).fetch_all(&mut session).await.unwrap();
    for table in ["inbox_items", "deduplication_keys", "hook_deliveries", "scheduled_events"] {
        assert!(full.iter().any(|name| name == table), "{table} is to be large: {full:?}");
    }
    let (fixture, much) = reads_too_much(fixture, &beside, |table| full.iter().any(|name| name == table) || table == "event_log").await;
    assert!(much.is_empty(), "{much:#?}");
    // The others are small here, and the planner rightly reads them whole: whether they have the index that they need is seen when it may not.
    run(&mut session, format!("ALTER DATABASE {} SET enable_seqscan = off", beside.database.name())).await.unwrap();
    let (fixture, much) = reads_too_much(fixture, &beside, |_| true).await;
    assert!(much.is_empty(), "{much:#?}");
    drop(fixture);
}
