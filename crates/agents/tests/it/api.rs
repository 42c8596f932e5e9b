//! The REST use cases (seed 004, design notes 8 to 12; design/stream.md, "REST").

use std::time::Duration;

use agents::{AckRefused, ConsumerError, ConsumerState, Consumers, Holder, InFlight, Poll, RestWindow, ResyncReason, Settings};
use authz::{Denied, DeniedReason};
use domain::PrincipalId;

use crate::world::{NOW, World, epoch, key, name, seq, session};

/// A world whose agent alpha has the consumer `default`, held by polls, with 40 acknowledged and 42, 43 on their way.
async fn polled() -> World {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    world.service.take(&alpha, &name("default"), Holder::Rest).await.unwrap();
    let mut state = world.cursors.state();
    state.head = seq(50);
    let row = state.rows.get_mut(&key("alpha", "default")).unwrap();
    let in_flight = [42, 43, 49].map(|number| InFlight { seq: seq(number), dispatched_at: NOW }).to_vec();
    row.window = RestWindow { read: seq(45), highest_sent: seq(49), in_flight, ..RestWindow::default() };
    drop(state);
    world
}

fn is_epoch_changed<T>(answer: Result<T, ConsumerError>) -> bool {
    let expected = (ResyncReason::EpochChanged, seq(41), epoch(1), seq(3));
    matches!(answer, Err(ConsumerError::Resync { reason, head, epoch, floor }) if (reason, head, epoch, floor) == expected)
}

#[tokio::test]
async fn a_consumer_that_never_connected_is_unknown_and_asking_makes_no_row() {
    let world = polled().await;
    let beta = world.caller("beta").await;
    assert!(
        matches!(world.api.state(&beta, &name("default")).await, Err(ConsumerError::Unknown)),
        "another agent's consumer is none of its own"
    );
    assert!(matches!(world.api.ack(&beta, &name("default"), seq(1), None).await, Err(ConsumerError::Unknown)));
    assert_eq!(world.cursors.state().rows.len(), 1);
}

#[tokio::test]
async fn the_state_is_read_and_nothing_is_taken_over() {
    let world = polled().await;
    let alpha = world.caller("alpha").await;
    let state = world.api.state(&alpha, &name("default")).await.unwrap();
    let expected = ConsumerState {
        consumer: name("default"),
        acked: seq(40),
        head: seq(50),
        lag: 10,
        in_flight: Some(2),
        holder: Some(Holder::Rest),
        updated_at: NOW,
    };
    assert_eq!(state, expected, "49 waits to be dispatched again and is not on its way");
    assert_eq!(world.cursors.state().takes, 1);
    world.cursors.state().rows.get_mut(&key("alpha", "default")).unwrap().acked = seq(42);
    assert_eq!(world.api.state(&alpha, &name("default")).await.unwrap().in_flight, Some(1), "what is acknowledged is not on its way");
}

#[tokio::test]
async fn what_is_on_its_way_is_not_told_while_a_gateway_session_holds_the_consumer() {
    let world = polled().await;
    let alpha = world.caller("alpha").await;
    world.service.take(&alpha, &name("default"), session(1)).await.unwrap();
    let state = world.api.state(&alpha, &name("default")).await.unwrap();
    assert_eq!((state.in_flight, state.holder), (None, Some(session(1))));
}

#[tokio::test]
async fn an_acknowledgement_is_stored_at_once_whoever_holds_the_consumer_and_delivery_is_told() {
    let world = polled().await;
    let alpha = world.caller("alpha").await;
    world.service.take(&alpha, &name("default"), session(1)).await.unwrap();
    let state = world.api.ack(&alpha, &name("default"), seq(43), Some(epoch(1))).await.unwrap();
    assert_eq!((state.acked, state.lag, state.holder), (seq(43), 7, Some(session(1))));
    assert_eq!(world.cursors.state().rows[&key("alpha", "default")].acked, seq(43));
    assert_eq!(*world.feed.acked.lock().unwrap(), [(key("alpha", "default"), 43)]);
    assert_eq!(world.cursors.state().takes, 2, "nothing was taken over");
}

#[tokio::test]
async fn an_acknowledgement_at_or_below_the_stored_one_changes_nothing_and_one_above_the_head_is_refused() {
    let world = polled().await;
    let alpha = world.caller("alpha").await;
    for below in [0, 39, 40] {
        assert_eq!(world.api.ack(&alpha, &name("default"), seq(below), None).await.unwrap().acked, seq(40));
    }
    let refused = world.api.ack(&alpha, &name("default"), seq(51), None).await;
    assert!(matches!(refused, Err(ConsumerError::Ack(AckRefused::AboveHead))), "{refused:?}");
    assert_eq!(world.cursors.state().acks, 0, "none of them is a write");
    assert_eq!(world.api.ack(&alpha, &name("default"), seq(50), None).await.unwrap().acked, seq(50), "past what was dispatched is allowed");
}

#[tokio::test]
async fn an_acknowledgement_on_a_row_of_another_epoch_is_refused_with_and_without_the_clients_epoch() {
    let world = polled().await;
    let alpha = world.caller("alpha").await;
    world.cursors.state().epoch = epoch(2);
    for said in [None, Some(epoch(1)), Some(epoch(2))] {
        assert!(is_epoch_changed(world.api.ack(&alpha, &name("default"), seq(45), said).await), "{said:?}");
    }
    assert_eq!(world.cursors.state().rows[&key("alpha", "default")].acked, seq(40));
    assert!(world.feed.acked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_acknowledgement_of_a_client_in_another_epoch_is_refused() {
    let world = polled().await;
    let alpha = world.caller("alpha").await;
    assert!(is_epoch_changed(world.api.ack(&alpha, &name("default"), seq(45), Some(epoch(9))).await));
    assert!(is_epoch_changed(world.api.ack(&alpha, &name("default"), seq(1), Some(epoch(9))).await), "also when it would change nothing");
}

#[tokio::test]
async fn a_history_replaced_while_an_acknowledgement_is_stored_refuses_it() {
    let world = polled().await;
    let alpha = world.caller("alpha").await;
    world.cursors.state().next_epoch = Some(epoch(2));
    assert!(is_epoch_changed(world.api.ack(&alpha, &name("default"), seq(45), None).await));
    assert_eq!(world.cursors.state().rows[&key("alpha", "default")].acked, seq(40));
    assert!(world.feed.acked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_poll_asks_delivery_with_its_bounds_applied() {
    let world = World::with(Settings { max_inflight_events: 20, poll_wait_max: Duration::from_secs(5), ..Settings::default() });
    let alpha = world.caller("alpha").await;
    let asked = [(None, 1), (Some(7), 5), (Some(20), 60), (Some(21), 0)];
    for (limit, wait) in asked {
        let poll = Poll { name: name("n"), limit, wait: Duration::from_secs(wait), after: Some(seq(3)), epoch: Some(epoch(1)) };
        world.api.poll(&alpha, poll).await.unwrap();
    }
    let polls = world.feed.polls.lock().unwrap();
    let bounds: Vec<_> = polls.iter().map(|poll| (poll.limit, poll.wait.as_secs())).collect();
    assert_eq!(bounds, [(20, 1), (7, 5), (20, 5), (20, 0)]);
    assert!(polls.iter().all(|poll| poll.name == name("n") && poll.after == Some(seq(3)) && poll.epoch == Some(epoch(1))));
}

#[tokio::test]
async fn a_poll_of_a_client_in_another_epoch_is_refused_before_delivery_is_asked() {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    assert!(is_epoch_changed(world.api.poll(&alpha, Poll { epoch: Some(epoch(9)), ..Poll::default() }).await));
    assert!(world.feed.polls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_operator_lists_the_consumers_of_an_agent_by_name() {
    let world = polled().await;
    let (alpha, alex) = (world.caller("alpha").await, world.caller("alex").await);
    for consumer in ["zeta", "beta"] {
        world.service.take(&alpha, &name(consumer), session(1)).await.unwrap();
    }
    let agent = PrincipalId::parse("alpha").unwrap();
    let names = |listed: Vec<ConsumerState>| listed.into_iter().map(|state| (state.consumer.to_string(), state.lag)).collect::<Vec<_>>();
    let first = world.api.list(&alex, &agent, None, 2).await.unwrap();
    assert_eq!(names(first), [("beta".to_owned(), 0), ("default".to_owned(), 10)]);
    let second = world.api.list(&alex, &agent, Some(&name("default")), 2).await.unwrap();
    assert_eq!(names(second), [("zeta".to_owned(), 0)]);
}

#[tokio::test]
async fn there_are_no_consumers_of_people_strangers_or_for_those_who_may_not_know() {
    let world = polled().await;
    let (alex, sam) = (world.caller("alex").await, world.caller("sam").await);
    for id in ["sam", "nobody"] {
        let listed = world.api.list(&alex, &PrincipalId::parse(id).unwrap(), None, 9).await;
        assert!(matches!(listed, Err(ConsumerError::Denied(Denied::NotFound))), "{id}: {listed:?}");
    }
    let listed = world.api.list(&sam, &PrincipalId::parse("alpha").unwrap(), None, 9).await;
    assert!(
        matches!(listed, Err(ConsumerError::Denied(Denied::NotFound | Denied::Forbidden(DeniedReason::PermissionMissing)))),
        "{listed:?}"
    );
}
