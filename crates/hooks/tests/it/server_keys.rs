//! The server's own keys.

use std::time::Duration;

use crate::memory::SECOND;
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_next_key_is_published_long_before_it_signs_and_the_old_one_for_a_while_after() {
    let world = World::new();
    let first = world.hooks.keys().await.unwrap();
    assert_eq!(first.len(), 2);
    assert_eq!(first[1].signs_from.since(first[0].signs_from), Duration::from_hours(90 * 24));
    assert_eq!(world.hooks.keys().await.unwrap(), first, "made once");
    world.pass(Duration::from_hours(90 * 24) + SECOND).await;
    let second = world.hooks.keys().await.unwrap();
    assert_eq!(second.len(), 3);
    assert_eq!(second[..2], first[..]);
    world.pass(Duration::from_hours(24)).await;
    let third = world.hooks.keys().await.unwrap();
    assert_eq!(third, second[1..]);
}

#[tokio::test(start_paused = true)]
async fn after_a_long_silence_there_is_a_key_that_signs_and_a_next_one() {
    let world = World::new();
    let first = world.hooks.keys().await.unwrap();
    world.pass(Duration::from_hours(400 * 24)).await;
    let later = world.hooks.keys().await.unwrap();
    assert_eq!(later[0], first[1]);
    assert_eq!(later.len(), 2);
    assert!(later[1].signs_from > first[1].signs_from);
}
