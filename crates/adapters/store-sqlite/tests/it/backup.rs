//! Backup beside a running writer, and what a restore makes of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use agents::{ConsumerKey, CursorStore, Holder, InFlight, RestWindow, SaveOutcome, Take, WindowWrite};
use authz::PrincipalKind;
use domain::{ConsumerName, PrincipalId, SystemIds};
use doorstep_store_sqlite::{OpenError, SqliteStore, StoreOptions, Target, UpkeepError, restore};
use rusqlite::Connection;
use sync::{LogStore, Page};
use tempfile::TempDir;

use crate::support::{Fixture, clock, new_seq, range, seq, tenant};

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn restored(backup: &Path, data: &Path, target: Target) -> Result<doorstep_store_sqlite::RestoreReport, UpkeepError> {
    restore(backup, data, target, &*clock(), &SystemIds)
}

fn open(data: &Path) -> Arc<SqliteStore> {
    SqliteStore::open(data, StoreOptions::default(), clock()).unwrap()
}

async fn page(store: &SqliteStore) -> Page {
    store.page(&tenant("acme"), range(0)).await.unwrap()
}

fn key(name: &str) -> ConsumerKey {
    ConsumerKey { tenant: tenant("acme"), agent: PrincipalId::parse("bot").unwrap(), name: ConsumerName::parse(name).unwrap() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_beside_a_busy_writer_is_one_snapshot() {
    let fixture = Arc::new(Fixture::new().await);
    let place = Place::new();
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (fixture, stop, acknowledged) = (Arc::clone(&fixture), Arc::clone(&stop), Arc::clone(&acknowledged));
        writers.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let answers = fixture.append(vec![fixture.event("x"), fixture.event("y")]).await.unwrap();
                acknowledged.fetch_max(new_seq(&answers[1]), Ordering::SeqCst);
            }
        });
    }
    while acknowledged.load(Ordering::SeqCst) < 200 {
        tokio::task::yield_now().await;
    }
    let before = acknowledged.load(Ordering::SeqCst);
    let report = fixture.store.backup(&place.at("one")).await.unwrap();
    stop.store(true, Ordering::SeqCst);
    writers.join_all().await;
    assert!(report.events >= before && report.tenants == 1, "{report:?} after {before}");
    assert_eq!(place.names(), ["one"], "one file, nothing beside it");
    assert_eq!(report.bytes, std::fs::metadata(place.at("one")).unwrap().len());
    let back = restored(&place.at("one"), &place.at("data"), Target::Empty).unwrap();
    assert_eq!((back.events, back.tenants), (report.events, 1));
    let store = open(&place.at("data"));
    let page = page(&store).await;
    assert_eq!((page.events.len() as u64, page.head.seq.get()), (report.events, report.events));
    assert_eq!(report.events % 2, 0, "no half of a request");
    store.close().await;
}

#[tokio::test]
async fn a_backup_overwrites_nothing_and_leaves_nothing_half_made() {
    let fixture = Fixture::new().await;
    let place = Place::new();
    std::fs::write(place.at("there"), "precious").unwrap();
    let refused = fixture.store.backup(&place.at("there")).await;
    assert!(matches!(refused, Err(UpkeepError::Exists { .. })), "{refused:?}");
    assert_eq!(std::fs::read_to_string(place.at("there")).unwrap(), "precious");
    let refused = fixture.store.backup(&place.at("no/such/place")).await;
    assert!(matches!(refused, Err(UpkeepError::File { .. })), "{refused:?}");
    std::fs::write(place.at("new.partial"), "of an interrupted backup").unwrap();
    fixture.store.backup(&place.at("new")).await.unwrap();
    assert_eq!(place.names(), ["new", "there"]);
}

#[tokio::test]
pub(crate) async fn a_restore_begins_another_history_where_the_backup_ended() {
    let fixture = Fixture::new().await;
    let place = Place::new();
    fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap();
    fixture.fill(4).await;
    let before = fixture.page_after(0).await.unwrap();
    fixture.store.backup(&place.at("backup")).await.unwrap();
    fixture.fill(7).await;
    fixture.store.close().await;
    restored(&place.at("backup"), fixture.dir.path(), Target::Replace).unwrap();
    let store = open(fixture.dir.path());
    let after = page(&store).await;
    assert_ne!(after.head.epoch, before.head.epoch);
    assert_eq!((after.head.seq, after.head.floor), (seq(5), seq(1)));
    let ids = |page: &Page| page.events.iter().map(|event| event.id).collect::<Vec<_>>();
    assert_eq!(ids(&after), ids(&before));
    let fixture = fixture.after(store);
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("x")]).await.unwrap()[0]), 6, "seq goes on from the backup's head");
    assert!(matches!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap()[0], domain::Appended::Duplicate { .. }));
    let second = place.at("second");
    restored(&place.at("backup"), &second, Target::Empty).unwrap();
    let other = open(&second);
    assert_ne!(page(&other).await.head.epoch, after.head.epoch, "every restore is a history of its own");
    other.close().await;
}

#[tokio::test]
pub(crate) async fn a_restore_releases_consumers_and_clears_their_windows() {
    let fixture = Fixture::new().await;
    let place = Place::new();
    fixture.create_principal("bot", PrincipalKind::Agent).await;
    fixture.fill(5).await;
    for name in ["ahead", "polled"] {
        fixture.store.take(&Take { key: key(name), holder: Holder::Rest }, 9).await.unwrap();
    }
    let in_flight = vec![InFlight { seq: seq(5), dispatched_at: fixture.now() }];
    let window = RestWindow { read: seq(5), highest_sent: seq(5), page_first: seq(5), in_flight, ..RestWindow::default() };
    assert!(fixture.store.write_window(&WindowWrite { key: key("polled"), expected_version: 1, window }).await.unwrap());
    fixture.store.backup(&place.at("backup")).await.unwrap();
    let raw = Connection::open(place.at("backup")).unwrap();
    raw.execute("UPDATE agent_consumer_cursors SET acked_seq = 99 WHERE consumer_name = 'ahead'", []).unwrap();
    drop(raw);
    restored(&place.at("backup"), &place.at("data"), Target::Empty).unwrap();
    let store = open(&place.at("data"));
    let ahead = store.status(&key("ahead")).await.unwrap().unwrap();
    assert_eq!((ahead.row.acked, ahead.row.holder), (seq(5), None));
    assert_ne!(ahead.row.epoch, ahead.epoch, "its acknowledgements are of the past history");
    let polled = store.status(&key("polled")).await.unwrap().unwrap().row;
    assert_eq!((polled.acked, polled.holder, polled.window), (seq(5), None, RestWindow::default()));
    assert_eq!(polled.window_version, 3);
    let save = agents::Save { key: key("polled"), holder: Holder::Rest, acked: Some(seq(5)) };
    assert_eq!(store.save(&[save]).await, Ok(vec![SaveOutcome::Replaced]));
    let taken = store.take(&Take { key: key("polled"), holder: Holder::Rest }, 9).await.unwrap();
    assert_eq!((taken.previous, taken.row.epoch), (None, taken.epoch));
    store.close().await;
}

#[tokio::test]
async fn a_restore_refuses_a_running_and_an_existing_store() {
    let fixture = Fixture::new().await;
    let place = Place::new();
    fixture.fill(3).await;
    fixture.store.backup(&place.at("backup")).await.unwrap();
    for target in [Target::Empty, Target::Replace] {
        let refused = restored(&place.at("backup"), fixture.dir.path(), target);
        assert!(matches!(refused, Err(UpkeepError::Open(OpenError::InUse { .. }))), "{refused:?}");
    }
    fixture.store.close().await;
    let refused = restored(&place.at("backup"), fixture.dir.path(), Target::Empty);
    assert!(matches!(refused, Err(UpkeepError::Exists { .. })), "{refused:?}");
    let missing = restored(&place.at("nowhere"), &place.at("data"), Target::Empty);
    assert!(matches!(missing, Err(UpkeepError::Missing { .. })), "{missing:?}");
    assert_eq!(page(&open(fixture.dir.path())).await.events.len(), 3);
}

/// A name, and what is done to the file.
type Damage = (&'static str, fn(&Path));

#[tokio::test]
async fn a_damaged_backup_is_refused_and_the_present_store_stays() {
    let fixture = Fixture::new().await;
    let place = Place::new();
    fixture.fill(30).await;
    fixture.store.backup(&place.at("backup")).await.unwrap();
    fixture.fill(1).await;
    fixture.store.close().await;
    let damages: [Damage; 5] = [
        ("a damaged row", |path| {
            Connection::open(path).unwrap().execute("UPDATE event_log SET body = '\"x\"}' WHERE position & 0xff = 7", []).unwrap();
        }),
        ("a missing row", |path| {
            Connection::open(path).unwrap().execute("DELETE FROM event_log WHERE position & 0xff = 7", []).unwrap();
        }),
        ("a newer schema", |path| Connection::open(path).unwrap().pragma_update(None, "user_version", 99).unwrap()),
        ("another program's", |path| Connection::open(path).unwrap().pragma_update(None, "application_id", 99).unwrap()),
        ("cut short", |path| {
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(file.metadata().unwrap().len() - 8192).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let copy = place.at("copy");
        std::fs::copy(place.at("backup"), &copy).unwrap();
        damage(&copy);
        let refused = restored(&copy, fixture.dir.path(), Target::Replace);
        assert!(refused.is_err(), "{name}: {refused:?}");
        let store = open(fixture.dir.path());
        assert_eq!(page(&store).await.events.len(), 31, "{name}");
        store.close().await;
    }
}

#[tokio::test]
async fn a_restore_replaces_a_store_that_crashed_with_its_write_ahead_log() {
    let fixture = Fixture::new().await;
    let place = Place::new();
    fixture.fill(3).await;
    fixture.store.backup(&place.at("backup")).await.unwrap();
    fixture.fill(9).await;
    std::fs::create_dir(place.at("data")).unwrap();
    for entry in std::fs::read_dir(fixture.dir.path()).unwrap() {
        let name = entry.unwrap().file_name();
        std::fs::copy(fixture.dir.path().join(&name), place.at("data").join(&name)).unwrap();
    }
    assert!(place.at("data/doorstep.sqlite-wal").exists());
    restored(&place.at("backup"), &place.at("data"), Target::Replace).unwrap();
    let store = open(&place.at("data"));
    assert_eq!(page(&store).await.events.len(), 3);
    assert!(store.check().await.unwrap().is_sound());
    store.close().await;
}
