//! Hooks over restarts, restores and upgrades.

use std::path::Path;

use ::hooks::{AttemptClass, Generation, GroupNumber, HookStore, LogPosition, Sealed, ServerKey};
use domain::SystemIds;
use doorstep_store_sqlite::{SqliteStore, StoreOptions, Target, restore};
use sync::LogStore;

use super::{EVERY_GROUP, Hook, attempt_of, key_id, ring_at, secret, unit};
use crate::support::{Fixture, seq};

/// A hook with a key, a ring and an attempt; a position at the head of the log; a key of the server.
async fn furnished() -> (Fixture, Hook) {
    let fixture = Fixture::with_agents(&["alpha"]).await;
    fixture.fill(3).await;
    let hook = Hook { since: seq(3), ..super::hook_of(&fixture.tenant, "alpha", fixture.now()) };
    fixture.create_hook(&hook).await.unwrap();
    let ring = ring_at(&hook, 3, fixture.now());
    fixture.put_key(hook.id, &secret("k", b"sealed", fixture.now())).await.unwrap();
    fixture.add(std::slice::from_ref(&ring)).await.unwrap();
    fixture.log_attempts(vec![(hook.id, attempt_of(&ring, 1, AttemptClass::Dns))], 9).await.unwrap();
    let key = ServerKey { id: key_id("s"), public: vec![1; 32], pair: Sealed::from_bytes(vec![2; 9]), signs_from: fixture.now() };
    unit!(fixture, [key], |tx| tx.put_server_key(&key)).unwrap();
    advance(&fixture, 3).await;
    (fixture, hook)
}

/// Moves the position within the present history.
async fn advance(fixture: &Fixture, to: u64) {
    let (tenant, epoch) = (fixture.tenant.clone(), fixture.store.head(&fixture.tenant).await.unwrap().unwrap().epoch);
    let generation = take(fixture).await;
    let position = LogPosition { epoch, seq: seq(to) };
    assert_eq!(unit!(fixture, [tenant], |tx| tx.advance(&tenant, GroupNumber(0), generation, position)), Ok(true));
}

async fn take(fixture: &Fixture) -> Generation {
    unit!(fixture, [], |tx| tx.take_group(GroupNumber(0))).unwrap()
}

/// Everything that can be asked about hooks, as text.
async fn everything(fixture: &Fixture, hook: &Hook) -> String {
    let store = &fixture.store;
    let hooks = store.all_active_hooks(&fixture.tenant, None, 9).await.unwrap();
    let attempts = store.attempts(hook.id, 9).await.unwrap();
    let (due, next_due) = (fixture.all_due().await, fixture.next_due().await);
    let tenants = HookStore::tenants(&**store, &EVERY_GROUP, None, 9).await.unwrap();
    let (server_keys, totals) = (store.server_keys().await.unwrap(), HookStore::totals(&**store).await.unwrap());
    let sealed = store.sealed(None, 9).await.unwrap();
    assert_eq!((due.len(), attempts.len(), server_keys.len(), sealed.len()), (1, 1, 1, 1));
    format!("{hooks:?} {attempts:?} {due:?} {next_due:?} {tenants:?} {server_keys:?} {totals:?} {sealed:?}")
}

fn open(fixture: &Fixture, data: &Path) -> std::sync::Arc<SqliteStore> {
    SqliteStore::open(data, StoreOptions::default(), fixture.clock.clone()).unwrap()
}

#[tokio::test]
pub(crate) async fn a_restore_leaves_positions_in_the_past_history_so_that_what_waits_is_rung_for() {
    let (fixture, hook) = furnished().await;
    let before = everything(&fixture, &hook).await;
    let old = fixture.store.head(&fixture.tenant).await.unwrap().unwrap();
    let place = tempfile::tempdir().unwrap();
    fixture.store.backup(&place.path().join("backup")).await.unwrap();
    fixture.fill(6).await;
    advance(&fixture, 9).await;
    fixture.save_hook(&Hook { since: seq(9), ..hook.clone() }).await.unwrap();
    let late = fixture.hook_for("alpha").await;
    fixture.store.close().await;
    restore(&place.path().join("backup"), fixture.dir.path(), Target::Replace, &*fixture.clock, &SystemIds).unwrap();
    let store = open(&fixture, fixture.dir.path());
    let fixture = fixture.after(store);
    let head = fixture.store.head(&fixture.tenant).await.unwrap().unwrap();
    let position = HookStore::tenants(&*fixture.store, &EVERY_GROUP, None, 9).await.unwrap()[0].position.unwrap();
    assert_ne!(position.epoch, head.epoch, "by this the dispatcher knows that it is lost");
    assert_eq!((position.epoch, position.seq), (old.epoch, seq(3)));
    assert_eq!((everything(&fixture, &hook).await, fixture.stored(&late).await), (before, None));
    let report = fixture.store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    advance(&fixture, 3).await;
    assert_eq!(HookStore::tenants(&*fixture.store, &EVERY_GROUP, None, 9).await.unwrap()[0].position.unwrap().epoch, head.epoch);
}

#[tokio::test]
async fn no_hook_of_a_restored_store_is_deaf_to_what_comes() {
    let (fixture, hook) = furnished().await;
    let place = tempfile::tempdir().unwrap();
    fixture.store.backup(&place.path().join("backup")).await.unwrap();
    let raw = rusqlite::Connection::open(place.path().join("backup")).unwrap();
    raw.execute("UPDATE hooks SET since = 99", []).unwrap();
    drop(raw);
    restore(&place.path().join("backup"), &place.path().join("data"), Target::Empty, &*fixture.clock, &SystemIds).unwrap();
    let store = open(&fixture, &place.path().join("data"));
    assert_eq!(store.hook(&fixture.tenant, hook.id).await.unwrap().unwrap().since, seq(3));
    store.close().await;
}

#[tokio::test]
async fn a_backup_with_a_hook_that_cannot_be_read_is_restored() {
    let (fixture, _) = furnished().await;
    fixture.raw().execute("UPDATE hooks SET queues = '{'", []).unwrap();
    let place = tempfile::tempdir().unwrap();
    fixture.store.backup(&place.path().join("backup")).await.unwrap();
    restore(&place.path().join("backup"), &place.path().join("data"), Target::Empty, &*fixture.clock, &SystemIds).unwrap();
}

#[tokio::test]
async fn a_store_from_before_hooks_gets_them_and_keeps_what_it_has() {
    let fixture = Fixture::with_agents(&["alpha"]).await;
    fixture.fill(3).await;
    fixture.store.close().await;
    let raw = fixture.raw();
    raw.execute_batch(crate::support::WITHOUT_HOOKS).unwrap();
    drop(raw);
    let store = open(&fixture, fixture.dir.path());
    let fixture = fixture.after(store);
    assert_eq!(fixture.store.groups().await, Ok(vec![GroupNumber(0)]));
    let hook = fixture.hook_for("alpha").await;
    assert_eq!((fixture.stored(&hook).await, fixture.head().await), (Some(hook), 3));
    assert!(fixture.store.check().await.unwrap().is_sound());
}
