//! Applications that publish in their own transactions of the database.

use serde_json::{Value, json};
use testkit::{Peer, eventually};

use super::fleet::Fleet;
use crate::inbox::claim;

fn call(event: &Value) -> String {
    format!("SELECT public.doorstep_publish('default', '{event}'::jsonb)")
}

async fn numbers(fleet: &Fleet, node: usize) -> Vec<u64> {
    let page = fleet.owner(node).get("/v1/events?after=0&limit=1000").await.expect(200);
    let orders = page["events"].as_array().unwrap().iter().filter(|event| event["type"] == "order.placed");
    orders.map(|event| event["payload"]["order"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn rows_and_events_of_an_application_are_committed_together_or_not_at_all() {
    let fleet = Fleet::of(2, &[]).await;
    let database = fleet.database();
    // The application's own schema, and a role that may publish.
    database.run("CREATE TABLE public.orders (id int PRIMARY KEY)").await;
    let mut follower = Peer::consumer(fleet.url(1), fleet.cast.alpha.token(), "default").await;
    let order = |number: u64| json!({"type": "order.placed", "channel": "support/general", "recipients": [{"kind": "agent", "id": "alpha"}], "payload": {"order": number}});
    database.run(&format!("BEGIN; INSERT INTO public.orders VALUES (1); {}; COMMIT", call(&order(1)))).await;
    database.run(&format!("BEGIN; INSERT INTO public.orders VALUES (2); {}; ROLLBACK", call(&order(2)))).await;
    database.run(&format!("BEGIN; INSERT INTO public.orders VALUES (3); {}; COMMIT", call(&order(3)))).await;
    let events = follower.dispatched(2).await;
    for (number, event) in [1, 3].into_iter().zip(&events) {
        assert_eq!((&event["type"], &event["payload"]["order"]), (&json!("order.placed"), &json!(number)));
        assert_eq!(event["actor"], json!({"kind": "app", "id": "postgres"}));
    }
    assert_eq!(numbers(&fleet, 0).await, [1, 3]);
    assert_eq!(database.number("SELECT count(*) FROM public.orders").await, 2);
    let claims = claim(&fleet.cast_at(0).alpha, json!({"limit": 9})).await;
    assert_eq!(claims.len(), 2, "an item for each event");
}

#[tokio::test]
async fn what_cannot_be_appended_is_listed_as_failed_and_blocks_nobody() {
    let fleet = Fleet::of(2, &[]).await;
    let database = fleet.database();
    let keyed = |number: u64| json!({"type": "order.placed", "channel": "support/general", "deduplication_key": "one", "payload": {"order": number}});
    let plain = json!({"type": "order.placed", "channel": "support/general", "payload": {"order": 3}});
    database.run(&format!("BEGIN; {}; {}; {}; COMMIT", call(&keyed(1)), call(&keyed(2)), call(&plain))).await;
    eventually("what can be appended is", async || (numbers(&fleet, 1).await == [1, 3]).then_some(())).await;
    for node in 0..2 {
        let listed = fleet.owner(node).get("/v1/events/staged").await.expect(200);
        let failed: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| (&item["state"], &item["deduplication_key"])).collect();
        assert_eq!(failed, [(&json!("failed"), &json!("one"))]);
    }
}
