//! Nothing of a payload, a URL or a secret where it does not belong.

use hooks::{AuthMode, KeyId, NewCallback};
use proptest::prelude::*;
use serde_json::json;

use crate::memory::SECOND;
use crate::receivers::until;
use crate::world::{World, url};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_body_carries_a_field_of_the_payload(names in prop::collection::btree_set("[a-z]{3,12}", 1..6), values in prop::collection::vec("[A-Z0-9]{8,20}", 6)) {
        let payload: serde_json::Map<String, serde_json::Value> =
            names.iter().zip(&values).map(|(name, value)| (format!("canary_{name}"), json!(format!("CANARY_{value}")))).collect();
        let payload = serde_json::Value::Object(payload).to_string();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let bodies = runtime.block_on(async {
            let world = World::new();
            world.hook("alpha", "a.example").await;
            world.start();
            let event = world.memory.publish_item("alpha", "inbox", "one line", &payload).await;
            until(2 * SECOND, "it rang", || world.receivers.got().len() == 1).await;
            world.memory.requeue("alpha", event).await;
            world.memory.resume("alpha", None).await;
            until(4 * SECOND, "all rang", || world.receivers.got().iter().any(|got| got.json()["reason"] == "backlog")).await;
            world.receivers.got()
        });
        prop_assert!(bodies.len() >= 2);
        for got in bodies {
            let text = String::from_utf8(got.body.to_vec()).unwrap();
            prop_assert!(!text.to_ascii_lowercase().contains("canary"), "{}", text);
            prop_assert!(text.len() <= 4_096);
            let expected = ["type", "reason", "todo_id", "queue", "kind", "source", "summary", "endpoint", "attempt", "created_at"];
            prop_assert!(got.json().as_object().unwrap().keys().all(|member| expected.contains(&member.as_str())));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_debug_output_shows_a_url_or_a_secret() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.memory.publish("alpha", "inbox").await;
    world.dispatch().await;
    let state = world.memory.state();
    let text = format!("{made:?} {:?} {:?} {:?} {:?}", state.hooks, state.keys, state.deliveries, world.hooks);
    assert!(text.contains("a.example") && !text.contains("QUERY_CANARY") && !text.contains("/ring"), "{text}");
    assert!(!text.contains(made.secret.reveal().as_str()) && !text.contains(&format!("{:?}", made.secret.bytes())));
}

#[tokio::test(start_paused = true)]
async fn every_header_is_ours_whatever_users_say() {
    const FORGED: &str = "x\r\nwebhook-id: msg_forged\r\nwebhook-signature: v1,forged\r\n\r\n{}";
    let standard = ["content-type", "user-agent", "webhook-id", "webhook-signature", "webhook-timestamp"];
    let matm = ["content-digest", "matm-delivery-id", "matm-key-id", "matm-nonce", "matm-timestamp"];
    let signed = ["content-type", "signature", "signature-input", "user-agent"];
    for (auth_mode, expected) in [
        (None, standard.to_vec()),
        (Some(AuthMode::HmacSha256), [&standard[..], &matm[..]].concat()),
        (Some(AuthMode::HttpMessageSignatures), [&signed[..], &matm[..]].concat()),
    ] {
        let world = World::new();
        let alpha = world.caller("alpha").await;
        match auth_mode {
            None => drop(world.hook("alpha", "a.example").await),
            Some(auth_mode) => {
                // The one header value that users choose.
                let key = Some(KeyId::parse("webhook-id").unwrap());
                let (url, public_key, max_rate_per_minute, ignore_presence) = (url("a.example"), None, None, false);
                let new = NewCallback { url, auth_mode, key, public_key, max_rate_per_minute, ignore_presence };
                world.hooks.register_callback(&alpha, new).await.unwrap();
            }
        }
        world.start();
        world.memory.publish_item("alpha", "inbox", FORGED, r#"{"webhook-id":"msg_forged"}"#).await;
        until(5 * SECOND, "it is called", || !world.receivers.got().is_empty()).await;
        let got = world.receivers.got().remove(0);
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(got.headers.keys().map(String::as_str).collect::<Vec<_>>(), expected);
        assert!(got.headers.values().all(|value| !value.contains("forged") && !value.chars().any(char::is_control)), "{:?}", got.headers);
    }
}
