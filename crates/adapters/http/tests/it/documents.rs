//! The documents as they are served.

use doorstep_http::{asyncapi, openapi};

use crate::support::World;

#[tokio::test]
async fn what_is_served_is_what_is_generated() {
    let world = World::new().await;
    let served = world.call("GET", "/v1/openapi.json", &[], b"").await;
    assert_eq!(served.header("content-type"), Some("application/json"));
    assert_eq!(served.expect(200), serde_json::to_value(openapi()).unwrap());
    assert_eq!(world.call("GET", "/v1/asyncapi.json", &[], b"").await.expect(200), asyncapi());
}
