//! Callbacks: challenge and proof, signals, their rate, their keys.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hooks::{
    AttemptClass, AuthMode, HookError, HookKind, HookState, KeyId, NewCallback, NewKey, Profile, PublicKey, Registered, WebhookId,
};
use inbox::AckState;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair,
    UnparsedPublicKey,
};

use crate::memory::{SECOND, recipient};
use crate::receivers::{Does, Got, challenge_text, prove, until};
use crate::world::{World, url};

fn callback(auth_mode: AuthMode) -> NewCallback {
    let url = url("a.example");
    NewCallback { url, auth_mode, key: None, public_key: None, max_rate_per_minute: None, ignore_presence: false }
}

async fn register(world: &World, new: NewCallback) -> Registered {
    world.hooks.register_callback(&world.caller("alpha").await, new).await.unwrap()
}

/// A callback that has answered its challenge.
async fn verified(world: &World, new: NewCallback) -> Registered {
    let registered = register(world, new).await;
    let secret = registered.secret.as_ref().unwrap().bytes().to_vec();
    world.receivers.does("a.example", [Does::Prove(secret)]);
    world.start();
    until(5 * SECOND, "it is active", || world.stored(registered.hook.id).state == HookState::Active).await;
    registered
}

fn signals(world: &World) -> Vec<Got> {
    world.receivers.got().into_iter().filter(|got| got.json().get("signal_type").is_some()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_callback_is_active_only_after_it_has_answered_its_challenge() {
    let world = World::new();
    let registered = register(&world, callback(AuthMode::HmacSha256)).await;
    let id = registered.hook.id;
    assert_eq!((registered.hook.state, registered.hook.profile), (HookState::PendingVerification, Profile::CallbackHmac));
    world.memory.publish("alpha", "inbox").await;
    world.receivers.does("a.example", [Does::Answer(200), Does::Prove(registered.secret.as_ref().unwrap().bytes().to_vec())]);
    world.start();
    until(SECOND * 5, "it is active", || world.stored(id).state == HookState::Active).await;
    let got = world.receivers.got();
    assert!(got.len() >= 2 && got[0].id() == registered.challenge_delivery.as_str() && got[0].id() == got[1].id());
    assert!(got[0].is_signed_by(registered.secret.as_ref().unwrap().bytes()));
    assert_eq!(got[0].header("matm-key-id"), registered.key.as_str());
    assert_eq!(got[0].json()["expires_at_utc"], registered.expires_at.to_string());
    until(3 * SECOND, "what waits is signalled", || signals(&world).len() == 1).await;
    assert_eq!(world.hooks.metrics().verifications.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_or_missing_proof_activates_nothing() {
    for does in [Does::Answer(200), Does::Say("nonsense".into()), Does::Prove(vec![9; 32]), Does::Answer(410), Does::Hang] {
        let world = World::new();
        let registered = register(&world, callback(AuthMode::HmacSha256)).await;
        world.receivers.does("a.example", [does.clone()]);
        world.start();
        until(Duration::from_mins(1), "it is given up", || world.rings(registered.hook.id).is_empty()).await;
        world.memory.publish("alpha", "inbox").await;
        world.pass(Duration::from_mins(1)).await;
        assert_eq!(world.stored(registered.hook.id).state, HookState::PendingVerification, "{does:?}");
        assert!(signals(&world).is_empty());
        assert_eq!(world.hooks.metrics().verification_failures.get(), 1, "{does:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn verifying_sends_a_new_challenge_and_says_what_came_of_it() {
    let world = World::new();
    let registered = register(&world, callback(AuthMode::HmacSha256)).await;
    let (alpha, id) = (world.caller("alpha").await, registered.hook.id);
    world.receivers.does("a.example", [Does::Answer(503)]);
    let answer = world.hooks.verify_callback(&alpha, id, None).await;
    assert_eq!(answer.unwrap_err(), HookError::Unverified(AttemptClass::ServerError));
    world.pass(2 * SECOND).await;
    world.receivers.does("a.example", [Does::Prove(registered.secret.as_ref().unwrap().bytes().to_vec())]);
    let hook = world.hooks.verify_callback(&alpha, id, None).await.unwrap();
    assert_eq!(hook.state, HookState::Active);
    assert_eq!(world.hooks.verify_callback(&alpha, id, None).await.unwrap(), hook, "verified once is enough");
    let got = world.receivers.got();
    assert_eq!(got.len(), 2);
    assert!(got[0].json()["nonce"] != got[1].json()["nonce"] && got[0].id() != got[1].id());
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_within_its_time_and_for_the_open_challenge_only() {
    let world = World::new();
    let registered = register(&world, callback(AuthMode::HmacSha256)).await;
    let (alpha, id, secret) = (world.caller("alpha").await, registered.hook.id, registered.secret.unwrap());
    world.receivers.does("a.example", [Does::Answer(200)]);
    world.start();
    until(5 * SECOND, "it was asked", || !world.receivers.got().is_empty()).await;
    let first = prove(secret.bytes(), &world.receivers.got()[0].json());
    // Another challenge: the answer to the first is worth nothing any more.
    world.pass(20 * SECOND).await;
    assert!(world.hooks.verify_callback(&alpha, id, None).await.is_err());
    let refused = world.hooks.verify_callback(&alpha, id, Some(&first)).await.unwrap_err();
    assert_eq!(refused, HookError::Unverified(AttemptClass::Unproven));
    let second = prove(secret.bytes(), &world.receivers.got().last().unwrap().json());
    world.pass(Duration::from_mins(10)).await;
    assert!(matches!(world.hooks.verify_callback(&alpha, id, Some(&second)).await, Err(HookError::NotInThatState(_))), "expired");
    assert_eq!(world.hooks.metrics().replays_rejected.get(), 1);
    assert_eq!(world.stored(id).state, HookState::PendingVerification);
    assert!(world.hooks.verify_callback(&alpha, id, None).await.is_err());
    let third = prove(secret.bytes(), &world.receivers.got().last().unwrap().json());
    assert_eq!(world.hooks.verify_callback(&alpha, id, Some(&third)).await.unwrap().state, HookState::Active);
}

#[tokio::test(start_paused = true)]
async fn signals_are_coalesced_and_tell_the_head() {
    let world = World::new();
    let registered = verified(&world, callback(AuthMode::HmacSha256)).await;
    world.pass(2 * SECOND).await;
    for _ in 0..50 {
        world.memory.publish("alpha", "inbox").await;
    }
    until(3 * SECOND, "it is signalled", || !signals(&world).is_empty()).await;
    world.pass(10 * SECOND).await;
    let got = signals(&world);
    assert!((1..=2).contains(&got.len()), "{}", got.len());
    let body = got.last().unwrap().json();
    assert_eq!((body["head_seq"].as_u64(), body["approximate_unacked"].as_u64()), (Some(50), Some(50)));
    assert_eq!(body["delivery_id"].as_str(), Some(got.last().unwrap().id()));
    assert!(world.rings(registered.hook.id).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_callback_is_called_at_most_so_often_and_the_last_news_is_never_lost() {
    let world = World::new();
    let registered = verified(&world, NewCallback { max_rate_per_minute: Some(6), ..callback(AuthMode::HmacSha256) }).await;
    let before = world.receivers.got().len();
    for _ in 0..120 {
        world.memory.publish("alpha", "inbox").await;
        world.pass(Duration::from_millis(500)).await;
    }
    let got = world.receivers.got();
    assert!((5..=7).contains(&(got.len() - before)), "{} in a minute", got.len() - before);
    got.windows(2).for_each(|pair| assert!(pair[1].at.since(pair[0].at) >= 10 * SECOND || pair[0].json().get("type").is_some()));
    until(11 * SECOND, "the last news came", || signals(&world).last().unwrap().json()["head_seq"] == 120).await;
    assert!(world.rings(registered.hook.id).is_empty() || world.rings(registered.hook.id).len() == 1);
}

#[tokio::test(start_paused = true)]
async fn news_that_come_while_a_signal_is_on_its_way_are_signalled_after_it() {
    let world = World::new();
    let registered = verified(&world, callback(AuthMode::HmacSha256)).await;
    world.pass(2 * SECOND).await;
    world.receivers.does("a.example", [Does::AnswerLater(3 * SECOND, 204), Does::Answer(204)]);
    world.memory.publish("alpha", "inbox").await;
    until(2 * SECOND, "it is on its way", || signals(&world).len() == 1).await;
    world.memory.publish("alpha", "inbox").await;
    until(6 * SECOND, "the second is signalled", || signals(&world).len() == 2).await;
    let got = signals(&world);
    assert_eq!((got[0].json()["head_seq"].as_u64(), got[1].json()["head_seq"].as_u64()), (Some(1), Some(2)));
    assert_ne!(got[0].id(), got[1].id());
    until(SECOND, "nothing is left", || world.rings(registered.hook.id).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_claimed_meanwhile_is_not_signalled() {
    let world = World::new();
    let registered = verified(&world, NewCallback { max_rate_per_minute: Some(6), ..callback(AuthMode::HmacSha256) }).await;
    let event = world.memory.publish("alpha", "inbox").await;
    world.pass(SECOND).await;
    world.set_state("alpha", event, AckState::Claimed);
    world.pass(Duration::from_mins(1)).await;
    assert!(signals(&world).is_empty());
    assert!(world.rings(registered.hook.id).is_empty());
    assert!(world.memory.state().rows.contains_key(&recipient("alpha")));
}

#[tokio::test(start_paused = true)]
async fn a_rate_above_the_ceiling_is_capped_and_zero_is_refused() {
    let world = World::new();
    let registered = register(&world, NewCallback { max_rate_per_minute: Some(5_000), ..callback(AuthMode::HmacSha256) }).await;
    assert_eq!(registered.hook.max_rate_per_minute, Some(60));
    let alpha = world.caller("alpha").await;
    let none = NewCallback { max_rate_per_minute: Some(0), ..callback(AuthMode::HmacSha256) };
    assert!(matches!(world.hooks.register_callback(&alpha, none).await, Err(HookError::Invalid { .. })));
}

/// Signs as a receiver does.
type Signer = dyn Fn(&[u8]) -> Vec<u8>;

fn ed25519() -> (Ed25519KeyPair, PublicKey) {
    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap();
    let public = PublicKey::from_jwk("OKP", "Ed25519", &URL_SAFE_NO_PAD.encode(pair.public_key()), None).unwrap();
    (pair, public)
}

fn p256(algorithm: &'static EcdsaSigningAlgorithm) -> (EcdsaKeyPair, PublicKey) {
    let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref(), &SystemRandom::new()).unwrap();
    let point = pair.public_key().as_ref();
    let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
    let public = PublicKey::from_jwk("EC", "P-256", &x, Some(&y)).unwrap();
    (pair, public)
}

#[tokio::test(start_paused = true)]
async fn a_receiver_proves_itself_with_its_own_key_and_trusts_the_servers() {
    let (ed, ed_public) = ed25519();
    let (fixed, fixed_public) = p256(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let (der, der_public) = p256(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let random = SystemRandom::new();
    let signers: [(PublicKey, Box<Signer>); 3] = [
        (ed_public, Box::new(move |text| ed.sign(text).as_ref().to_vec())),
        (fixed_public, Box::new(move |text| fixed.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec())),
        (der_public, Box::new(move |text| der.sign(&random, text).unwrap().as_ref().to_vec())),
    ];
    for (public, sign) in signers {
        let world = World::new();
        let new = NewCallback { public_key: Some(public), ..callback(AuthMode::HttpMessageSignatures) };
        let registered = register(&world, new).await;
        let (alpha, id) = (world.caller("alpha").await, registered.hook.id);
        assert!(registered.secret.is_none());
        world.receivers.does("a.example", [Does::Answer(200)]);
        assert!(world.hooks.verify_callback(&alpha, id, None).await.is_err());
        let got = world.receivers.got().remove(0);
        let message = challenge_text(&got.json());
        let forged = STANDARD.encode(sign(b"something else"));
        assert_eq!(
            world.hooks.verify_callback(&alpha, id, Some(&forged)).await.unwrap_err(),
            HookError::Unverified(AttemptClass::Unproven)
        );
        let proof = STANDARD.encode(sign(message.as_bytes()));
        assert_eq!(world.hooks.verify_callback(&alpha, id, Some(&proof)).await.unwrap().state, HookState::Active);
        // What came is signed with the key that the server publishes.
        let keys = world.hooks.keys().await.unwrap();
        assert_eq!(got.header("matm-key-id"), keys[0].id.as_str());
        let parameters = got.header("signature-input").strip_prefix("sig1=").unwrap();
        let base = format!(
            "\"@method\": POST\n\"@authority\": a.example\n\"@path\": /ring\n\"content-digest\": {}\n\"matm-delivery-id\": {}\n\"@signature-params\": {parameters}",
            got.header("content-digest"),
            got.header("matm-delivery-id"),
        );
        let signature = STANDARD.decode(got.header("signature").strip_prefix("sig1=:").unwrap().trim_end_matches(':')).unwrap();
        assert!(UnparsedPublicKey::new(&ED25519, &keys[0].public).verify(base.as_bytes(), &signature).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_do_not_fit_the_mode_are_refused() {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    let (_, public) = ed25519();
    let wrong = NewCallback { public_key: Some(public.clone()), ..callback(AuthMode::HmacSha256) };
    assert!(
        matches!(world.hooks.register_callback(&alpha, wrong).await, Err(HookError::Invalid { pointer, .. }) if pointer == "/public_key")
    );
    let shared = register(&world, callback(AuthMode::HttpMessageSignatures)).await;
    assert_eq!(shared.hook.profile, Profile::MessageHmac);
    let new = NewKey { key: None, public_key: Some(public.clone()) };
    assert!(matches!(world.hooks.rotate_callback(&alpha, shared.hook.id, new).await, Err(HookError::Invalid { .. })));
    let own = register(&world, NewCallback { public_key: Some(public), ..callback(AuthMode::HttpMessageSignatures) }).await;
    assert!(matches!(world.hooks.rotate_callback(&alpha, own.hook.id, NewKey::default()).await, Err(HookError::Invalid { .. })));
    for (kty, crv, x, y) in
        [("OKP", "Ed25519", "AA", None), ("OKP", "X25519", "AA", None), ("EC", "P-256", "AA", Some("AA")), ("RSA", "", "", None)]
    {
        assert!(PublicKey::from_jwk(kty, crv, x, y).is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_rotated_callback_names_its_newest_key_and_signs_with_both() {
    let world = World::new();
    let name = |text: &str| KeyId::parse(text).unwrap();
    let new = NewCallback { key: Some(name("cbksec_2026_07")), ..callback(AuthMode::HmacSha256) };
    let registered = verified(&world, new).await;
    let alpha = world.caller("alpha").await;
    world.pass(2 * SECOND).await;
    let taken = NewKey { key: Some(name("cbksec_2026_07")), public_key: None };
    assert!(matches!(world.hooks.rotate_callback(&alpha, registered.hook.id, taken).await, Err(HookError::Invalid { .. })));
    let rotated =
        world.hooks.rotate_callback(&alpha, registered.hook.id, NewKey { key: Some(name("next")), public_key: None }).await.unwrap();
    world.memory.publish("alpha", "inbox").await;
    until(3 * SECOND, "it is signalled", || !signals(&world).is_empty()).await;
    let got = signals(&world).remove(0);
    assert_eq!(got.header("matm-key-id"), "next");
    assert!(got.is_signed_by(rotated.secret.unwrap().bytes()) && got.is_signed_by(registered.secret.unwrap().bytes()));
    assert!(WebhookId::parse(got.header("matm-delivery-id")).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_old_key_still_proves_during_the_overlap_and_not_after() {
    let world = World::new();
    let registered = register(&world, callback(AuthMode::HmacSha256)).await;
    let (alpha, id, old) = (world.caller("alpha").await, registered.hook.id, registered.secret.unwrap());
    world.hooks.rotate_callback(&alpha, id, NewKey::default()).await.unwrap();
    world.receivers.does("a.example", [Does::Prove(old.bytes().to_vec())]);
    world.pass(Duration::from_hours(25)).await;
    assert!(world.hooks.verify_callback(&alpha, id, None).await.is_err());
    let registered = register(&world, callback(AuthMode::HmacSha256)).await;
    let (id, old) = (registered.hook.id, registered.secret.unwrap());
    world.hooks.rotate_callback(&alpha, id, NewKey::default()).await.unwrap();
    world.receivers.does("a.example", [Does::Prove(old.bytes().to_vec())]);
    assert_eq!(world.hooks.verify_callback(&alpha, id, None).await.unwrap().state, HookState::Active);
}

#[tokio::test(start_paused = true)]
async fn only_agents_register_callbacks_and_only_for_themselves() {
    let world = World::new();
    for stranger in ["sam", "alex"] {
        let caller = world.caller(stranger).await;
        assert!(matches!(world.hooks.register_callback(&caller, callback(AuthMode::HmacSha256)).await, Err(HookError::Denied(_))));
    }
    let registered = register(&world, callback(AuthMode::HmacSha256)).await;
    let (alex, beta) = (world.caller("alex").await, world.caller("beta").await);
    assert!(world.hooks.rotate_callback(&alex, registered.hook.id, NewKey::default()).await.is_err());
    assert!(world.hooks.get(&beta, HookKind::Callback, registered.hook.id).await.is_err());
    world.hooks.disable(&alex, HookKind::Callback, registered.hook.id).await.unwrap();
    let alpha = world.caller("alpha").await;
    assert!(matches!(world.hooks.verify_callback(&alpha, registered.hook.id, None).await, Err(HookError::NotInThatState(_))));
    let hook = world.hooks.enable(&alpha, HookKind::Callback, registered.hook.id).await.unwrap();
    assert_eq!(hook.state, HookState::PendingVerification, "enabling proves nothing");
}
