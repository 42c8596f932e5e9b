//! Signals: level-triggered, silent when asked to be, and repeated while something waits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use domain::{Audience, Clock, Event, EventId, EventOrigin, EventType, QueueName, Seq};
use inbox::{AckResult, InboxError, PresenceChange, Signal, SignalStream, Subscribe};
use tokio::time::{Instant, advance, timeout};
use uuid::Uuid;

use crate::memory::{New, epoch, tenant};
use crate::world::{SECOND, World, agent, next, seq, session, waiting};

const MINUTE: Duration = Duration::from_mins(1);

async fn open(world: &World, after: Option<Seq>) -> SignalStream {
    world.inbox.signals(&world.alpha, None, after).await.unwrap()
}

/// The next signal, which comes without any time passing.
async fn at_once(stream: &mut SignalStream) -> Signal {
    let start = Instant::now();
    let signal = timeout(Duration::from_hours(24), stream.next()).await.expect("it rings").expect("the stream goes on");
    assert_eq!(start.elapsed(), Duration::ZERO);
    signal
}

async fn silent_for(stream: &mut SignalStream, time: Duration) {
    assert!(timeout(time, stream.next()).await.is_err(), "it rings");
}

#[tokio::test(start_paused = true)]
async fn what_waits_rings_at_once_and_news_ring_again() {
    let world = World::new().await;
    world.publish_many(3).await;
    let mut stream = open(&world, None).await;
    let signal = at_once(&mut stream).await;
    assert_eq!((signal.tenant, signal.recipient, signal.epoch), (tenant(), agent("alpha"), epoch()));
    assert_eq!((signal.head, signal.unacked, signal.resync), (seq(3), 3, false));
    silent_for(&mut stream, MINUTE).await;
    world.publish_many(2).await;
    let signal = at_once(&mut stream).await;
    assert_eq!((signal.head, signal.unacked), (seq(5), 5), "two publishes, one ring");
    silent_for(&mut stream, MINUTE).await;
    assert_eq!(world.inbox.metrics().signals.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_rings_for_what_is_already_seen_or_in_hands() {
    let world = World::new().await;
    world.publish().await;
    let mut seen = open(&world, Some(seq(1))).await;
    silent_for(&mut seen, MINUTE).await;
    let claimed = world.take_one().await;
    let mut stream = open(&world, None).await;
    silent_for(&mut stream, Duration::from_hours(12)).await;
    world.ack(&claimed, AckResult::Completed).await;
    silent_for(&mut stream, MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn it_rings_again_with_longer_and_longer_pauses_while_items_stay_unclaimed() {
    let world = World::new().await;
    world.publish().await;
    let mut stream = open(&world, None).await;
    at_once(&mut stream).await;
    for minutes in [5, 20, 60, 360, 360] {
        let start = Instant::now();
        let signal = stream.next().await.unwrap();
        assert_eq!((start.elapsed(), signal.head), (MINUTE * minutes, seq(1)));
    }
    world.publish().await;
    at_once(&mut stream).await;
    let start = Instant::now();
    stream.next().await.unwrap();
    assert_eq!(start.elapsed(), MINUTE * 5, "news begin anew");
    for claimed in world.take(2).await {
        world.ack(&claimed, AckResult::Completed).await;
    }
    silent_for(&mut stream, Duration::from_hours(48)).await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_rings_again() {
    let world = World::new().await;
    world.sweep_in_background();
    world.publish().await;
    let mut stream = open(&world, None).await;
    at_once(&mut stream).await;
    let claimed = world.take_one().await;
    world.release(&claimed, "later", Some(SECOND * 30)).await.unwrap();
    let start = Instant::now();
    let signal = stream.next().await.unwrap();
    assert!(start.elapsed() >= SECOND * 30 && start.elapsed() <= SECOND * 32, "{:?}", start.elapsed());
    assert!(signal.head > seq(1));
}

#[tokio::test(start_paused = true)]
async fn an_absent_agent_is_not_rung_and_is_told_to_look_when_it_returns() {
    let world = World::new().await;
    let alpha = agent("alpha");
    let mut stream = open(&world, None).await;
    world.inbox.set_presence(&world.alpha, &alpha, PresenceChange::Out { for_: None }).await.unwrap();
    world.publish().await;
    silent_for(&mut stream, Duration::from_hours(12)).await;
    assert_eq!(world.take(1).await.len(), 1, "the inbox itself does not care");
    for queue in ["mail", "inbox", "mail", "held"] {
        world.memory.publish("alpha", New { queue, ..New::default() }).await;
    }
    world.inbox.pause(&world.alex, &alpha, Some(QueueName::parse("held").unwrap())).await.unwrap();
    silent_for(&mut stream, Duration::from_hours(12)).await;
    world.inbox.set_presence(&world.alpha, &alpha, PresenceChange::In).await.unwrap();
    let signal = at_once(&mut stream).await;
    assert!(signal.resync);
    assert_eq!(signal.head, world.log_head());
    let digest: Vec<_> = signal.queues.iter().map(|digest| (digest.queue.as_str(), digest.available)).collect();
    assert_eq!(digest, [("mail", 2), ("inbox", 1)], "counts for each queue that has something to claim");
    world.publish().await;
    let signal = at_once(&mut stream).await;
    assert!(!signal.resync && signal.queues.is_empty(), "once");
}

#[tokio::test(start_paused = true)]
async fn an_absence_with_a_time_ends_by_itself() {
    let world = World::new().await;
    world.sweep_in_background();
    let mut stream = open(&world, None).await;
    let out = PresenceChange::Out { for_: Some(MINUTE * 30) };
    world.inbox.set_presence(&world.alpha, &agent("alpha"), out).await.unwrap();
    world.publish().await;
    let start = Instant::now();
    let signal = stream.next().await.unwrap();
    assert!(signal.resync);
    assert!(start.elapsed() >= MINUTE * 30 && start.elapsed() <= MINUTE * 30 + SECOND * 2, "{:?}", start.elapsed());
    let announced = world.announced(Seq::ZERO);
    assert_eq!(announced, [("inbox.resumed".to_owned(), Some("presence".to_owned()))]);
}

#[tokio::test(start_paused = true)]
async fn pauses_silence_and_their_end_rings() {
    let world = World::new().await;
    let (alpha, queue) = (agent("alpha"), QueueName::parse("one").unwrap());
    let mut stream = open(&world, None).await;
    for whole in [true, false] {
        let what = (!whole).then(|| queue.clone());
        world.inbox.pause(&world.alex, &alpha, what.clone()).await.unwrap();
        world.memory.publish("alpha", New { queue: "one", ..New::default() }).await;
        silent_for(&mut stream, Duration::from_hours(12)).await;
        world.inbox.resume(&world.alex, &alpha, what).await.unwrap();
        assert!(at_once(&mut stream).await.resync);
        for claimed in world.take(5).await {
            world.ack(&claimed, AckResult::Completed).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_past_what_waits_is_told_to_look_from_the_beginning() {
    let world = World::new().await;
    let alpha = agent("alpha");
    world.publish().await;
    world.inbox.pause(&world.alex, &alpha, None).await.unwrap();
    // It was away when the pause ended.
    world.inbox.resume(&world.alex, &alpha, None).await.unwrap();
    let mut stream = open(&world, Some(seq(1))).await;
    assert!(at_once(&mut stream).await.resync);
    let mut fresh = open(&world, Some(Seq::ZERO)).await;
    assert!(!at_once(&mut fresh).await.resync, "who has seen nothing misses nothing");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_token_and_when_the_process_drains() {
    let world = World::new().await;
    let gamma = world.caller("gamma").await;
    let mut stream = world.inbox.signals(&gamma, None, None).await.unwrap();
    let start = Instant::now();
    assert!(stream.next().await.is_none());
    assert!(start.elapsed() >= MINUTE && start.elapsed() < MINUTE + SECOND);
    let mut stream = open(&world, None).await;
    let (ended, ()) = tokio::join!(stream.next(), async {
        advance(SECOND).await;
        world.inbox.drain();
    });
    assert!(ended.is_none());
    assert_eq!(world.inbox.signals(&world.alpha, None, None).await.unwrap_err(), InboxError::ShuttingDown);
}

#[tokio::test(start_paused = true)]
async fn a_stream_belongs_to_a_session_of_the_agents_own() {
    let world = World::new().await;
    let opened = world.inbox.subscribe(&world.alpha, Subscribe { last_seen: Seq::ZERO, ..Subscribe::default() }).await.unwrap();
    let beta = world.caller("beta").await;
    let refused = world.inbox.signals(&beta, Some(opened.session.clone()), None).await.unwrap_err();
    assert_eq!(refused, InboxError::NotFound);
    assert_eq!(world.inbox.signals(&world.alpha, Some(session("none")), None).await.unwrap_err(), InboxError::NotFound);
    assert!(world.inbox.signals(&world.alex, None, None).await.is_err());
    advance(MINUTE).await;
    let mut stream = world.inbox.signals(&world.alpha, Some(opened.session.clone()), Some(seq(0))).await.unwrap();
    let stored = world.memory.state().sessions[&opened.session].clone();
    assert!(stored.is_active && stored.heartbeat_at > stored.connected_at);
    world.inbox.drain();
    assert!(stream.next().await.is_none());
    assert!(!world.memory.state().sessions[&opened.session].is_active);
}

#[tokio::test(start_paused = true)]
async fn too_many_streams_are_refused_and_a_closed_one_makes_room() {
    let world = World::with(|settings| settings.max_waiters_per_agent = 1).await;
    let stream = open(&world, None).await;
    assert_eq!(world.inbox.metrics().streams.get(), 1);
    let refused = world.inbox.signals(&world.alpha, None, None).await.map(drop);
    assert_eq!(refused, Err(InboxError::LimitReached("inbox.max_waiters_per_agent")));
    let crowded = World::with(|settings| settings.max_waiters = 0).await;
    let refused = crowded.inbox.signals(&crowded.alpha, None, None).await.map(drop);
    assert_eq!(refused, Err(InboxError::LimitReached("inbox.max_waiters")));
    drop(stream);
    assert_eq!(world.inbox.metrics().streams.get(), 0);
    open(&world, None).await;
}

#[tokio::test(start_paused = true)]
async fn fetches_that_follow_a_signal_are_counted_once_for_each() {
    let world = World::new().await;
    let mut stream = open(&world, None).await;
    for _ in 0..2 {
        world.publish().await;
        at_once(&mut stream).await;
        for _ in 0..3 {
            world.inbox.claim_next(&world.alpha, next(1)).await.unwrap();
        }
    }
    let metrics = world.inbox.metrics();
    assert_eq!((metrics.signals.get(), metrics.fetches_after_signal.get()), (2, 2));
    assert_eq!(metrics.signal_latency.get().1.iter().map(|(_, count)| count).sum::<u64>(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_look_loses_no_signal() {
    for polls in 1..=3 {
        let world = World::new().await;
        world.memory.is_slow.store(true, Ordering::SeqCst);
        // Three looks at the store: the inbox, its backlog, and whether something waits below the cursor.
        let mut stream = open(&world, Some(Seq::ZERO)).await;
        silent_for(&mut stream, SECOND).await;
        world.publish().await;
        {
            let mut call = Box::pin(stream.next());
            for _ in 0..polls {
                assert!(futures_util::poll!(&mut call).is_pending(), "it is dropped before it is done");
            }
        }
        assert_eq!(at_once(&mut stream).await.head, seq(1), "after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_store_makes_signals_late_and_rings_for_nothing() {
    let world = World::new().await;
    world.memory.publish("alpha", New { max_attempts: 1, ..New::default() }).await;
    let held = world.take_one().await;
    world.publish().await;
    let mut stream = open(&world, None).await;
    let start = Instant::now();
    at_once(&mut stream).await;
    world.memory.looks_fail.store(true, Ordering::SeqCst);
    // A row of the log that leaves nothing more to fetch.
    world.ack(&held, AckResult::Failed).await;
    silent_for(&mut stream, SECOND * 10).await;
    world.memory.looks_fail.store(false, Ordering::SeqCst);
    stream.next().await.unwrap();
    assert_eq!(start.elapsed(), MINUTE * 5, "the repetition, when it was to be");
    world.memory.looks_fail.store(true, Ordering::SeqCst);
    world.publish().await;
    silent_for(&mut stream, SECOND * 10).await;
    world.memory.looks_fail.store(false, Ordering::SeqCst);
    let healed = Instant::now();
    assert_eq!(stream.next().await.unwrap().head, world.log_head());
    assert!(healed.elapsed() <= SECOND, "{:?}", healed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_open_stream_is_a_sign_of_life_of_its_session() {
    let world = World::new().await;
    let opened = world.inbox.subscribe(&world.alpha, Subscribe::default()).await.unwrap();
    let mut stream = world.inbox.signals(&world.alpha, Some(opened.session.clone()), None).await.unwrap();
    silent_for(&mut stream, MINUTE * 30).await;
    let heard = world.memory.state().sessions[&opened.session].heartbeat_at;
    assert!(heard.plus(MINUTE) >= world.memory.clock.now());
}

#[tokio::test(start_paused = true)]
async fn subscribing_answers_the_first_known_transport_of_the_agents_wishes() {
    let world = World::new().await;
    world.publish().await;
    for (wishes, transport) in
        [(vec!["smoke", "websocket", "sse"], "websocket"), (vec!["sse"], "sse"), (vec!["long-poll", "poll"], "long-poll"), (vec![], "poll")]
    {
        let transports = wishes.into_iter().map(str::to_owned).collect();
        let opened = world.inbox.subscribe(&world.alpha, Subscribe { transports, ..Subscribe::default() }).await.unwrap();
        assert_eq!((opened.transport, opened.head, opened.epoch), (transport, seq(1), epoch()));
        assert_eq!(world.memory.state().sessions[&opened.session].transport, transport);
    }
    let device = Some("x".repeat(129));
    let refused = world.inbox.subscribe(&world.alpha, Subscribe { device, ..Subscribe::default() }).await.unwrap_err();
    assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "/device_id"));
}

#[tokio::test(start_paused = true)]
async fn a_bell_before_the_commit_signals_nothing_and_wakes_no_claim_for_nothing() {
    let world = World::new().await;
    let mut stream = open(&world, None).await;
    silent_for(&mut stream, SECOND).await;
    // Told again and again of an event whose transaction takes its time.
    let (id, at) = (EventId::new(Uuid::from_u128(1)), world.memory.clock.now());
    let (event_type, audience) = (EventType::parse("task.created").unwrap(), Audience::new(&[agent("alpha")]));
    let early = [Arc::new(Event::new(seq(1), id, event_type, None, audience, EventOrigin::Work, at, Bytes::from_static(b"}")))];
    let claim = async {
        let start = Instant::now();
        let answer = world.inbox.claim_next(&world.alpha, waiting(10)).await.unwrap();
        (answer.claims.len(), start.elapsed())
    };
    let ringing = async {
        for _ in 0..50 {
            world.inbox.bells().observe(&tenant(), &early);
            silent_for(&mut stream, Duration::from_millis(100)).await;
        }
        world.publish().await;
        at_once(&mut stream).await.head
    };
    let ((claims, waited), head) = tokio::join!(claim, ringing);
    assert_eq!((claims, head), (1, seq(1)));
    assert!(waited >= SECOND * 5 && waited < SECOND * 6, "the claim ends with the commit: {waited:?}");
}
