//! What a store that fails looks like from outside.

use domain::StoreError;

use crate::support::World;

const EVENT: &str = r#"{"type":"a","channel":"support/general"}"#;

#[tokio::test]
async fn each_failure_of_the_store_has_its_code_and_says_when_to_come_back() {
    let world = World::new().await;
    for (error, code, seconds) in [
        (StoreError::Full, "storage_full", 30),
        (StoreError::Overloaded, "overloaded", 1),
        (StoreError::InDoubt, "in_doubt", 1),
        (StoreError::Unavailable, "unavailable", 1),
        (StoreError::Transient, "unavailable", 1),
    ] {
        world.memory.state().broken_writes = Some(error);
        let answer = world.post(&world.app, "/v1/events", EVENT).await;
        answer.expect_problem(503, code, None);
        assert_eq!(answer.header("retry-after"), Some(seconds.to_string().as_str()), "{code}");
    }
    world.memory.state().broken_writes = None;
    world.post(&world.app, "/v1/events", EVENT).await.expect(201);
}

#[tokio::test]
async fn a_fault_of_ours_says_nothing_of_the_inside() {
    let world = World::new().await;
    for error in [StoreError::Corrupt("row 17 of event_log".to_owned()), StoreError::Conflict("secret_index"), StoreError::RolledBack] {
        world.memory.state().broken_writes = Some(error);
        let answer = world.post(&world.app, "/v1/events", EVENT).await;
        let problem = answer.expect_problem(500, "internal", None).to_string();
        assert!(answer.header("retry-after").is_none());
        for inside in ["row", "event_log", "secret_index", "rolled", "corrupt"] {
            assert!(!problem.contains(inside), "{problem}");
        }
    }
}

#[tokio::test]
async fn administration_that_cannot_be_stored_says_so() {
    let world = World::new().await;
    world.memory.state().broken_writes = Some(StoreError::Full);
    world.post(&world.owner, "/v1/spaces", r#"{"id":"support"}"#).await.expect_problem(503, "storage_full", None);
}

#[tokio::test]
async fn a_corrupt_log_is_refused_and_never_served_shorter() {
    let world = World::new().await;
    world.memory.publish("{}");
    world.memory.state().broken_pages = Some(StoreError::Corrupt("row 1".to_owned()));
    let answer = world.get(&world.owner, "/v1/events?after=0").await;
    answer.expect_problem(500, "internal", None);
}
