//! Hints about the inbox on the gateway (`inbox_hints`): passed on as they come, beside everything else, and only to who may hear them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use authz::{Caller, PrincipalKind, Scope};
use domain::{Seq, Timestamp};
use doorstep_gateway::{Hints, InboxHints};
use protocol::InboxUpdated;
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::{Peer, World, WorldSettings, agent};

const SECOND: Duration = Duration::from_secs(1);

/// Rings when the test says so.
#[derive(Debug, Default)]
struct Bell(Mutex<Vec<mpsc::UnboundedSender<InboxUpdated>>>);

#[derive(Debug)]
struct Listening(mpsc::UnboundedReceiver<InboxUpdated>);

impl InboxHints for Bell {
    fn listen(&self, _caller: &Caller) -> Option<Box<dyn Hints>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.lock().unwrap().push(sender);
        Some(Box::new(Listening(receiver)))
    }
}

#[async_trait]
impl Hints for Listening {
    async fn next(&mut self) -> Option<InboxUpdated> {
        self.0.recv().await
    }
}

impl Bell {
    /// Rings whoever listens; answers how many do.
    fn ring(&self, head: u64) -> usize {
        let hint = InboxUpdated {
            signal_type: "inbox.updated".into(),
            tenant_id: "default".parse().unwrap(),
            recipient_id: agent(),
            head_seq: Seq::new(head).unwrap(),
            sync_epoch: None,
            resync: false,
            queues: Vec::new(),
            approximate_unacked: 3,
            delivery_id: "0197f0ab-4623-7d52-a87e-27afcf0d9a92".into(),
            sent_at_utc: Timestamp::from_micros(0),
        };
        let mut listening = self.0.lock().unwrap();
        listening.retain(|sender| sender.send(hint.clone()).is_ok());
        listening.len()
    }

    fn hang_up(&self) {
        self.0.lock().unwrap().clear();
    }
}

fn world() -> (World, Arc<Bell>) {
    let bell = Arc::<Bell>::default();
    (World::with(WorldSettings { hints: bell.clone(), ..WorldSettings::default() }), bell)
}

async fn identify(world: &World, token: &str, wants: bool) -> Peer {
    let mut peer = world.dial();
    peer.expect("hello").await;
    peer.send(&json!({"op": "identify", "token": token, "inbox_hints": wants}));
    peer.expect("ready").await;
    peer.expect("catchup.complete").await;
    peer
}

#[tokio::test(start_paused = true)]
async fn hints_reach_the_agent_that_asked_between_its_events() {
    let (world, bell) = world();
    let mut peer = identify(&world, &world.agent_token, true).await;
    assert_eq!(bell.ring(7), 1);
    let hint = peer.expect("inbox.updated").await;
    assert_eq!((&hint["head_seq"], &hint["approximate_unacked"], &hint["recipient_id"]), (&json!(7), &json!(3), &json!("alpha")));
    let seq = world.publish();
    assert_eq!(peer.dispatches(1).await, [(seq, false)]);
    bell.ring(8);
    assert_eq!(peer.expect("inbox.updated").await["head_seq"], 8);
    assert_eq!(world.gateway.metrics().hints.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_else_is_listened_for() {
    let (world, bell) = world();
    let _not_asked = identify(&world, &world.agent_token, false).await;
    let _no_agent = identify(&world, &world.person_token, true).await;
    assert_eq!(bell.ring(1), 0);
}

#[tokio::test(start_paused = true)]
async fn a_token_without_the_scope_is_told_so_and_still_consumes() {
    let (world, bell) = world();
    let narrow = world.token(&agent(), PrincipalKind::Agent, None);
    world.memory.state().tokens.last_mut().unwrap().scopes = [Scope::Consume].into_iter().collect();
    let mut peer = world.dial();
    peer.expect("hello").await;
    peer.send(&json!({"op": "identify", "token": narrow, "inbox_hints": true}));
    peer.expect("ready").await;
    let error = peer.expect("error").await;
    assert_eq!(
        (&error["refused_op"], &error["code"], &error["pointer"]),
        (&json!("identify"), &json!("forbidden"), &json!("/inbox_hints"))
    );
    peer.expect("catchup.complete").await;
    let seq = world.publish();
    assert_eq!(peer.dispatches(1).await, [(seq, false)]);
    assert_eq!(bell.ring(1), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_goes_on_hearing_hints() {
    let (world, bell) = world();
    let mut peer = world.dial();
    peer.expect("hello").await;
    peer.send(&json!({"op": "identify", "token": world.agent_token, "inbox_hints": true}));
    let session = peer.expect("ready").await["gateway_session_id"].clone();
    peer.vanish();
    world.settle().await;
    assert_eq!(bell.ring(1), 0);
    let mut peer = world.dial();
    peer.expect("hello").await;
    peer.send(&json!({"op": "resume", "token": world.agent_token, "gateway_session_id": session}));
    peer.expect("resumed").await;
    peer.expect("catchup.complete").await;
    assert_eq!(bell.ring(2), 1);
    assert_eq!(peer.expect("inbox.updated").await["head_seq"], 2);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_hints_is_not_the_end_of_the_connection() {
    let (world, bell) = world();
    let mut peer = identify(&world, &world.agent_token, true).await;
    bell.hang_up();
    peer.silence(SECOND).await;
    let seq = world.publish();
    assert_eq!(peer.dispatches(1).await, [(seq, false)]);
}
