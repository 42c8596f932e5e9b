//! Sessions: whatever names one is a sign of its life, and names that nobody opened cost nothing.

use std::time::Duration;

use inbox::{Claim, ClaimNext, Claimed, GiveBack, Heartbeat, Poll, Subscribe};
use tokio::time::advance;

use crate::world::{SECOND, World, ack, claim, next, poll, seq, session};

const CALLS: [&str; 6] = ["poll", "claim", "claim_next", "heartbeat", "acknowledge", "release"];

/// Does one call that names `session`, with an item that is held.
async fn call(world: &World, call: &str, held: &Claimed, session: domain::AgentSessionId) {
    let (event, token) = (held.item.facts.event_id, held.token.reveal().to_owned());
    let (inbox, alpha) = (&world.inbox, &world.alpha);
    match call {
        "poll" => drop(inbox.poll(alpha, Poll { session: Some(session), ..poll(seq(0)) }).await.unwrap()),
        "claim" => drop(inbox.claim(alpha, Claim { session: Some(session), ..claim(&[event]) }).await.unwrap()),
        "claim_next" => drop(inbox.claim_next(alpha, ClaimNext { session: Some(session), ..next(1) }).await.unwrap()),
        "heartbeat" => drop(inbox.heartbeat(alpha, Some(&session), vec![Heartbeat { event, token, extend: None }]).await.unwrap()),
        "acknowledge" => drop(inbox.acknowledge(alpha, Some(&session), vec![ack(held, inbox::AckResult::Completed)]).await.unwrap()),
        _ => {
            let release = GiveBack { event, token, reason: String::new(), rest: None, session: Some(session) };
            inbox.release(alpha, release).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_that_names_a_session_is_a_sign_of_its_life() {
    for name in CALLS {
        let world = World::new().await;
        world.publish().await;
        let held = world.take_one().await;
        let opened = world.inbox.subscribe(&world.alpha, Subscribe::default()).await.unwrap().session;
        let heard = || world.memory.state().sessions[&opened].heartbeat_at;
        let before = heard();
        advance(SECOND * 30).await;
        call(&world, name, &held, opened.clone()).await;
        assert_eq!(heard(), before.plus(SECOND * 30), "{name}");
        // Written down now and then, not with every call.
        advance(Duration::from_millis(10)).await;
        world.inbox.poll(&world.alpha, Poll { session: Some(opened.clone()), ..poll(seq(0)) }).await.unwrap();
        assert_eq!(heard(), before.plus(SECOND * 30), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_opened_or_another_agent_did_costs_no_write() {
    let world = World::new().await;
    let beta = world.caller("beta").await;
    let others = world.inbox.subscribe(&beta, Subscribe::default()).await.unwrap().session;
    let before = world.memory.state().sessions[&others].clone();
    advance(SECOND * 60).await;
    let units = world.units();
    for id in [session("1"), others.clone(), session("2")] {
        world.inbox.poll(&world.alpha, Poll { session: Some(id), ..poll(seq(0)) }).await.unwrap();
    }
    assert_eq!((world.units(), &world.memory.state().sessions[&others]), (units, &before));
}
