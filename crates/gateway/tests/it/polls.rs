//! REST polls of consumers (design/stream.md, "REST window").

use std::time::Duration;

use agents::{ConsumerError, ConsumerFeed, CursorStore, FeedPage, Holder, PollRequest, ResyncReason};
use domain::{ConsumerName, SyncEpoch};
use protocol::CloseCode;
use serde_json::Value;
use tokio::time::Instant;

use crate::support::{Call, HIDDEN, World, WorldSettings, agent, key, seq};

const SECOND: Duration = Duration::from_secs(1);
const ACK_TIMEOUT: Duration = Duration::from_secs(30);

fn request() -> PollRequest {
    PollRequest { name: ConsumerName::default(), limit: 100, wait: Duration::ZERO, after: None, epoch: None }
}

fn after(position: u64) -> PollRequest {
    PollRequest { after: Some(seq(position)), ..request() }
}

fn waiting(wait: Duration) -> PollRequest {
    PollRequest { wait, ..request() }
}

fn events(page: &FeedPage) -> Vec<(u64, bool)> {
    let read = |event: &bytes::Bytes| serde_json::from_slice::<Value>(event).unwrap();
    page.events.iter().map(read).map(|event| (event["seq"].as_u64().unwrap(), event.get("redelivered").is_some())).collect()
}

fn fresh(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, bool)> {
    numbers.into_iter().map(|number| (number, false)).collect()
}

impl World {
    /// Acknowledges as `ackAgentEvents` does.
    async fn ack_over_rest(&self, position: u64) {
        self.memory.ack(&key("default"), seq(position)).await.unwrap();
        self.feed.acked(&key("default"), seq(position));
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_poll_starts_at_the_head() {
    let world = World::new();
    world.publish_many(3);
    let page = world.poll(request()).await.unwrap();
    assert_eq!((events(&page), page.next_cursor, page.head, page.unproven), (vec![], seq(3), seq(3), false));
    assert_eq!((world.memory.acked(&key("default")), world.memory.holder(&key("default"))), (Some(3), Some(Holder::Rest)));
    world.publish();
    assert_eq!(events(&world.poll(after(3)).await.unwrap()), fresh([4]));
}

#[tokio::test(start_paused = true)]
async fn polls_continue_after_a_proven_page_and_dispatch_nothing_after_an_unproven_one() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    world.publish_many(5);
    let two = PollRequest { limit: 2, ..after(0) };
    assert_eq!(events(&world.poll(two.clone()).await.unwrap()), fresh([1, 2]));
    // The response is lost: the client asks as before, and a repeat inside the timeout would be a repeat.
    let page = world.poll(request()).await.unwrap();
    assert_eq!((events(&page), page.next_cursor, page.unproven), (vec![], seq(0), true));
    assert_eq!(events(&world.poll(PollRequest { after: Some(seq(2)), ..two }).await.unwrap()), fresh([3, 4]));
    world.ack_over_rest(4).await;
    assert_eq!(events(&world.poll(request()).await.unwrap()), fresh([5]));
}

#[tokio::test(start_paused = true)]
async fn inside_the_timeout_nothing_comes_again_and_after_it_exactly_what_was_on_the_way_with_the_flag() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    world.publish_many(2);
    assert_eq!(events(&world.poll(after(0)).await.unwrap()), fresh([1, 2]));
    tokio::time::sleep(ACK_TIMEOUT.saturating_sub(SECOND)).await;
    assert_eq!(events(&world.poll(request()).await.unwrap()), []);
    world.publish();
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(events(&world.poll(request()).await.unwrap()), [(1, true), (2, true), (3, false)]);
    let state = world.memory.state();
    assert!(state.events.iter().all(|event| !String::from_utf8_lossy(&event.body).contains("redelivered")));
}

#[tokio::test(start_paused = true)]
async fn every_page_is_stored_before_it_is_answered() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    world.publish();
    world.memory.take_calls();
    let page = world.poll(after(0)).await.unwrap();
    assert_eq!(events(&page), fresh([1]));
    assert_eq!(world.memory.take_calls(), [Call::Take(Holder::Rest), Call::Window]);
    let in_flight = world.memory.state().rows[&key("default")].window.in_flight.len();
    assert_eq!(in_flight, 1);
}

#[tokio::test(start_paused = true)]
async fn at_most_max_inflight_events_are_on_their_way() {
    let agents = agents::Settings { max_inflight_events: 3, ..agents::Settings::default() };
    let world = World::with(WorldSettings { agents, ..WorldSettings::default() });
    world.poll(request()).await.unwrap();
    world.publish_many(9);
    assert_eq!(events(&world.poll(after(0)).await.unwrap()), fresh([1, 2, 3]));
    assert_eq!(events(&world.poll(after(3)).await.unwrap()), []);
    world.ack_over_rest(2).await;
    assert_eq!(events(&world.poll(after(3)).await.unwrap()), fresh([4, 5]));
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_seen_is_skipped_and_advances_the_reader() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    world.publish_to(HIDDEN);
    world.publish();
    world.publish_to(HIDDEN);
    let page = world.poll(after(0)).await.unwrap();
    assert_eq!((events(&page), page.next_cursor), (fresh([2]), seq(3)));
    world.ack_over_rest(3).await;
    world.revoke_grant(&agent());
    world.publish();
    let page = world.poll(request()).await.unwrap();
    assert_eq!((events(&page), page.next_cursor), (fresh([4]), seq(5)), "only the report of the change");
}

#[tokio::test(start_paused = true)]
async fn rights_are_those_of_the_moment_of_the_redelivery() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    world.publish();
    assert_eq!(events(&world.poll(after(0)).await.unwrap()), fresh([1]));
    world.revoke_grant(&agent());
    tokio::time::sleep(ACK_TIMEOUT).await;
    assert_eq!(events(&world.poll(request()).await.unwrap()), fresh([2]));
}

#[tokio::test(start_paused = true)]
async fn a_poll_takes_the_consumer_over_from_a_gateway_session() {
    let agents = agents::Settings { ack_persist_interval: Duration::from_hours(1), ..agents::Settings::default() };
    let world = World::with(WorldSettings { agents, ..WorldSettings::default() });
    let (mut peer, ready) = world.consume().await;
    world.publish_many(2);
    peer.dispatches(2).await;
    peer.ack(1);
    world.settle().await;
    assert_eq!(events(&world.poll(request()).await.unwrap()), fresh([2]));
    assert_eq!(peer.closed().await, CloseCode::ConsumerReplaced);
    assert_eq!(world.memory.acked(&key("default")), Some(1), "what it acknowledged was stored before");
    let mut resumed = world.resume(&world.agent_token, &ready["gateway_session_id"]).await;
    assert_eq!(resumed.closed().await, CloseCode::UnknownSession);
}

#[tokio::test(start_paused = true)]
async fn the_head_and_acknowledgements_take_nothing_over() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish();
    peer.dispatches(1).await;
    let head = world.feed.head(&key("default").tenant).await.unwrap();
    assert_eq!(head.head, seq(1));
    world.ack_over_rest(1).await;
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([2]));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_poll_answers_as_soon_as_there_is_an_admissible_event() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    let before = Instant::now();
    let (page, ()) = tokio::join!(world.poll(waiting(30 * SECOND)), async {
        tokio::time::sleep(3 * SECOND).await;
        world.publish_to(HIDDEN);
        tokio::time::sleep(3 * SECOND).await;
        world.publish();
    });
    let page = page.unwrap();
    assert_eq!((events(&page), page.next_cursor), (fresh([2]), seq(2)));
    assert_eq!(before.elapsed().as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_poll_that_skipped_something_tells_and_stores_its_position() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    for start in [None, Some(seq(0))] {
        let before = Instant::now();
        let (page, position) = tokio::join!(world.poll(PollRequest { after: start, ..waiting(5 * SECOND) }), async {
            tokio::time::sleep(SECOND).await;
            world.publish_to(HIDDEN);
            tokio::time::sleep(SECOND).await;
            world.publish_to(HIDDEN)
        });
        let page = page.unwrap();
        assert_eq!((events(&page), page.next_cursor.get(), page.unproven), (vec![], position, false));
        assert_eq!(before.elapsed().as_secs(), 5);
        assert_eq!(world.memory.state().rows[&key("default")].window.read.get(), position);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_misses_no_event_between_its_look_and_its_wait() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    for round in 1..=200_u64 {
        let before = Instant::now();
        let (page, _) = tokio::join!(world.poll(PollRequest { after: Some(seq(round - 1)), ..waiting(30 * SECOND) }), async {
            // Published after some or all steps of the poll's first look.
            for _ in 0..round % 20 {
                tokio::task::yield_now().await;
            }
            world.publish()
        });
        assert_eq!(events(&page.unwrap()), fresh([round]));
        assert!(before.elapsed() < SECOND, "round {round} waited for the end");
        world.ack_over_rest(round).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_poll_answers_empty_at_the_end_of_its_wait() {
    let world = World::new();
    world.publish();
    let before = Instant::now();
    let page = world.poll(waiting(7 * SECOND)).await.unwrap();
    assert_eq!((events(&page), page.next_cursor, before.elapsed().as_secs()), (vec![], seq(1), 7));
    assert_eq!(world.gateway.metrics().waiting_polls.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_ends_the_wait_of_an_unproven_poll() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    world.publish_many(2);
    world.poll(PollRequest { limit: 1, ..after(0) }).await.unwrap();
    let before = Instant::now();
    let (page, ()) = tokio::join!(world.poll(waiting(20 * SECOND)), async {
        tokio::time::sleep(2 * SECOND).await;
        world.ack_over_rest(1).await;
    });
    assert_eq!((events(&page.unwrap()), before.elapsed().as_secs()), (fresh([2]), 2));
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_the_deadline_of_the_oldest_event_on_its_way() {
    let agents = agents::Settings { ack_timeout: 5 * SECOND, ..agents::Settings::default() };
    let world = World::with(WorldSettings { agents, ..WorldSettings::default() });
    world.poll(request()).await.unwrap();
    world.publish();
    world.poll(after(0)).await.unwrap();
    let before = Instant::now();
    let page = world.poll(PollRequest { after: Some(seq(1)), ..waiting(30 * SECOND) }).await.unwrap();
    assert_eq!((events(&page), before.elapsed().as_secs()), (vec![(1, true)], 5));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_poll_holds_no_lock_and_gives_way_to_a_gateway_session() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    let before = Instant::now();
    let (page, peer) = tokio::join!(world.poll(waiting(30 * SECOND)), async {
        tokio::time::sleep(SECOND).await;
        world.consume().await.0
    });
    let page = page.unwrap();
    assert_eq!((events(&page), page.next_cursor, page.unproven), (vec![], seq(0), true));
    assert_eq!(before.elapsed().as_secs(), 1);
    let mut peer = peer;
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([1]));
}

#[tokio::test(start_paused = true)]
async fn two_polls_at_once_never_get_the_same_event() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    for round in 0..50_u64 {
        let (one, two, ()) = tokio::join!(world.poll(waiting(2 * SECOND)), world.poll(waiting(2 * SECOND)), async {
            tokio::time::sleep(SECOND).await;
            world.publish_many(3);
        });
        let mut seen = [events(&one.unwrap()), events(&two.unwrap())].concat();
        seen.sort_unstable();
        let first = round * 3 + 1;
        assert_eq!(seen, fresh(first..first + 3));
        world.ack_over_rest(first + 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn retention_is_gone_once_and_moves_the_cursor_to_the_head() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    world.publish_many(9);
    world.retire(6);
    match world.poll(request()).await {
        Err(ConsumerError::Resync { reason: ResyncReason::Retention, head, floor, .. }) => assert_eq!((head, floor), (seq(9), seq(7))),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.memory.acked(&key("default")), Some(9));
    let page = world.poll(request()).await.unwrap();
    assert_eq!((events(&page), page.next_cursor), (vec![], seq(9)));
    world.publish();
    assert_eq!(events(&world.poll(after(9)).await.unwrap()), fresh([10]));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_above_the_head_is_gone_once_and_moves_to_the_head() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    world.publish_many(2);
    world.memory.state().rows.get_mut(&key("default")).unwrap().acked = seq(8);
    assert!(
        matches!(world.poll(request()).await, Err(ConsumerError::Resync { reason: ResyncReason::CursorAhead, head, .. }) if head == seq(2))
    );
    assert_eq!(world.memory.acked(&key("default")), Some(2));
    world.poll(request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_epoch_is_gone_and_takes_nothing() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    let foreign = PollRequest { epoch: Some(SyncEpoch::new(uuid::Uuid::from_u128(9))), ..request() };
    assert!(matches!(world.poll(foreign).await, Err(ConsumerError::Resync { reason: ResyncReason::EpochChanged, .. })));
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([1]));
}

#[tokio::test(start_paused = true)]
async fn an_after_above_the_head_is_refused() {
    let world = World::new();
    world.publish();
    assert!(matches!(world.poll(after(2)).await, Err(ConsumerError::AfterAboveHead)));
}

#[tokio::test(start_paused = true)]
async fn a_person_may_not_poll_and_makes_no_row() {
    let world = World::new();
    let caller = world.caller(&world.person_token).await;
    let refused = world.feed.poll(&caller, request()).await;
    assert!(
        matches!(refused, Err(ConsumerError::Denied(authz::Denied::Forbidden(authz::DeniedReason::SubjectKindNotAllowed)))),
        "{refused:?}"
    );
    assert!(world.memory.state().rows.is_empty());
}

#[tokio::test(start_paused = true)]
async fn draining_ends_waiting_polls_and_refuses_new_ones() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    let before = Instant::now();
    let (page, ()) = tokio::join!(world.poll(waiting(30 * SECOND)), async {
        tokio::time::sleep(SECOND).await;
        world.gateway.drain();
    });
    assert_eq!((events(&page.unwrap()), before.elapsed().as_secs()), (vec![], 1));
    assert!(matches!(world.poll(request()).await, Err(ConsumerError::ShuttingDown)));
}

#[tokio::test(start_paused = true)]
async fn a_poll_whose_caller_loses_its_standing_ends() {
    let world = World::new();
    world.poll(request()).await.unwrap();
    let before = Instant::now();
    let (page, ()) = tokio::join!(world.poll(waiting(30 * SECOND)), async {
        tokio::time::sleep(SECOND).await;
        world.disable(&agent());
    });
    assert!(matches!(page, Err(ConsumerError::Unauthenticated)), "{page:?}");
    assert_eq!(before.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_during_the_take_leaves_holder_and_session_in_agreement() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    let permits = world.memory.gate.available_permits();
    world.memory.gate.forget_permits(permits);
    assert!(tokio::time::timeout(SECOND, world.poll(request())).await.is_err());
    peer.silence(SECOND).await;
    world.memory.gate.add_permits(permits);
    assert_eq!(peer.closed().await, CloseCode::ConsumerReplaced);
    assert_eq!(world.memory.holder(&key("default")), Some(Holder::Rest));
}

#[tokio::test(start_paused = true)]
async fn an_event_larger_than_a_page_is_delivered_alone() {
    let gateway = doorstep_gateway::Settings { catchup_page_bytes: 10, ..doorstep_gateway::Settings::default() };
    let world = World::with(WorldSettings { gateway, ..WorldSettings::default() });
    world.poll(request()).await.unwrap();
    world.publish_many(3);
    for number in 1..=3 {
        let page = world.poll(after(number - 1)).await.unwrap();
        assert_eq!((events(&page), page.next_cursor), (fresh([number]), seq(number)));
        world.ack_over_rest(number).await;
    }
}
