//! Hooks over restarts.

use ::hooks::{AttemptClass, Generation, GroupNumber, HookStore, LogPosition, Sealed, ServerKey};

use super::{EVERY_GROUP, Hook, attempt_of, key_id, ring_at, secret, unit};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, seq};

/// A hook with a key, a ring and an attempt; a position at the head of the log; a key of the server.
async fn furnished(harness: &dyn Harness) -> (Fixture, Hook) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
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

pub(crate) async fn a_restart_keeps_everything(harness: &dyn Harness) {
    let (fixture, hook) = furnished(harness).await;
    let before = everything(&fixture, &hook).await;
    let fixture = fixture.reopen().await;
    assert_eq!(everything(&fixture, &hook).await, before);
}
