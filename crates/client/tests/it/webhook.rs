//! Verifying rings. What is signed here is signed by hand, from the specifications.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use doorstep_client::{
    Arrival, SeenDeliveries, ServerPublicKey, Timestamp, VerifiedDelivery, WebhookChallenge, WebhookHeaders, WebhookKey, WebhookMessage,
    WebhookProver, WebhookRejection, WebhookSecret, WebhookVerifier,
};
use proptest::prelude::{prop_assert, proptest};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey,
};
use testkit::ManualClock;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SENT: i64 = 1_614_265_330;

fn at(seconds: i64) -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_micros(seconds * 1_000_000)))
}

fn secret(text: &str) -> WebhookSecret {
    WebhookSecret::parse(text).unwrap()
}

fn verifier(seconds: i64) -> WebhookVerifier {
    WebhookVerifier::new([secret(SECRET)]).unwrap().with_clock(at(seconds))
}

fn hmac_of(secret: &str, message: &[u8]) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), message))
}

/// A request, header by header.
#[derive(Clone, Debug)]
struct Sent {
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Sent {
    fn standard(secret: &str, id: &str, seconds: i64, body: &str) -> Self {
        let signature = hmac_of(secret, format!("{id}.{seconds}.{body}").as_bytes());
        let headers = vec![
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", format!("v1,{signature}")),
        ];
        Self { headers, body: body.into() }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| *other != name);
        self
    }

    fn get(&self, name: &str) -> &str {
        &self.headers.iter().find(|(other, _)| *other == name).unwrap().1
    }

    fn headers(&self) -> WebhookHeaders<'_> {
        self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }

    fn verified(&self, by: &WebhookVerifier) -> Result<VerifiedDelivery, WebhookRejection> {
        by.verify(&self.headers(), &self.body)
    }

    fn verified_as_message(&self, by: &WebhookVerifier) -> Result<VerifiedDelivery, WebhookRejection> {
        self.verified_at(by, "POST", "example.com", "/matm/callback")
    }

    fn verified_at(&self, by: &WebhookVerifier, method: &str, authority: &str, path: &str) -> Result<VerifiedDelivery, WebhookRejection> {
        let headers = self.headers();
        by.verify_message(&WebhookMessage { method, authority, path, headers: &headers, body: &self.body })
    }
}

/// The vector of the published libraries.
fn official() -> Sent {
    let headers = vec![
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned()),
        ("webhook-timestamp", "1614265330".to_owned()),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned()),
    ];
    Sent { headers, body: br#"{"test": 2432232314}"#.to_vec() }
}

#[test]
fn the_official_vector_verifies() {
    let delivery = official().verified(&verifier(SENT)).unwrap();
    assert_eq!(delivery.id, "msg_p5jXN8AQM9LWM0D4loKWxJek");
    assert_eq!((delivery.nonce, delivery.signed_at), (None, Timestamp::from_micros(SENT * 1_000_000)));
}

#[test]
fn any_of_several_keys_and_any_of_several_signatures_will_do() {
    let both = WebhookVerifier::new([secret(OTHER), secret(SECRET)]).unwrap().with_clock(at(SENT));
    assert!(official().verified(&both).is_ok());
    let other = Sent::standard(OTHER, "msg_p5jXN8AQM9LWM0D4loKWxJek", SENT, r#"{"test": 2432232314}"#);
    let signatures = format!("v1a,AAAA {} v2,x {}", other.get("webhook-signature"), official().get("webhook-signature"));
    let rotating = official().with("webhook-signature", &signatures);
    assert!(rotating.verified(&verifier(SENT)).is_ok());
    assert_eq!(other.verified(&verifier(SENT)), Err(WebhookRejection::Signature));
    assert!(WebhookVerifier::new(Vec::<WebhookKey>::new()).is_err(), "without keys there is no verifier");
}

#[test]
fn a_change_to_anything_that_is_signed_is_noticed() {
    let verifier = verifier(SENT);
    assert_eq!(official().with("webhook-id", "msg_other").verified(&verifier), Err(WebhookRejection::Signature));
    assert_eq!(official().with("webhook-timestamp", "1614265331").verified(&verifier), Err(WebhookRejection::Signature));
    let mut changed = official();
    changed.body.push(b' ');
    assert_eq!(changed.verified(&verifier), Err(WebhookRejection::Signature));
    for signature in [
        "",
        "v1,",
        "v1",
        "v1,AAAA",
        "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE",
        "v1,G0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ] {
        assert_eq!(official().with("webhook-signature", signature).verified(&verifier), Err(WebhookRejection::Signature), "{signature}");
    }
    let many = format!("{}{}", "v1,AAAA ".repeat(16), official().get("webhook-signature"));
    assert_eq!(official().with("webhook-signature", &many).verified(&verifier), Err(WebhookRejection::Signature), "not endlessly many");
}

#[test]
fn what_is_missing_malformed_or_there_twice_is_refused() {
    let verifier = verifier(SENT);
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        assert_eq!(official().without(name).verified(&verifier), Err(WebhookRejection::Missing(name)));
        let mut twice = official();
        twice.headers.push((name, twice.get(name).to_owned()));
        assert_eq!(twice.verified(&verifier), Err(WebhookRejection::Malformed(name)));
    }
    for timestamp in ["", "now", "-1", "+1614265330", "1614265330.0", "0x1", "99999999999999999999"] {
        let refused = official().with("webhook-timestamp", timestamp).verified(&verifier);
        assert_eq!(refused, Err(WebhookRejection::Malformed("webhook-timestamp")), "{timestamp}");
    }
    // "a.1614265330" at 7 and "a" at 1614265330 would be signed alike.
    let ambiguous = Sent::standard(SECRET, "a.1614265330", 7, "{}");
    assert_eq!(ambiguous.verified(&verifier), Err(WebhookRejection::Malformed("webhook-id")));
}

#[test]
fn clocks_may_be_five_minutes_apart_either_way_and_no_more() {
    for (skew, expected) in [
        (0, None),
        (300, None),
        (-300, None),
        (301, Some(WebhookRejection::TooOld)),
        (-301, Some(WebhookRejection::TooNew)),
        (86_400, Some(WebhookRejection::TooOld)),
    ] {
        assert_eq!(official().verified(&verifier(SENT + skew)).err(), expected, "{skew}");
    }
    let strict = verifier(SENT + 11).with_tolerance(Duration::from_secs(10));
    assert_eq!(official().verified(&strict), Err(WebhookRejection::TooOld));
}

#[test]
fn a_digest_that_is_there_has_to_be_right() {
    let right = format!("sha-256=:{}:", STANDARD.encode(digest(&SHA256, br#"{"test": 2432232314}"#)));
    assert!(official().with("content-digest", &right).verified(&verifier(SENT)).is_ok());
    let wrong = format!("sha-256=:{}:", STANDARD.encode(digest(&SHA256, b"{}")));
    assert_eq!(official().with("content-digest", &wrong).verified(&verifier(SENT)), Err(WebhookRejection::Digest));
}

#[test]
fn secrets_that_are_none_are_refused_and_never_shown() {
    for bad in [
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_c2hvcnQ=",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwA",
    ] {
        assert!(WebhookSecret::parse(bad).is_err(), "{bad}");
    }
    assert!(WebhookSecret::parse(&format!("whsec_{}", STANDARD.encode([0; 65]))).is_err());
    let shown = format!("{:?} {:?}", secret(SECRET), verifier(SENT));
    assert!(!shown.contains("MfKQ"), "{shown}");
}

// HTTP Message Signatures.

const COMPONENTS: &str = r#"("@method" "@authority" "@path" "content-digest" "matm-delivery-id")"#;

fn parameters(key_id: &str, algorithm: &str, nonce: &str) -> String {
    format!(r#"{COMPONENTS};created={SENT};expires={};nonce="{nonce}";keyid="{key_id}";alg="{algorithm}""#, SENT + 300)
}

/// Makes a signature over a base, in base64.
type Signer<'a> = &'a dyn Fn(&[u8]) -> String;

/// A request that is signed with these inputs; labels are counted.
fn message(body: &str, signed: &[(&str, Signer<'_>)]) -> Sent {
    let digest = format!("sha-256=:{}:", STANDARD.encode(digest(&SHA256, body.as_bytes())));
    let (mut inputs, mut signatures) = (Vec::new(), Vec::new());
    for (number, (input, sign)) in signed.iter().enumerate() {
        let base = format!(
            "\"@method\": POST\n\"@authority\": example.com\n\"@path\": /matm/callback\n\"content-digest\": {digest}\n\
             \"matm-delivery-id\": msg_1\n\"@signature-params\": {input}"
        );
        inputs.push(format!("sig{number}={input}"));
        signatures.push(format!("sig{number}=:{}:", sign(base.as_bytes())));
    }
    let headers = vec![
        ("matm-delivery-id", "msg_1".to_owned()),
        ("content-digest", digest),
        ("signature-input", inputs.join(", ")),
        ("signature", signatures.join(", ")),
    ];
    Sent { headers, body: body.into() }
}

fn by_secret() -> Sent {
    message("{}", &[(&parameters("key_1", "hmac-sha256", "n-1"), &|base| hmac_of(SECRET, base))])
}

#[test]
fn a_message_in_the_profile_verifies_with_the_secret_or_the_servers_key() {
    let delivery = by_secret().verified_as_message(&verifier(SENT)).unwrap();
    assert_eq!((delivery.id.as_str(), delivery.nonce.as_deref()), ("msg_1", Some("n-1")));
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let sign = |base: &[u8]| STANDARD.encode(pair.sign(base));
    let sent = message("{}", &[(&parameters("server_1", "ed25519", "n-1"), &sign)]);
    let key = |id| WebhookVerifier::new([ServerPublicKey::new(id, pair.public_key().as_ref()).unwrap()]).unwrap().with_clock(at(SENT));
    assert!(sent.verified_as_message(&key("server_1")).is_ok());
    assert_eq!(sent.verified_as_message(&key("server_2")), Err(WebhookRejection::Signature));
    assert_eq!(sent.verified_as_message(&verifier(SENT)), Err(WebhookRejection::Signature), "a secret is no public key");
}

#[test]
fn during_a_rotation_either_label_is_found() {
    let (old, new) = (parameters("key_1", "hmac-sha256", "n"), parameters("key_2", "hmac-sha256", "n"));
    let sent = message("{}", &[(&new, &|base| hmac_of(OTHER, base)), (&old, &|base| hmac_of(SECRET, base))]);
    assert!(sent.verified_as_message(&verifier(SENT)).is_ok());
    let named = |id| WebhookVerifier::new([secret(SECRET).named(id)]).unwrap().with_clock(at(SENT));
    assert!(sent.verified_as_message(&named("key_1")).is_ok());
    assert_eq!(sent.verified_as_message(&named("key_2")), Err(WebhookRejection::Signature));
}

#[test]
fn a_change_to_any_component_or_parameter_is_noticed() {
    let verifier = verifier(SENT);
    let sent = by_secret();
    for (method, authority, path) in
        [("PUT", "example.com", "/matm/callback"), ("POST", "example.org", "/matm/callback"), ("POST", "example.com", "/matm/other")]
    {
        assert_eq!(sent.verified_at(&verifier, method, authority, path), Err(WebhookRejection::Signature));
    }
    assert_eq!(sent.clone().with("matm-delivery-id", "msg_2").verified_as_message(&verifier), Err(WebhookRejection::Signature));
    let mut other_body = sent.clone();
    other_body.body = b"{ }".to_vec();
    assert_eq!(other_body.verified_as_message(&verifier), Err(WebhookRejection::Digest));
    let digest = message("{ }", &[]).get("content-digest").to_owned();
    assert_eq!(other_body.with("content-digest", &digest).verified_as_message(&verifier), Err(WebhookRejection::Signature));
    let input = sent.get("signature-input").to_owned();
    for (from, to) in [
        ("created=1614265330", "created=1614265331"),
        ("expires=1614265630", "expires=1914265630"),
        ("nonce=\"n-1\"", "nonce=\"n-2\""),
        ("keyid=\"key_1\"", "keyid=\"key_2\""),
        ("alg=\"hmac-sha256\"", "alg=\"none\""),
        (" \"content-digest\"", ""),
        (";created", "; created"),
        (";alg=\"hmac-sha256\"", ""),
        (";nonce=\"n-1\"", ""),
        ("sig0=", "sig1="),
    ] {
        assert!(input.contains(from), "{from}");
        let changed = sent.clone().with("signature-input", &input.replace(from, to));
        assert_eq!(changed.verified_as_message(&verifier), Err(WebhookRejection::Signature), "{to}");
    }
    for name in ["signature-input", "signature", "content-digest", "matm-delivery-id"] {
        assert_eq!(sent.clone().without(name).verified_as_message(&verifier), Err(WebhookRejection::Missing(name)));
    }
}

/// Signed well, but with less than the profile: whoever strips a component must not be believed by a valid signature over the rest.
#[test]
fn another_profile_is_not_believed_though_it_is_signed() {
    for input in [
        format!(r#"("@method");created={SENT};expires={};nonce="n";keyid="k";alg="hmac-sha256""#, SENT + 300),
        format!(r#"();created={SENT};expires={};nonce="n";keyid="k";alg="hmac-sha256""#, SENT + 300),
        format!("{COMPONENTS};created={SENT}"),
        format!(r#"{COMPONENTS};created={SENT};expires={};nonce="n";keyid="k";alg="hmac-sha256";tag="x""#, SENT + 300),
        format!(r#"{COMPONENTS};created="{SENT}";expires={};nonce="n";keyid="k";alg="hmac-sha256""#, SENT + 300),
    ] {
        let sent = message("{}", &[(&input, &|base| hmac_of(SECRET, base))]);
        assert_eq!(sent.verified_as_message(&verifier(SENT)), Err(WebhookRejection::Signature), "{input}");
    }
}

#[test]
fn a_message_counts_until_it_expires_and_not_before_it_is_made() {
    for (now, expected) in [
        (SENT, None),
        (SENT + 299, None),
        (SENT + 300, Some(WebhookRejection::TooOld)),
        (SENT + 301, Some(WebhookRejection::TooOld)),
        (SENT - 300, None),
        (SENT - 301, Some(WebhookRejection::TooNew)),
    ] {
        assert_eq!(by_secret().verified_as_message(&verifier(now)).err(), expected, "{}", now - SENT);
    }
    let patient = verifier(SENT + 300).with_tolerance(Duration::from_hours(1));
    assert_eq!(by_secret().verified_as_message(&patient), Err(WebhookRejection::TooOld), "the sender's bound counts, too");
}

#[test]
fn either_scheme_is_told_by_its_headers() {
    let verifier = verifier(SENT);
    for sent in [official(), by_secret()] {
        let headers = sent.headers();
        let request =
            WebhookMessage { method: "POST", authority: "example.com", path: "/matm/callback", headers: &headers, body: &sent.body };
        assert!(verifier.verify_either(&request).is_ok(), "{sent:?}");
    }
    // Whoever adds one scheme's headers to the other's gains nothing.
    let both = official().with("signature-input", "sig1=()").with("signature", "sig1=:AA==:");
    let headers = both.headers();
    let request = WebhookMessage { method: "POST", authority: "example.com", path: "/", headers: &headers, body: &both.body };
    assert!(verifier.verify_either(&request).is_err());
}

// What was there already.

fn delivery(id: &str, nonce: Option<&str>) -> VerifiedDelivery {
    VerifiedDelivery { id: id.to_owned(), nonce: nonce.map(str::to_owned), signed_at: Timestamp::from_micros(0) }
}

#[test]
fn a_delivery_is_first_once_its_attempts_are_repeats_and_the_same_request_is_a_replay() {
    let seen = SeenDeliveries::default();
    assert_eq!(seen.note(&delivery("a", None)), Arrival::First);
    assert_eq!(seen.note(&delivery("a", None)), Arrival::Repeat, "Standard Webhooks signs no nonce");
    assert_eq!(seen.note(&delivery("b", Some("1"))), Arrival::First);
    assert_eq!(seen.note(&delivery("b", Some("2"))), Arrival::Repeat);
    assert_eq!(seen.note(&delivery("b", Some("2"))), Arrival::Replay);
    assert_eq!(seen.note(&delivery("c", Some("2"))), Arrival::Replay);
    assert_eq!(seen.note(&delivery("1", None)), Arrival::First, "a nonce is no id");
}

#[test]
fn what_could_not_be_acted_on_is_first_again() {
    let seen = SeenDeliveries::default();
    assert_eq!(seen.note(&delivery("a", Some("1"))), Arrival::First);
    seen.forget(&delivery("a", Some("1")));
    assert_eq!(seen.note(&delivery("a", Some("1"))), Arrival::Replay);
    assert_eq!(seen.note(&delivery("a", Some("2"))), Arrival::First);
}

#[test]
fn a_replay_is_noticed_inside_the_window_and_refused_as_too_old_outside_of_it() {
    let clock = at(SENT);
    let verifier = WebhookVerifier::new([secret(SECRET)]).unwrap().with_clock(clock.clone());
    let seen = SeenDeliveries::new(NonZeroUsize::new(100).unwrap(), Duration::from_mins(10)).with_clock(clock.clone());
    assert_eq!(seen.note(&by_secret().verified_as_message(&verifier).unwrap()), Arrival::First);
    clock.advance(Duration::from_secs(299));
    assert_eq!(seen.note(&by_secret().verified_as_message(&verifier).unwrap()), Arrival::Replay);
    clock.advance(Duration::from_secs(1));
    assert_eq!(by_secret().verified_as_message(&verifier), Err(WebhookRejection::TooOld));
    clock.advance(Duration::from_mins(10));
    assert_eq!(seen.note(&delivery("msg_1", Some("n-1"))), Arrival::First, "forgotten, which is why the age is judged first");
}

proptest! {
    #[test]
    fn memory_is_bounded_and_the_latest_are_remembered(ids in proptest::collection::vec(0..50_u8, 1..300)) {
        let seen = SeenDeliveries::new(NonZeroUsize::new(10).unwrap(), Duration::from_mins(10)).with_clock(at(SENT));
        let mut kept: Vec<u8> = Vec::new();
        for id in ids {
            let is_known = kept.contains(&id);
            prop_assert!((seen.note(&delivery(&id.to_string(), None)) == Arrival::Repeat) == is_known);
            if !is_known {
                kept.push(id);
                if kept.len() > 10 {
                    kept.remove(0);
                }
            }
        }
    }
}

// Challenges.

const CHALLENGE: &str =
    r#"{"type":"callback.challenge","delivery_id":"msg_1","nonce":"n","challenge":"c","expires_at_utc":"2026-07-12T16:35:00.000Z"}"#;

fn response(prover: &WebhookProver) -> Vec<u8> {
    let answer = WebhookChallenge::read(CHALLENGE.as_bytes()).unwrap().answer(prover);
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer.as_object().unwrap().len(), 1);
    STANDARD.decode(answer["response"].as_str().unwrap()).unwrap()
}

#[test]
fn a_challenge_is_answered_with_the_secret_or_the_registered_key() {
    assert_eq!(STANDARD.encode(response(&WebhookProver::from(&secret(SECRET)))), hmac_of(SECRET, b"msg_1.n.c"));
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let public = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let signature = response(&WebhookProver::ed25519(pkcs8.as_ref()).unwrap());
    assert!(UnparsedPublicKey::new(&ED25519, public.public_key()).verify(b"msg_1.n.c", &signature).is_ok());
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let public = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &SystemRandom::new()).unwrap();
    let signature = response(&WebhookProver::p256(pkcs8.as_ref()).unwrap());
    assert!(UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public.public_key()).verify(b"msg_1.n.c", &signature).is_ok());
    assert!(WebhookProver::ed25519(b"x").is_err() && WebhookProver::p256(b"x").is_err());
}

#[test]
fn a_ring_is_no_challenge() {
    for body in [r#"{"type":"todo.ready"}"#, "", "[]", r#"{"type":"callback.challenge"}"#] {
        assert_eq!(WebhookChallenge::read(body.as_bytes()), None, "{body}");
    }
}
