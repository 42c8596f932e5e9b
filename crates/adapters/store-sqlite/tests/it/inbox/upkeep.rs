//! Inboxes over restarts, restores and checks.

use domain::{SystemIds, Timestamp};
use doorstep_store_sqlite::{SqliteStore, StoreOptions, Target, restore};
use inbox::{AckState, InboxStore, ItemFilter, LeaseKey};

use super::{MINUTE, events};
use crate::support::{Fixture, seq};

async fn all(fixture: &Fixture, name: &str) -> Vec<inbox::Item> {
    fixture.store.items(&fixture.recipient(name), &ItemFilter::default(), super::part(None, 99)).await.unwrap().items
}

async fn lease_key(fixture: &Fixture, byte: u8) -> [u8; 32] {
    let tenant = fixture.tenant.clone();
    let key = fixture.inbox(move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move { tx.lease_key(&tenant, &LeaseKey::new([byte; 32])).await })
    });
    *key.await.unwrap().as_bytes()
}

/// An available, a claimed and an acknowledged item.
async fn three() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.publish_job(&["alpha"]).await;
    let (held, _) = fixture.publish_job(&["alpha"]).await;
    fixture.claim("alpha", held, MINUTE).await;
    let (done, _) = fixture.publish_job(&["alpha"]).await;
    fixture.finish("alpha", done).await;
    fixture
}

#[tokio::test]
async fn a_restore_brings_inboxes_and_their_log_back_together_under_a_new_epoch() {
    let fixture = three().await;
    let old_key = lease_key(&fixture, 1).await;
    let (before, row, view) =
        (all(&fixture, "alpha").await, fixture.row("alpha").await, fixture.store.view(&fixture.recipient("alpha")).await.unwrap());
    let place = tempfile::tempdir().unwrap();
    fixture.store.backup(&place.path().join("backup")).await.unwrap();
    for _ in 0..4 {
        fixture.publish_job(&["alpha", "beta"]).await;
    }
    assert_eq!(fixture.row("alpha").await.unwrap().head, seq(7));
    fixture.store.close().await;
    restore(&place.path().join("backup"), fixture.dir.path(), Target::Replace, &*fixture.clock, &SystemIds).unwrap();
    let store = SqliteStore::open(fixture.dir.path(), StoreOptions::default(), fixture.clock.clone()).unwrap();
    let fixture = fixture.after(store);
    assert_eq!((all(&fixture, "alpha").await, fixture.row("alpha").await), (before, row));
    let after = fixture.store.view(&fixture.recipient("alpha")).await.unwrap();
    assert!(after.head() <= after.log_head, "no inbox has heard of more than its log holds");
    assert_ne!(after.epoch, view.epoch);
    assert_eq!(fixture.row("beta").await, None);
    assert_ne!(lease_key(&fixture, 2).await, old_key, "a lease given after the backup is worth nothing");
    let report = fixture.store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    let (_, position) = fixture.publish_job(&["alpha"]).await;
    assert_eq!((position, fixture.row("alpha").await.unwrap().head), (seq(4), seq(4)));
}

#[tokio::test]
pub(crate) async fn a_restore_forgets_what_claims_were_answered_with_and_that_sessions_were_open() {
    let fixture = three().await;
    fixture.create_principal("alpha", authz::PrincipalKind::Agent).await;
    let raw = fixture.raw();
    raw.execute("INSERT INTO inbox_claims VALUES (1, 'k', zeroblob(32), x'', 0)", []).unwrap();
    let session = "INSERT INTO agent_sessions VALUES ('acme', 'sess_1', 'alpha', NULL, 'sse', 0, 0, 0, zeroblob(16), 1)";
    raw.execute(session, []).unwrap();
    drop(raw);
    let place = tempfile::tempdir().unwrap();
    fixture.store.backup(&place.path().join("backup")).await.unwrap();
    restore(&place.path().join("backup"), &place.path().join("data"), Target::Empty, &*fixture.clock, &SystemIds).unwrap();
    let store = SqliteStore::open(place.path().join("data"), StoreOptions::default(), fixture.clock.clone()).unwrap();
    let id = domain::AgentSessionId::parse("sess_1").unwrap();
    assert!(!store.session(&fixture.tenant, &id).await.unwrap().unwrap().is_active);
    let raw = rusqlite::Connection::open(store.path()).unwrap();
    let records: i64 = raw.query_row("SELECT count(*) FROM inbox_claims", [], |row| row.get(0)).unwrap();
    assert_eq!(records, 0);
    store.close().await;
}

#[tokio::test]
async fn a_backup_with_an_item_that_cannot_be_read_is_restored() {
    let fixture = three().await;
    fixture.raw().execute("UPDATE inbox_items SET history = '{' WHERE state = 0", []).unwrap();
    let place = tempfile::tempdir().unwrap();
    fixture.store.backup(&place.path().join("backup")).await.unwrap();
    restore(&place.path().join("backup"), &place.path().join("data"), Target::Empty, &*fixture.clock, &SystemIds).unwrap();
}

#[tokio::test]
pub(crate) async fn a_check_reads_every_item_and_holds_it_against_the_log() {
    let fixture = three().await;
    let report = fixture.store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.items, 3);
    for (damage, seqs) in [
        ("UPDATE inbox_items SET event_id = zeroblob(16) WHERE inbox_seq = 1", vec![1]),
        ("UPDATE inbox_items SET inbox_seq = 99 WHERE inbox_seq = 2", vec![99]),
        ("UPDATE inbox_items SET ring_seq = 99 WHERE inbox_seq = 1", vec![1]),
        ("UPDATE inbox_ended SET state = 1", vec![3]),
        ("UPDATE inbox_recipients SET head = 99", vec![99]),
        ("UPDATE inbox_items SET lease_until = NULL WHERE inbox_seq = 2", vec![2]),
    ] {
        let fixture = three().await;
        assert_eq!(fixture.raw().execute(damage, []), Ok(1), "{damage}");
        let report = fixture.store.check().await.unwrap();
        let found: Vec<_> = report.damaged.iter().map(|damage| damage.seq.get()).collect();
        assert_eq!(found, seqs, "{damage}: {report:?}");
    }
}

#[tokio::test]
pub(crate) async fn a_check_finds_copied_envelopes_and_misses_lost_ones() {
    let fixture = three().await;
    fixture.retire_log().await;
    let report = fixture.store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    fixture.raw().execute("DELETE FROM inbox_payloads WHERE position & 0xff = 2", []).unwrap();
    let report = fixture.store.check().await.unwrap();
    assert_eq!(report.damaged.iter().map(|damage| damage.seq.get()).collect::<Vec<_>>(), [2]);
}

#[tokio::test]
async fn a_store_of_the_first_release_gets_inboxes_and_keeps_what_it_has() {
    let fixture = Fixture::new().await;
    fixture.fill(3).await;
    fixture.store.close().await;
    let raw = fixture.raw();
    raw.execute_batch(crate::support::WITHOUT_HOOKS).unwrap();
    let tables = ["inbox_items", "inbox_ended", "inbox_payloads", "inbox_keys", "inbox_claims", "inbox_recipients", "agent_sessions"];
    for table in tables {
        raw.execute(&format!("DROP TABLE {table}"), []).unwrap();
    }
    raw.execute_batch(
        "ALTER TABLE scheduled_events DROP COLUMN work; DELETE FROM schema_migrations WHERE version >= 2; PRAGMA user_version = 1",
    )
    .unwrap();
    drop(raw);
    let store = SqliteStore::open(fixture.dir.path(), StoreOptions::default(), fixture.clock.clone()).unwrap();
    let fixture = fixture.after(store);
    let (id, position) = fixture.publish_job(&["alpha"]).await;
    assert_eq!((position, fixture.page_after(0).await.unwrap().events.len()), (seq(4), 4));
    let item = fixture.item("alpha", id).await.unwrap();
    assert_eq!((item.state, item.facts.created_at), (AckState::Available, fixture.now()));
    assert_eq!(events(&all(&fixture, "alpha").await), [id]);
    assert!(fixture.now() > Timestamp::from_micros(0));
}
