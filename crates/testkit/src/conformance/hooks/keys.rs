//! Keys of hooks and of the server.

use ::hooks::{HookId, HookKey, KeyId, KeyMaterial, PublicKey, Sealed, SealedRow, ServerKey};
use authz::TenantState;
use domain::{StoreError, Timestamp};

use super::{MINUTE, hook_of, key_id, secret, unit};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh};

fn names(keys: &[HookKey]) -> Vec<&str> {
    keys.iter().map(|key| key.id.as_str()).collect()
}

pub(crate) async fn keys_come_newest_first_as_they_were_stored(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (hook, other) = (fixture.hook_for("alpha").await.id, fixture.hook_for("alpha").await.id);
    let now = fixture.now();
    let stored = [
        HookKey { expires_at: Some(now.minus(MINUTE)), ..secret("b", b"\x00sealed\xff", now.minus(MINUTE)) },
        HookKey { material: KeyMaterial::Public(PublicKey::Ed25519(vec![7; 32])), ..secret("c", b"", now.plus(MINUTE)) },
        HookKey {
            material: KeyMaterial::Public(PublicKey::P256([vec![4], vec![9; 64]].concat())),
            expires_at: Some(now.plus(MINUTE)),
            ..secret("a", b"", now)
        },
        secret("d", b"", now),
    ];
    for key in &stored {
        fixture.put_key(hook, key).await.unwrap();
    }
    fixture.put_key(other, &secret("z", b"x", now)).await.unwrap();
    let keys = fixture.keys(hook).await;
    assert_eq!(names(&keys), ["c", "d", "a", "b"], "of the same instant the one that lasts longer is newer");
    assert_eq!(keys, [&stored[1], &stored[3], &stored[2], &stored[0]].map(Clone::clone));
    assert_eq!(fixture.keys(HookId::new(fresh())).await, []);
}

pub(crate) async fn a_key_of_the_same_id_of_the_same_hook_is_replaced(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (hook, other) = (fixture.hook_for("alpha").await.id, fixture.hook_for("alpha").await.id);
    let first = secret("k", b"first", fixture.now());
    for hook in [hook, other] {
        fixture.put_key(hook, &first).await.unwrap();
    }
    let material = KeyMaterial::Public(PublicKey::Ed25519(vec![7; 32]));
    let second = HookKey { material, expires_at: Some(fixture.now()), ..secret("k", b"", fixture.now().plus(MINUTE)) };
    fixture.put_key(hook, &second).await.unwrap();
    assert_eq!(fixture.keys(hook).await, [second]);
    assert_eq!(fixture.keys(other).await, [first]);
}

pub(crate) async fn a_key_needs_its_hook_and_an_active_tenant(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await.id;
    let key = secret("k", b"sealed", fixture.now());
    assert_eq!(fixture.put_key(HookId::new(fresh()), &key).await, Err(StoreError::Conflict("there is no such hook")));
    fixture.set_state(TenantState::Suspended).await;
    assert_eq!(fixture.put_key(hook, &key).await, Err(StoreError::TenantInactive));
}

pub(crate) async fn named_keys_are_removed_and_expired_ones_of_any_hook_in_bounded_steps(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (hook, other) = (fixture.hook_for("alpha").await.id, fixture.hook_for("alpha").await.id);
    let now = fixture.now();
    for hook in [hook, other] {
        for (name, expires_at) in [("a", None), ("b", Some(now)), ("c", Some(now.minus(MINUTE))), ("d", Some(now.plus(MINUTE)))] {
            fixture.put_key(hook, &HookKey { expires_at, ..secret(name, b"x", now) }).await.unwrap();
        }
    }
    let named: Vec<KeyId> = ["d", "nothing"].map(key_id).to_vec();
    unit!(fixture, [named], |tx| tx.remove_keys(hook, &named)).unwrap();
    assert_eq!(names(&fixture.keys(hook).await), ["a", "b", "c"]);
    let purge = async |at: Timestamp, limit| unit!(fixture, [], |tx| tx.purge_keys(at, limit)).unwrap();
    assert_eq!(purge(now, 1).await, 1);
    assert_eq!(purge(now, 9).await, 1);
    assert_eq!(purge(now, 9).await, 0, "what expires now has not expired before");
    assert_eq!(purge(now.plus(MINUTE * 2), 9).await, 3);
    assert_eq!((names(&fixture.keys(hook).await), names(&fixture.keys(other).await)), (vec!["a"], vec!["a"]), "the current ones stay");
}

pub(crate) async fn sealed_secrets_of_every_tenant_come_by_hook_and_key(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let other = fixture.agent_in("other", "alpha").await;
    let mut expected = Vec::new();
    for tenant in [fixture.tenant.clone(), other, fixture.tenant.clone()] {
        let hook = hook_of(&tenant, "alpha", fixture.now());
        fixture.create_hook(&hook).await.unwrap();
        for name in ["a", "b"] {
            let bytes = format!("{name} of {}", hook.id).into_bytes();
            fixture.put_key(hook.id, &secret(name, &bytes, fixture.now())).await.unwrap();
            expected.push(SealedRow { tenant: tenant.clone(), hook: hook.id, key: key_id(name), secret: Sealed::from_bytes(bytes) });
        }
        let material = KeyMaterial::Public(PublicKey::Ed25519(vec![7; 32]));
        fixture.put_key(hook.id, &HookKey { material, ..secret("aa", b"", fixture.now()) }).await.unwrap();
    }
    let mut found: Vec<SealedRow> = Vec::new();
    loop {
        let after = found.last().map(|row| (row.hook, &row.key));
        let page = fixture.store.sealed(after, 4).await.unwrap();
        assert!(page.len() <= 4);
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found, expected);
}

pub(crate) async fn a_secret_is_resealed_only_when_it_is_still_what_it_was(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    let key = HookKey { expires_at: Some(fixture.now()), ..secret("k", b"old", fixture.now()) };
    fixture.put_key(hook.id, &key).await.unwrap();
    let was = fixture.store.sealed(None, 9).await.unwrap().remove(0);
    let reseal = async |was: &SealedRow, bytes: &[u8]| {
        let sealed = Sealed::from_bytes(bytes.to_vec());
        unit!(fixture, [was, sealed], |tx| tx.reseal(&was, &sealed)).unwrap()
    };
    let elsewhere = SealedRow { tenant: crate::conformance::support::tenant("other"), ..was.clone() };
    assert!(!reseal(&elsewhere, b"new").await);
    assert!(reseal(&was, b"new").await);
    assert!(!reseal(&was, b"newer").await, "it is another by now");
    let expected = HookKey { material: KeyMaterial::Secret(Sealed::from_bytes(b"new".to_vec())), ..key };
    assert_eq!(fixture.keys(hook.id).await, [expected]);
    let unknown = SealedRow { key: key_id("other"), ..was };
    assert!(!reseal(&unknown, b"new").await);
}

pub(crate) async fn the_servers_keys_come_by_when_they_begin_to_sign(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let key = |name: &str, minutes: u32, byte: u8| ServerKey {
        id: key_id(name),
        public: vec![byte; 32],
        pair: Sealed::from_bytes(vec![byte; 9]),
        signs_from: fixture.now().plus(MINUTE * minutes),
    };
    let put = async |key: ServerKey| unit!(fixture, [key], |tx| tx.put_server_key(&key)).unwrap();
    let keys = async || {
        let read = fixture.store.server_keys().await.unwrap();
        assert_eq!(unit!(fixture, [], |tx| tx.server_keys()).unwrap(), read, "both ports see the same");
        read
    };
    for (name, minutes) in [("b", 9), ("c", 1), ("a", 5)] {
        put(key(name, minutes, 1)).await;
    }
    assert_eq!(keys().await, [key("c", 1, 1), key("a", 5, 1), key("b", 9, 1)]);
    put(key("c", 7, 2)).await;
    assert_eq!(keys().await, [key("a", 5, 1), key("c", 7, 2), key("b", 9, 1)]);
    let id = key_id("a");
    unit!(fixture, [id], |tx| tx.remove_server_key(&id)).unwrap();
    unit!(fixture, [id], |tx| tx.remove_server_key(&id)).unwrap();
    assert_eq!(keys().await, [key("c", 7, 2), key("b", 9, 1)]);
}
