//! Rows that cannot be read: left out, counted once, and never in the way of others.

use ::hooks::{AttemptClass, HookKey, HookKind, HookStore, KeyMaterial, PublicKey, Sealed, ServerKey};

use super::{EVERY_GROUP, Hook, MINUTE, agent, attempt_of, ids, key_id, ring_at, secret, unit};
use crate::support::{Fixture, seq};

/// Two hooks of `alpha`, each with two keys, two rings and two attempts; the server's two keys; a position.
async fn furnished() -> (Fixture, [Hook; 2]) {
    let fixture = Fixture::with_agents(&["alpha"]).await;
    fixture.fill(9).await;
    let hooks = [fixture.hook_for("alpha").await, fixture.hook_for("alpha").await];
    let now = fixture.now();
    for hook in &hooks {
        let public = KeyMaterial::Public(PublicKey::Ed25519(vec![7; 32]));
        fixture.put_key(hook.id, &secret("a", b"sealed", now)).await.unwrap();
        fixture.put_key(hook.id, &HookKey { material: public, expires_at: Some(now), ..secret("b", b"", now) }).await.unwrap();
        let rings = [ring_at(hook, 1, now.minus(MINUTE)), ring_at(hook, 2, now)];
        fixture.add(&rings).await.unwrap();
        let attempts = rings.iter().map(|ring| (hook.id, attempt_of(ring, 1, AttemptClass::Timeout)));
        fixture.log_attempts(attempts.collect(), 9).await.unwrap();
    }
    for name in ["s", "t"] {
        let key = ServerKey { id: key_id(name), public: vec![1; 32], pair: Sealed::from_bytes(vec![2; 9]), signs_from: now };
        unit!(fixture, [key], |tx| tx.put_server_key(&key)).unwrap();
    }
    let (tenant, epoch) = (fixture.tenant.clone(), sync::LogStore::head(&*fixture.store, &fixture.tenant).await.unwrap().unwrap().epoch);
    let advanced = fixture.hook_tx(move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move {
            let generation = tx.take_group(::hooks::GroupNumber(0)).await?;
            let position = ::hooks::LogPosition { epoch, seq: seq(9) };
            tx.advance(&tenant, ::hooks::GroupNumber(0), generation, position).await
        })
    });
    assert_eq!(advanced.await, Ok(true));
    (fixture, hooks)
}

fn unreadable(fixture: &Fixture) -> u64 {
    fixture.store.metrics().snapshot().unreadable_hook_rows
}

fn damage(fixture: &Fixture, statement: &str) {
    let raw = fixture.raw();
    raw.pragma_update(None, "foreign_keys", false).unwrap();
    assert_eq!(raw.execute(statement, []), Ok(1), "{statement}");
}

async fn complaints(fixture: &Fixture) -> (u64, u64) {
    let report = fixture.store.check().await.unwrap();
    assert!(report.engine.is_empty(), "{report:?}");
    (report.damages, report.hooks)
}

#[tokio::test]
async fn a_sound_store_has_nothing_to_complain_about() {
    let (fixture, _) = furnished().await;
    assert_eq!((complaints(&fixture).await, unreadable(&fixture)), ((0, 2), 0));
}

#[tokio::test]
async fn a_hook_that_cannot_be_read_is_left_out_everywhere() {
    for column in [
        "kind = 'x'",
        "profile = 'x'",
        "url = 'ftp://example.com'",
        "queues = '{'",
        "queues = '[\"NO QUEUE\"]'",
        "ignore_presence = 2",
        "max_rate_per_minute = -1",
        "state = 'x'",
        "state = 'disabled'",
        "disabled_cause = 'asked'",
        "disabled_cause = 'x'",
        "challenge_nonce = 'x'",
        "last_status = 65536",
        "exhausted_in_row = -1",
        "since = -1",
        "agent_id = 'NO AGENT'",
    ] {
        let (fixture, [broken, whole]) = furnished().await;
        damage(&fixture, &format!("UPDATE hooks SET {column} WHERE hook_id = (SELECT min(hook_id) FROM hooks)"));
        assert_eq!(fixture.stored(&broken).await, None, "{column}");
        let listed = fixture.store.hooks(&fixture.tenant, None, HookKind::Notify, None, 1).await.unwrap();
        assert_eq!(ids(&listed), [whole.id], "{column}: it does not take another's place");
        assert_eq!(ids(&fixture.store.all_active_hooks(&fixture.tenant, None, 9).await.unwrap()), [whole.id], "{column}");
        assert_eq!(ids(&fixture.store.active_hooks(&fixture.tenant, &[agent("alpha")]).await.unwrap()), [whole.id], "{column}");
        let due: Vec<_> = fixture.all_due().await.iter().map(|due| due.hook.id).collect();
        assert_eq!(due, [whole.id], "{column}");
        assert_eq!((unreadable(&fixture), complaints(&fixture).await), (1, (1, 1)), "{column}: counted once");
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_left_out() {
    for column in [
        "secret = NULL",
        "algorithm = 'ed25519'",
        "public_key = x'00'",
        "key_id = 'no key'",
        "secret = NULL, algorithm = 'ed25519', public_key = x'00'",
        "secret = NULL, algorithm = 'x', public_key = zeroblob(32)",
    ] {
        let (fixture, [broken, whole]) = furnished().await;
        let place = "hook_id = (SELECT min(hook_id) FROM hooks) AND key_id = 'a'";
        damage(&fixture, &format!("UPDATE hook_keys SET {column} WHERE {place}"));
        let keys = fixture.keys(broken.id).await;
        assert_eq!(keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>(), ["b"], "{column}");
        assert_eq!(fixture.keys(whole.id).await.len(), 2, "{column}");
        assert_eq!((fixture.all_due().await.len(), unreadable(&fixture)), (2, 1), "{column}");
        assert_eq!(complaints(&fixture).await, (1, 1), "{column}");
    }
    let (fixture, [_, whole]) = furnished().await;
    damage(&fixture, "UPDATE hook_keys SET key_id = 'no key' WHERE hook_id = (SELECT min(hook_id) FROM hooks) AND key_id = 'a'");
    let sealed = fixture.store.sealed(None, 1).await.unwrap();
    assert_eq!(sealed.iter().map(|row| row.hook).collect::<Vec<_>>(), [whole.id]);
}

#[tokio::test]
async fn a_ring_that_cannot_be_read_is_left_out() {
    for column in [
        "reason = 'x'",
        "cause = -1",
        "event_id = x'00'",
        "queue = 'NO QUEUE'",
        "attempts = -1",
        "attempts = 4294967296",
        "webhook_id = 'x'",
    ] {
        let (fixture, [broken, _]) = furnished().await;
        damage(&fixture, &format!("UPDATE hook_deliveries SET {column} WHERE hook_id = (SELECT min(hook_id) FROM hooks) AND cause = 1"));
        let causes = |rings: &[::hooks::Delivery]| rings.iter().map(|ring| ring.cause.get()).collect::<Vec<_>>();
        assert_eq!(causes(&fixture.deliveries(broken.id, 1).await), [2], "{column}: it does not take another's place");
        let due = fixture.all_due().await;
        assert_eq!((due.len(), causes(&due[0].deliveries)), (2, vec![2]), "{column}");
        assert_eq!(fixture.outstanding(&[broken.id]).await, [(broken.id, 2)], "{column}");
        assert_eq!((unreadable(&fixture), complaints(&fixture).await), (1, (1, 1)), "{column}: counted once");
        let cleared = unit!(fixture, [broken], |tx| tx.clear_deliveries(broken.id));
        assert_eq!((cleared, complaints(&fixture).await), (Ok(2), (0, 2)), "{column}");
    }
}

#[tokio::test]
async fn a_hook_with_no_ring_that_can_be_read_gives_its_turn_away() {
    let (fixture, [_, whole]) = furnished().await;
    let raw = fixture.raw();
    raw.execute("UPDATE hook_deliveries SET reason = 'x' WHERE hook_id = (SELECT min(hook_id) FROM hooks)", []).unwrap();
    let due: Vec<_> = fixture.all_due().await.iter().map(|due| due.hook.id).collect();
    assert_eq!((due, unreadable(&fixture)), (vec![whole.id], 2));
}

#[tokio::test]
async fn attempts_positions_and_keys_of_the_server_that_cannot_be_read_are_left_out() {
    let (fixture, [broken, _]) = furnished().await;
    damage(&fixture, "UPDATE hook_attempts SET class = 'x' WHERE hook_id = (SELECT min(hook_id) FROM hooks) AND number = 2");
    assert_eq!((fixture.store.attempts(broken.id, 1).await.unwrap().len(), unreadable(&fixture)), (1, 1));
    damage(&fixture, "UPDATE hook_server_keys SET public_key = x'00' WHERE key_id = 's'");
    let keys = fixture.store.server_keys().await.unwrap();
    assert_eq!((keys.len(), keys[0].id.as_str(), unreadable(&fixture)), (1, "t", 2));
    damage(&fixture, "UPDATE hook_positions SET epoch = x'00'");
    let tenants = HookStore::tenants(&*fixture.store, &EVERY_GROUP, None, 9).await.unwrap();
    assert_eq!((tenants.len(), tenants[0].position, unreadable(&fixture)), (1, None, 3));
    assert_eq!(complaints(&fixture).await, (3, 1));
}

#[tokio::test]
pub(crate) async fn a_check_holds_hooks_against_the_log_and_against_themselves() {
    for (statement, sound) in [
        ("UPDATE hooks SET since = 99 WHERE hook_id = (SELECT min(hook_id) FROM hooks)", 1),
        ("UPDATE hook_positions SET position = 99", 2),
        ("UPDATE hooks SET next_due = NULL WHERE hook_id = (SELECT min(hook_id) FROM hooks)", 2),
        ("UPDATE hook_deliveries SET cause = 99 WHERE hook_id = (SELECT min(hook_id) FROM hooks) AND cause = 1", 1),
    ] {
        let (fixture, _) = furnished().await;
        damage(&fixture, statement);
        assert_eq!(complaints(&fixture).await, (1, sound), "{statement}");
        assert_eq!(unreadable(&fixture), 0, "{statement}");
    }
    let (fixture, _) = furnished().await;
    damage(&fixture, "UPDATE hook_positions SET position = 99, epoch = zeroblob(16)");
    assert_eq!(complaints(&fixture).await, (0, 2), "of another history nothing is known");
}
