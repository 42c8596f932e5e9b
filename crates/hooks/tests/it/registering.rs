//! Making and managing hooks.

use std::sync::Arc;

use authz::{Denied, DeniedReason};
use futures_util::future::join_all;
use hooks::{
    AttemptClass, AuthMode, DisabledCause, HookError, HookKind, HookPatch, HookState, NewCallback, NewHook, NoVault, Profile, UrlRefusal,
    VaultError,
};

use crate::memory::{SECOND, agent, queue};
use crate::receivers::{Does, until};
use crate::world::{World, url};

fn new_hook(host: &str) -> NewHook {
    NewHook { agent: None, url: url(host), queues: Vec::new(), ignore_presence: false }
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_active_at_once_and_its_secret_is_kept_sealed() {
    let world = World::new();
    let made = world.hook("alpha", "example.com").await;
    assert_eq!((made.hook.state, made.hook.kind, made.hook.profile), (HookState::Active, HookKind::Notify, Profile::StandardWebhooks));
    assert_eq!(made.secret.bytes().len(), 32);
    assert!(made.secret.reveal().starts_with("whsec_"));
    let text = format!("{:?}", world.memory.state().keys);
    let state = world.memory.state();
    let bytes: Vec<u8> = state
        .keys
        .values()
        .flat_map(|key| match &key.material {
            hooks::KeyMaterial::Secret(sealed) => sealed.as_bytes().to_vec(),
            hooks::KeyMaterial::Public(_) => Vec::new(),
        })
        .collect();
    assert!(!bytes.is_empty() && !bytes.windows(32).any(|window| window == made.secret.bytes()), "{text}");
}

#[tokio::test(start_paused = true)]
async fn fifty_creates_at_once_respect_the_ceilings() {
    let world = Arc::new(World::with(|settings| settings.max_per_tenant = 7));
    let create = |name: &'static str| {
        let world = Arc::clone(&world);
        async move { world.hooks.create(&world.caller(name).await, new_hook("example.com")).await }
    };
    let answers = join_all((0..50).map(|_| create("alpha"))).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
    assert!(
        answers.iter().filter_map(|answer| answer.as_ref().err()).all(|error| *error == HookError::LimitReached("hooks.max_per_agent"))
    );
    let answers = join_all((0..50).map(|_| create("beta"))).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 2);
    assert!(
        answers.iter().filter_map(|answer| answer.as_ref().err()).all(|error| *error == HookError::LimitReached("hooks.max_per_tenant"))
    );
    assert_eq!(world.memory.state().hooks.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_ceiling_of_zero_turns_hooks_off() {
    let world = World::with(|settings| settings.max_per_agent = 0);
    let answer = world.hooks.create(&world.caller("alpha").await, new_hook("example.com")).await;
    assert_eq!(answer.unwrap_err(), HookError::LimitReached("hooks.max_per_agent"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_url_leaves_nothing_behind() {
    let world = World::new();
    world.receivers.refused.lock().unwrap().insert("internal.example".to_owned());
    let alpha = world.caller("alpha").await;
    let refused = HookError::UrlRefused(UrlRefusal::Network);
    assert_eq!(world.hooks.create(&alpha, new_hook("internal.example")).await.unwrap_err(), refused);
    assert!(world.memory.state().hooks.is_empty() && world.memory.state().keys.is_empty());
    let made = world.hook("alpha", "example.com").await;
    let patch = HookPatch { url: Some(url("internal.example")), ..HookPatch::default() };
    assert_eq!(world.hooks.update(&alpha, made.hook.id, patch).await.unwrap_err(), refused);
    assert_eq!(world.stored(made.hook.id).url, url("example.com"));
    assert_eq!(world.hooks.metrics().urls_refused.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_way_leads_to_a_receiver_that_may_not_be_called() {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    let forbid = |host: &str| world.receivers.refused.lock().unwrap().insert(host.to_owned());
    let refused = HookError::UrlRefused(UrlRefusal::Network);
    let callback = |host: &str| NewCallback {
        url: url(host),
        auth_mode: AuthMode::HmacSha256,
        key: None,
        public_key: None,
        max_rate_per_minute: None,
        ignore_presence: false,
    };
    forbid("internal.example");
    assert_eq!(world.hooks.create(&alpha, new_hook("internal.example")).await.unwrap_err(), refused, "a hook is made");
    assert_eq!(world.hooks.register_callback(&alpha, callback("internal.example")).await.unwrap_err(), refused, "a callback is made");
    // Good when they were made, and not any more: their names lead elsewhere by now.
    let made = world.hook("alpha", "moved.example").await;
    let registered = world.hooks.register_callback(&alpha, callback("moved.example")).await.unwrap();
    forbid("moved.example");
    let patch = HookPatch { url: Some(url("internal.example")), ..HookPatch::default() };
    assert_eq!(world.hooks.update(&alpha, made.hook.id, patch).await.unwrap_err(), refused, "a hook is moved");
    assert_eq!(world.hooks.enable(&alpha, HookKind::Notify, made.hook.id).await.unwrap_err(), refused, "a hook is enabled");
    assert_eq!(world.hooks.test(&alpha, HookKind::Notify, made.hook.id).await.unwrap().class, AttemptClass::Refused, "a hook is tried");
    assert_eq!(world.hooks.verify_callback(&alpha, registered.hook.id, None).await.unwrap_err(), refused, "a challenge is asked for");
    world.start();
    world.memory.publish("alpha", "inbox").await;
    let counted = || world.stored(made.hook.id).health.exhausted_in_row == 1;
    until(5 * SECOND, "the ring is refused, and counts", counted).await;
    world.pass(SECOND * 30).await;
    assert!(world.receivers.got().is_empty(), "nothing was dialled");
    let log = world.hooks.deliveries(&alpha, HookKind::Callback, registered.hook.id).await.unwrap();
    assert!(!log.is_empty() && log.iter().all(|attempt| attempt.class == AttemptClass::Refused), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_hook_is_not_found() {
    let world = World::new();
    let made = world.hook("alpha", "example.com").await;
    let id = made.hook.id;
    for stranger in ["beta", "other-omega", "sam"] {
        let stranger = world.caller(stranger).await;
        let gone = |answer: HookError| matches!(answer, HookError::NotFound | HookError::Denied(Denied::NotFound));
        assert!(gone(world.hooks.get(&stranger, HookKind::Notify, id).await.unwrap_err()));
        assert!(gone(world.hooks.update(&stranger, id, HookPatch::default()).await.unwrap_err()));
        assert!(gone(world.hooks.delete(&stranger, HookKind::Notify, id).await.unwrap_err()));
        assert!(gone(world.hooks.rotate(&stranger, id).await.unwrap_err()));
        assert!(gone(world.hooks.enable(&stranger, HookKind::Notify, id).await.unwrap_err()));
        assert!(gone(world.hooks.disable(&stranger, HookKind::Notify, id).await.unwrap_err()));
        assert!(gone(world.hooks.test(&stranger, HookKind::Notify, id).await.unwrap_err()));
        assert!(gone(world.hooks.deliveries(&stranger, HookKind::Notify, id).await.unwrap_err()));
        assert!(gone(world.hooks.list(&stranger, Some(&agent("alpha")), HookKind::Notify, None, 10).await.unwrap_err()));
    }
    assert_eq!(world.stored(id), made.hook);
    let alpha = world.caller("alpha").await;
    assert_eq!(world.hooks.get(&alpha, HookKind::Callback, id).await.unwrap_err(), HookError::NotFound, "of another kind");
}

#[tokio::test(start_paused = true)]
async fn operators_manage_the_hooks_of_agents_and_people_have_none() {
    let world = World::new();
    let alex = world.caller("alex").await;
    let made = world.hooks.create(&alex, NewHook { agent: Some(agent("alpha")), ..new_hook("example.com") }).await.unwrap();
    assert_eq!(made.hook.agent, agent("alpha"));
    let listed = world.hooks.list(&alex, Some(&agent("alpha")), HookKind::Notify, None, 10).await.unwrap();
    assert_eq!(listed, [made.hook]);
    let own = world.hooks.create(&alex, new_hook("example.com")).await.unwrap_err();
    assert_eq!(own, HookError::Denied(Denied::Forbidden(DeniedReason::SubjectKindNotAllowed)));
    let nobody = world.hooks.create(&alex, NewHook { agent: Some(agent("nobody")), ..new_hook("example.com") }).await;
    assert_eq!(nobody.unwrap_err(), HookError::NotFound);
}

#[tokio::test(start_paused = true)]
async fn without_a_master_key_no_secret_is_stored_and_the_rest_works() {
    let world = World::new();
    let made = world.hook("alpha", "example.com").await;
    let world = world.restart_with(Arc::new(NoVault));
    let alpha = world.caller("alpha").await;
    let none = HookError::Secrets(VaultError::NoKey);
    assert_eq!(world.hooks.create(&alpha, new_hook("example.com")).await.unwrap_err(), none);
    assert_eq!(world.hooks.rotate(&alpha, made.hook.id).await.unwrap_err(), none);
    assert_eq!(world.hooks.list(&alpha, None, HookKind::Notify, None, 10).await.unwrap().len(), 1);
    assert_eq!(world.memory.state().keys.len(), 1);
    // A ring waits without counting against its receiver.
    world.start();
    world.memory.publish("alpha", "inbox").await;
    until(3 * SECOND, "the ring waits", || world.rings(made.hook.id).first().is_some_and(|ring| ring.attempts == 0)).await;
    world.pass(10 * SECOND).await;
    assert!(world.receivers.got().is_empty());
    assert_eq!(world.stored(made.hook.id).health, hooks::Health::default());
}

#[tokio::test(start_paused = true)]
async fn every_change_is_audited_without_url_or_secret() {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    let made = world.hook("alpha", "example.com").await;
    let id = made.hook.id;
    let patch = HookPatch { queues: Some(vec![queue("review")]), ignore_presence: Some(true), url: Some(url("example.org")) };
    world.hooks.update(&alpha, id, patch).await.unwrap();
    world.hooks.rotate(&alpha, id).await.unwrap();
    world.hooks.disable(&alpha, HookKind::Notify, id).await.unwrap();
    world.hooks.enable(&alpha, HookKind::Notify, id).await.unwrap();
    world.hooks.delete(&alpha, HookKind::Notify, id).await.unwrap();
    let state = world.memory.state();
    assert_eq!(state.audit.len(), 6);
    let text = format!("{:?}", state.audit);
    assert!(text.contains("example.org") && !text.contains("QUERY_CANARY") && !text.contains("/ring") && !text.contains("whsec_"));
    assert!(state.hooks.is_empty() && state.keys.is_empty() && state.deliveries.is_empty());
}

#[tokio::test(start_paused = true)]
async fn queues_are_bounded_and_named_once() {
    let world = World::with(|settings| settings.max_queues = 2);
    let alpha = world.caller("alpha").await;
    let with = |queues: &[&str]| NewHook { queues: queues.iter().map(|name| queue(name)).collect(), ..new_hook("example.com") };
    for queues in [&["a", "b", "c"][..], &["a", "a"]] {
        assert!(matches!(world.hooks.create(&alpha, with(queues)).await, Err(HookError::Invalid { .. })));
    }
    let made = world.hooks.create(&alpha, with(&["a", "b"])).await.unwrap();
    let patch = HookPatch { queues: Some(vec![queue("a"), queue("a")]), ..HookPatch::default() };
    assert!(
        matches!(world.hooks.update(&alpha, made.hook.id, patch).await, Err(HookError::Invalid { pointer, .. }) if pointer == "/queues/1")
    );
}

#[tokio::test(start_paused = true)]
async fn a_test_rings_once_and_only_improves_the_health() {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    let made = world.hook("alpha", "example.com").await;
    let id = made.hook.id;
    world.receivers.does("example.com", [Does::Answer(500)]);
    let record = world.hooks.test(&alpha, HookKind::Notify, id).await.unwrap();
    assert_eq!((record.class, record.status, record.attempt), (AttemptClass::ServerError, Some(500), 1));
    assert_eq!(world.stored(id).health.exhausted_in_row, 0);
    assert_eq!(world.stored(id).health.last_status, Some(500));
    world.memory.edit(|state| state.hooks.get_mut(&id).unwrap().health.exhausted_in_row = 4);
    world.receivers.does("example.com", [Does::Answer(200)]);
    assert_eq!(world.hooks.test(&alpha, HookKind::Notify, id).await.unwrap().class, AttemptClass::Delivered);
    assert_eq!(world.stored(id).health.exhausted_in_row, 0);
    let got = world.receivers.got();
    assert_eq!(got.len(), 2);
    assert_eq!(got[0].json()["type"], "hook.test");
    assert!(got[0].is_signed_by(made.secret.bytes()) && got[0].id() != got[1].id());
    let log = world.hooks.deliveries(&alpha, HookKind::Notify, id).await.unwrap();
    assert_eq!(log.iter().map(|attempt| attempt.class).collect::<Vec<_>>(), [AttemptClass::Delivered, AttemptClass::ServerError]);
}

#[tokio::test(start_paused = true)]
async fn what_is_disabled_is_cleared_and_what_is_enabled_is_rung_for_what_waits() {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    let made = world.hook("alpha", "example.com").await;
    let id = made.hook.id;
    world.memory.publish("alpha", "inbox").await;
    world.dispatch().await;
    assert_eq!(world.rings(id).len(), 1);
    let hook = world.hooks.disable(&alpha, HookKind::Notify, id).await.unwrap();
    assert_eq!(hook.state, HookState::Disabled(DisabledCause::Asked));
    assert!(world.rings(id).is_empty());
    world.memory.publish("alpha", "review").await;
    world.dispatch().await;
    assert!(world.rings(id).is_empty(), "nothing for one that is disabled");
    world.hooks.enable(&alpha, HookKind::Notify, id).await.unwrap();
    world.start();
    until(2 * SECOND, "both queues are rung for", || world.receivers.got().len() == 2).await;
    let told: Vec<_> = world.receivers.got().iter().map(|got| (got.json()["reason"].clone(), got.json()["queue"].clone())).collect();
    assert!(told.contains(&("backlog".into(), "inbox".into())) && told.contains(&("backlog".into(), "review".into())), "{told:?}");
    world.hooks.enable(&alpha, HookKind::Notify, id).await.unwrap();
    world.pass(2 * SECOND).await;
    assert_eq!(world.receivers.got().len(), 2, "what is active and healthy is not rung again");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_must_be_verified_is_rung_only_after_its_challenge() {
    let world = World::with(|settings| settings.require_verification = true);
    let made = world.hook("alpha", "example.com").await;
    let id = made.hook.id;
    assert_eq!(made.hook.state, HookState::PendingVerification);
    world.start();
    world.memory.publish("alpha", "inbox").await;
    until(20 * SECOND, "the challenge is given up", || world.rings(id).is_empty()).await;
    let got = world.receivers.got();
    assert_eq!(got.len(), 3);
    assert!(got.iter().all(|got| got.json()["type"] == "callback.challenge" && got.is_signed_by(made.secret.bytes())));
    assert_eq!(world.stored(id).state, HookState::PendingVerification);
    let alpha = world.caller("alpha").await;
    world.receivers.does("example.com", [Does::Prove(made.secret.bytes().to_vec())]);
    let hook = world.hooks.verify(&alpha, HookKind::Notify, id, None).await.unwrap();
    assert_eq!((hook.state, hook.challenge), (HookState::Active, None));
    until(SECOND, "what waits is rung for", || world.receivers.got().last().unwrap().json()["reason"] == "backlog").await;
    // Another URL is another receiver.
    let patch = HookPatch { url: Some(url("example.org")), ..HookPatch::default() };
    let hook = world.hooks.update(&alpha, id, patch).await.unwrap();
    assert_eq!(hook.state, HookState::PendingVerification);
}
