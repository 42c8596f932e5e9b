//! Nobody's receiver holds up another's.

use std::time::Duration;

use hooks::OutboundError;

use crate::memory::SECOND;
use crate::receivers::{Does, until};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn one_hung_receiver_and_99_healthy_ones_all_99_within_a_second() {
    let world = World::new();
    for number in 0..100 {
        world.hook(&format!("agent{number}"), &format!("h{number}.example")).await;
    }
    world.receivers.does("h0.example", [Does::Hang]);
    world.start();
    world.pass(SECOND).await;
    for number in 0..100 {
        world.memory.publish(&format!("agent{number}"), "inbox").await;
    }
    until(SECOND, "all 99", || world.receivers.got().iter().filter(|got| got.host != "h0.example").count() == 99).await;
    assert_eq!(world.receivers.got_by("h0.example").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hook_with_many_rings_that_hang_never_delays_another_of_its_tenant() {
    let world = World::new();
    world.hook("alpha", "dead.example").await;
    world.hook("beta", "live.example").await;
    world.receivers.does("dead.example", [Does::Hang]);
    world.start();
    for _ in 0..200 {
        world.memory.publish("alpha", "inbox").await;
    }
    world.pass(Duration::from_secs(3)).await;
    world.memory.publish("beta", "inbox").await;
    until(SECOND, "the other rings", || world.receivers.got_by("live.example").len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_full_of_dead_receivers_never_delays_another_tenant() {
    let world = World::with(|settings| settings.concurrency = 12);
    for number in 0..100 {
        let host = format!("dead{number}.example");
        world.hook(&format!("agent{number}"), &host).await;
        world.receivers.does(&host, [Does::Hang]);
    }
    world.hook("other-omega", "live.example").await;
    world.start();
    for round in 0..3 {
        for number in 0..100 {
            world.memory.publish(&format!("agent{number}"), "inbox").await;
        }
        world.pass(Duration::from_secs(2)).await;
        world.memory.publish("other-omega", "inbox").await;
        until(SECOND, "the other tenant rings", || world.receivers.got_by("live.example").len() == round + 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_that_are_known_to_fail_leave_half_of_the_places_to_healthy_ones() {
    let world = World::new();
    for number in 0..40 {
        let host = format!("dead{number}.example");
        world.hook(&format!("agent{number}"), &host).await;
        world.receivers.does(&host, [Does::Fail(OutboundError::Connect), Does::Hang]);
        world.memory.publish(&format!("agent{number}"), "inbox").await;
    }
    world.hook("agent99", "live.example").await;
    world.start();
    // All of them have failed once; now they hang.
    world.pass(Duration::from_secs(2)).await;
    world.memory.publish("agent99", "inbox").await;
    until(SECOND, "the healthy one rings", || world.receivers.got_by("live.example").len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn one_host_is_called_by_at_most_so_many_hooks_at_once() {
    let world = World::with(|settings| settings.concurrency_per_host = 2);
    for number in 0..20 {
        world.hook(&format!("agent{number}"), "same.example").await;
    }
    world.receivers.does("same.example", [Does::AnswerLater(Duration::from_millis(100), 204)]);
    world.start();
    for number in 0..20 {
        world.memory.publish(&format!("agent{number}"), "inbox").await;
    }
    until(5 * SECOND, "all rang", || world.receivers.got().len() == 20).await;
    assert_eq!(world.receivers.most_open.lock().unwrap()["same.example"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_burst_rings_for_every_item_and_each_once() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.start();
    for _ in 0..300 {
        world.memory.publish("alpha", "inbox").await;
    }
    until(5 * SECOND, "all rang", || world.rings(made.hook.id).is_empty() && world.receivers.got().len() >= 300).await;
    let ids: std::collections::BTreeSet<String> = world.receivers.got().iter().map(|got| got.id().to_owned()).collect();
    assert_eq!((ids.len(), world.receivers.got().len()), (300, 300));
}
