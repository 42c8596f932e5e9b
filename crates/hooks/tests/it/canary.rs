//! Nothing of a payload, a URL or a secret where it does not belong.

use proptest::prelude::*;
use serde_json::json;

use crate::memory::SECOND;
use crate::receivers::until;
use crate::world::World;

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
