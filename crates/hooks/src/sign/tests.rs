//! Official vectors, and what other libraries say of what is signed here.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::{Clock, EventId, Seq, SystemClock, Timestamp};
use httpsig::prelude::message_component::HttpMessageComponent;
use httpsig::prelude::{AlgorithmName, HttpSignatureBase, HttpSignatureHeaders, PublicKey, SharedKey, VerifyingKey};
use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use uuid::Uuid;

use super::{Headers, SigningKey, Unsigned, content_digest, hmac_base64, is_hmac, sign, signature_base};
use crate::{HookId, HookUrl, KeyId, Profile, Secret, WebhookId};

const PROFILES: [Profile; 4] = [Profile::StandardWebhooks, Profile::CallbackHmac, Profile::MessageHmac, Profile::MessageEd25519];

fn hmac_key(name: &str, byte: u8) -> SigningKey {
    SigningKey::Hmac(KeyId::parse(name).unwrap(), Secret::from_bytes(vec![byte; 32]).unwrap())
}

fn ed25519_key(name: &str) -> (SigningKey, Vec<u8>) {
    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap();
    let public = pair.public_key().as_ref().to_vec();
    (SigningKey::Ed25519(KeyId::parse(name).unwrap(), pair), public)
}

fn id() -> WebhookId {
    WebhookId::of_item(HookId::new(Uuid::from_u128(1)), Seq::new(7).unwrap(), EventId::new(Uuid::from_u128(2)))
}

fn url() -> HookUrl {
    HookUrl::parse("https://example.com:8443/ring/me?token=1").unwrap()
}

fn unsigned<'a>(profile: Profile, id: &'a WebhookId, url: &'a HookUrl, body: &'a [u8]) -> Unsigned<'a> {
    let now = Timestamp::from_micros(1_614_265_330_999_999);
    Unsigned { profile, id, url, body, now, nonce: "nonce", lifetime: Duration::from_mins(5) }
}

fn get<'h>(headers: &'h Headers, name: &str) -> &'h str {
    let mut found = headers.iter().filter(|(header, _)| *header == name);
    let value = &found.next().unwrap_or_else(|| panic!("header {name}")).1;
    assert!(found.next().is_none(), "{name} once");
    value
}

/// Whether a signature over a message is right.
type Verify<'v> = dyn Fn(&[u8], &[u8]) -> bool + 'v;

/// A receiver of the RFC 9421 profile, written from the RFC and from nothing above: rebuilds the base from the headers that came.
fn verifies(headers: &Headers, request: (&str, &str, &str), body: &[u8], keyid: &str, good: &Verify<'_>) -> bool {
    let (method, authority, path) = request;
    if get(headers, "content-digest") != content_digest(body) {
        return false;
    }
    let member = |header: &str, label: &str| {
        get(headers, header).split(", ").find_map(|member| member.strip_prefix(&format!("{label}=")).map(str::to_owned))
    };
    (1..10).any(|number| {
        let label = format!("sig{number}");
        let Some(parameters) = member("signature-input", &label) else { return false };
        if !parameters.contains(&format!(";keyid=\"{keyid}\"")) {
            return false;
        }
        let list = parameters.strip_prefix('(').unwrap().split_once(')').unwrap().0;
        let mut lines = Vec::new();
        for name in list.split(' ') {
            let value = match name {
                "\"@method\"" => method,
                "\"@authority\"" => authority,
                "\"@path\"" => path,
                header => get(headers, header.trim_matches('"')),
            };
            lines.push(format!("{name}: {value}"));
        }
        lines.push(format!("\"@signature-params\": {parameters}"));
        let base = lines.join("\n");
        let signature = member("signature", &label).unwrap();
        good(base.as_bytes(), &STANDARD.decode(signature.trim_matches(':')).unwrap())
    })
}

#[test]
fn the_vector_of_standard_webhooks_is_met() {
    let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signed = b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
    assert_eq!(hmac_base64(secret.bytes(), signed), "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn the_vector_of_rfc_9421_is_met() {
    let key = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==";
    let components = [("date", "Tue, 20 Apr 2021 02:07:55 GMT"), ("@authority", "example.com"), ("content-type", "application/json")];
    let parameters = "(\"date\" \"@authority\" \"content-type\");created=1618884473;keyid=\"test-shared-secret\"";
    let signature = hmac_base64(&STANDARD.decode(key).unwrap(), signature_base(&components, parameters).as_bytes());
    assert_eq!(signature, "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=");
}

#[test]
fn the_vector_of_content_digest_is_met() {
    assert_eq!(content_digest(br#"{"hello": "world"}"#), "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:");
}

#[test]
fn every_valid_key_signs_and_the_newest_is_named() {
    let (id, url) = (id(), url());
    let keys = [hmac_key("new", 2), hmac_key("old", 1)];
    for profile in [Profile::StandardWebhooks, Profile::CallbackHmac] {
        let headers = sign(unsigned(profile, &id, &url, b"{}"), &keys).unwrap();
        let signed = format!("{id}.1614265330.{{}}");
        let expected = [2_u8, 1].map(|byte| format!("v1,{}", hmac_base64(&[byte; 32], signed.as_bytes()))).join(" ");
        assert_eq!(get(&headers, "webhook-signature"), expected);
        assert_eq!((get(&headers, "webhook-id"), get(&headers, "webhook-timestamp")), (id.as_str(), "1614265330"));
    }
    let headers = sign(unsigned(Profile::MessageHmac, &id, &url, b"{}"), &keys).unwrap();
    assert_eq!(get(&headers, "matm-key-id"), "new");
    for (name, byte) in [("new", 2), ("old", 1)] {
        let good = |base: &[u8], tag: &[u8]| is_hmac(&[byte; 32], base, tag);
        assert!(verifies(&headers, ("POST", "example.com:8443", "/ring/me"), b"{}", name, &good), "{name}");
    }
}

#[test]
fn the_profile_of_rfc_9421_is_fixed() {
    let (id, url) = (id(), url());
    let headers = sign(unsigned(Profile::MessageHmac, &id, &url, b"{}"), &[hmac_key("k", 1)]).unwrap();
    let expected = "sig1=(\"@method\" \"@authority\" \"@path\" \"content-digest\" \"matm-delivery-id\");created=1614265330;\
                    expires=1614265630;nonce=\"nonce\";alg=\"hmac-sha256\";keyid=\"k\"";
    assert_eq!(get(&headers, "signature-input"), expected);
    assert!(headers.iter().all(|(name, _)| !name.starts_with("webhook-")));
}

#[test]
fn an_ed25519_signature_verifies_with_the_published_key() {
    let (id, url) = (id(), url());
    let (key, public) = ed25519_key("server");
    let headers = sign(unsigned(Profile::MessageEd25519, &id, &url, b"{}"), &[key]).unwrap();
    let good = |base: &[u8], signature: &[u8]| UnparsedPublicKey::new(&ED25519, &public).verify(base, signature).is_ok();
    assert!(verifies(&headers, ("POST", "example.com:8443", "/ring/me"), b"{}", "server", &good));
    assert!(get(&headers, "signature-input").contains(";alg=\"ed25519\";"));
}

#[test]
fn tampering_with_any_signed_component_fails() {
    let (id, url) = (id(), url());
    let (server, public) = ed25519_key("k");
    let ed25519 = |base: &[u8], signature: &[u8]| UnparsedPublicKey::new(&ED25519, &public).verify(base, signature).is_ok();
    let hmac = |base: &[u8], tag: &[u8]| is_hmac(&[1; 32], base, tag);
    let cases: [(Profile, SigningKey, &Verify<'_>); 2] =
        [(Profile::MessageHmac, hmac_key("k", 1), &hmac), (Profile::MessageEd25519, server, &ed25519)];
    for (profile, key, good) in cases {
        let headers = sign(unsigned(profile, &id, &url, b"{}"), &[key]).unwrap();
        let request = ("POST", "example.com:8443", "/ring/me");
        assert!(verifies(&headers, request, b"{}", "k", good));
        assert!(!verifies(&headers, ("PUT", request.1, request.2), b"{}", "k", good), "method");
        assert!(!verifies(&headers, (request.0, "example.org:8443", request.2), b"{}", "k", good), "authority");
        assert!(!verifies(&headers, (request.0, request.1, "/ring/you"), b"{}", "k", good), "path");
        assert!(!verifies(&headers, request, b"{ }", "k", good), "body");
        let replace = |header: &str, from: &str, to: &str| {
            let mut changed = headers.clone();
            let value = &mut changed.iter_mut().find(|(name, _)| *name == header).unwrap().1;
            assert!(value.contains(from), "{header} has {from}");
            *value = value.replacen(from, to, 1);
            changed
        };
        let other = WebhookId::of_item(HookId::new(Uuid::from_u128(9)), Seq::ZERO, EventId::new(Uuid::nil()));
        for (header, from, to) in [
            ("matm-delivery-id", id.as_str(), other.as_str()),
            ("signature-input", "created=1614265330", "created=1614265331"),
            ("signature-input", "expires=1614265630", "expires=1914265630"),
            ("signature-input", "nonce=\"nonce\"", "nonce=\"other\""),
            ("signature-input", " \"@path\"", ""),
            ("signature-input", "alg=\"", "alg=\"x"),
        ] {
            assert!(!verifies(&replace(header, from, to), request, b"{}", "k", good), "{header} {from}");
        }
        let forged = replace("content-digest", &content_digest(b"{}"), &content_digest(b"{ }"));
        assert!(!verifies(&forged, request, b"{ }", "k", good), "digest");
    }
}

#[test]
fn the_library_of_standard_webhooks_signs_alike() {
    let secret = Secret::mint().unwrap();
    let oracle = standardwebhooks::Webhook::new(&secret.reveal()).unwrap();
    let (id, url) = (id(), url());
    let keys = [SigningKey::Hmac(KeyId::parse("k").unwrap(), secret)];
    for body in ["", "{}", "{\"summary\":\"\u{1f600} \u{e4}.\"}"] {
        let headers = sign(unsigned(Profile::StandardWebhooks, &id, &url, body.as_bytes()), &keys).unwrap();
        assert_eq!(get(&headers, "webhook-signature"), oracle.sign(id.as_str(), 1_614_265_330, body.as_bytes()).unwrap());
    }
}

/// A receiver that uses a library for RFC 9421.
fn oracle_verifies(headers: &Headers, authority: &str, key: &impl VerifyingKey, label: &str) -> bool {
    let parsed = HttpSignatureHeaders::try_parse(get(headers, "signature"), get(headers, "signature-input")).unwrap();
    let signature = parsed.get(label).unwrap();
    let lines = [
        "\"@method\": POST".to_owned(),
        format!("\"@authority\": {authority}"),
        "\"@path\": /ring/me".to_owned(),
        format!("\"content-digest\": {}", get(headers, "content-digest")),
        format!("\"matm-delivery-id\": {}", get(headers, "matm-delivery-id")),
    ];
    let lines = lines.map(|line| HttpMessageComponent::try_from(line.as_str()).unwrap());
    let base = HttpSignatureBase::try_new(&lines, signature.signature_params()).unwrap();
    base.verify_signature_headers(key, signature).is_ok()
}

#[test]
fn a_library_for_rfc_9421_verifies_what_is_signed() {
    let (id, url) = (id(), url());
    let now = SystemClock::new().now();
    let unsigned = |profile| Unsigned { now, ..unsigned(profile, &id, &url, b"{}") };
    let headers = sign(unsigned(Profile::MessageHmac), &[hmac_key("new", 2), hmac_key("old", 1)]).unwrap();
    for (label, byte) in [("sig1", 2), ("sig2", 1)] {
        let key = SharedKey::from_base64(&AlgorithmName::HmacSha256, &STANDARD.encode([byte; 32])).unwrap();
        assert!(oracle_verifies(&headers, "example.com:8443", &key, label));
        assert!(!oracle_verifies(&headers, "example.org:8443", &key, label));
    }
    let (server, public) = ed25519_key("server");
    let headers = sign(unsigned(Profile::MessageEd25519), &[server]).unwrap();
    let key = PublicKey::from_bytes(&AlgorithmName::Ed25519, &public).unwrap();
    assert!(oracle_verifies(&headers, "example.com:8443", &key, "sig1"));
    assert!(!oracle_verifies(&headers, "example.org:8443", &key, "sig1"));
    let long_ago = Unsigned { now: Timestamp::from_micros(1_000_000), ..unsigned(Profile::MessageEd25519) };
    let (server, public) = ed25519_key("server");
    let key = PublicKey::from_bytes(&AlgorithmName::Ed25519, &public).unwrap();
    assert!(!oracle_verifies(&sign(long_ago, &[server]).unwrap(), "example.com:8443", &key, "sig1"), "expired");
}

#[test]
fn without_a_key_nothing_is_signed() {
    let (id, url) = (id(), url());
    for profile in PROFILES {
        assert!(sign(unsigned(profile, &id, &url, b"{}"), &[]).is_none());
    }
}

proptest! {
    #[test]
    fn any_other_body_id_or_time_has_another_signature(body in ".{0,40}", other in ".{0,40}", later in 1_i64..1_000_000) {
        let (id, url) = (id(), url());
        let keys = [hmac_key("k", 1)];
        let signature = |request: Unsigned<'_>| get(&sign(request, &keys).unwrap(), "webhook-signature").to_owned();
        let request = unsigned(Profile::StandardWebhooks, &id, &url, body.as_bytes());
        let signed = signature(request);
        if other != body {
            prop_assert_ne!(&signed, &signature(Unsigned { body: other.as_bytes(), ..request }));
        }
        let at = request.now.plus(Duration::from_secs(later.unsigned_abs()));
        prop_assert_ne!(&signed, &signature(Unsigned { now: at, ..request }));
        let other_id = WebhookId::fresh(HookId::new(Uuid::from_u128(1)), Uuid::from_u128(u128::from(later.unsigned_abs())));
        prop_assert_ne!(&signed, &signature(Unsigned { id: &other_id, ..request }));
    }
}
