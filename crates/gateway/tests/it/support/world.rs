//! The real engine over the store in memory, with virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agents::{ConsumerFeed, ConsumerKey, ConsumerService, FeedPage, PollRequest};
use authz::{Authorizer, Caller, IdentityStore, Permission, Principal, PrincipalKind, Resource, Role, Scope, TokenRecord, TokenSecret};
use bytes::Bytes;
use domain::{
    Audience, ChannelRef, Clock, ConsumerName, Event, EventId, EventOrigin, EventType, IdGenerator, PrincipalId, Seq, TenantId, Timestamp,
    TokenId,
};
use doorstep_gateway::{DeliveryHook, EventReader, Feed, Gateway, InboxHints, NoHints, Parts, PassDelivery, Settings};
use protocol::Secret;
use serde_json::{Value, json};
use sync::{CommitListener, HintBus, Logs};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::{Memory, Peer, connect};

/// Wall time that follows the runtime's, so that paused time moves both.
#[derive(Debug)]
pub(crate) struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000).plus(self.0.elapsed())
    }
}

#[derive(Debug, Default)]
struct Ids(AtomicU64);

impl IdGenerator for Ids {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::SeqCst)) + 1)
    }
}

pub(crate) fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

pub(crate) fn tenant() -> TenantId {
    TenantId::parse("default").unwrap()
}

pub(crate) fn channel(name: &str) -> ChannelRef {
    ChannelRef::parse(name).unwrap()
}

pub(crate) fn agent() -> PrincipalId {
    PrincipalId::parse("alpha").unwrap()
}

pub(crate) fn person() -> PrincipalId {
    PrincipalId::parse("sam").unwrap()
}

pub(crate) fn key(name: &str) -> ConsumerKey {
    ConsumerKey { tenant: tenant(), agent: agent(), name: ConsumerName::parse(name).unwrap() }
}

/// What tests change of the settings.
pub(crate) struct WorldSettings {
    pub(crate) gateway: Settings,
    pub(crate) agents: agents::Settings,
    pub(crate) hook: Arc<dyn DeliveryHook>,
    pub(crate) hints: Arc<dyn InboxHints>,
    pub(crate) nodes: Option<Arc<dyn HintBus>>,
}

impl Default for WorldSettings {
    fn default() -> Self {
        Self {
            gateway: Settings::default(),
            agents: agents::Settings::default(),
            hook: Arc::new(PassDelivery),
            hints: Arc::new(NoHints),
            nodes: None,
        }
    }
}

pub(crate) struct World {
    pub(crate) memory: Arc<Memory>,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) reader: EventReader,
    pub(crate) tasks: TaskTracker,
    pub(crate) agent_token: String,
    pub(crate) person_token: String,
    _stop: tokio_util::sync::DropGuard,
}

/// The channel that everybody here may read.
pub(crate) const OPEN: &str = "support/general";
/// The channel that nobody here may read.
pub(crate) const HIDDEN: &str = "marketing/secret";

impl World {
    /// An agent `alpha` and a person `sam`, both with `read` on `support/general`.
    pub(crate) fn new() -> Self {
        Self::with(WorldSettings::default())
    }

    pub(crate) fn with(settings: WorldSettings) -> Self {
        let clock = Arc::new(VirtualClock(Instant::now()));
        let memory = Memory::new(tenant(), clock.clone());
        let mut world = Self::over(memory, clock, settings, 0);
        world.agent_token = world.principal(&agent(), PrincipalKind::Agent);
        world.person_token = world.principal(&person(), PrincipalKind::Person);
        world
    }

    /// Another node over the store of `first`.
    pub(crate) fn beside(first: &Self, settings: WorldSettings) -> Self {
        let mut world = Self::over(first.memory.clone(), first.clock.clone(), settings, 1 << 32);
        (world.agent_token, world.person_token) = (first.agent_token.clone(), first.person_token.clone());
        world
    }

    fn over(memory: Arc<Memory>, clock: Arc<VirtualClock>, settings: WorldSettings, first_id: u64) -> Self {
        let identities: Arc<dyn IdentityStore> = memory.clone();
        let authorizer = Authorizer::new(identities.clone(), clock.clone());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let logs = Logs::start(memory.clone(), authorizer.clone(), sync::Settings::default(), tasks.clone(), stop.clone());
        let service = ConsumerService::new(memory.clone(), identities, authorizer.clone(), settings.agents);
        let gateway = Gateway::new(Parts {
            authorizer: authorizer.clone(),
            logs: logs.clone(),
            consumers: Arc::new(service),
            hook: settings.hook,
            hints: settings.hints,
            nodes: settings.nodes,
            clock: clock.clone(),
            ids: Arc::new(Ids(AtomicU64::new(first_id))),
            settings: settings.gateway,
            agents: settings.agents,
        });
        gateway.run(&tasks, &stop);
        let feed = Arc::new(Feed::new(gateway.clone(), memory.clone()));
        Self {
            reader: EventReader::new(gateway.clone()),
            memory,
            clock,
            authorizer,
            logs,
            gateway,
            feed,
            tasks,
            agent_token: String::new(),
            person_token: String::new(),
            _stop: stop.drop_guard(),
        }
    }

    /// Makes a principal that reads the open channel; answers its token.
    pub(crate) fn principal(&self, id: &PrincipalId, kind: PrincipalKind) -> String {
        let now = self.clock.now();
        let principal = Principal { id: id.clone(), kind, role: Role::Member, display_name: None, enabled: true, created_at: now };
        let mut state = self.memory.state();
        state.principals.push(principal);
        state.grants.push((id.clone(), Resource::parse_or_panic(OPEN), Permission::Read));
        drop(state);
        self.token(id, kind, None)
    }

    pub(crate) fn token(&self, id: &PrincipalId, kind: PrincipalKind, expires_at: Option<Timestamp>) -> String {
        let secret = TokenSecret::generate(kind).unwrap();
        let mut state = self.memory.state();
        let number = state.tokens.len() as u128 + 1;
        state.tokens.push(TokenRecord {
            id: TokenId::new(Uuid::from_u128(number)),
            principal: id.clone(),
            hash: secret.hash(),
            prefix: secret.prefix().to_owned(),
            scopes: Scope::ALL.into_iter().collect(),
            created_at: self.clock.now(),
            expires_at,
            last_used_at: None,
            revoked_at: None,
        });
        secret.reveal().to_owned()
    }

    pub(crate) async fn caller(&self, token: &str) -> Caller {
        self.authorizer.authenticate(token).await.unwrap()
    }

    /// Publishes to the open channel; answers the position.
    pub(crate) fn publish(&self) -> u64 {
        self.publish_to(OPEN)
    }

    pub(crate) fn publish_many(&self, count: usize) {
        let events = (0..count).map(|_| self.append("message.created", EventOrigin::Published, Some(OPEN), &[], &json!({}))).collect();
        self.announce(events);
    }

    pub(crate) fn publish_to(&self, channel: &str) -> u64 {
        let event = self.append("message.created", EventOrigin::Published, Some(channel), &[], &json!({"text": "hello"}));
        let position = event.seq.get();
        self.announce(vec![event]);
        position
    }

    /// One of the server's own events.
    pub(crate) fn report(&self, event_type: &str, audience: &[PrincipalId], payload: &Value) -> u64 {
        let event = self.append(event_type, EventOrigin::Server, None, audience, payload);
        let position = event.seq.get();
        self.announce(vec![event]);
        position
    }

    fn append(&self, event_type: &str, origin: EventOrigin, to: Option<&str>, audience: &[PrincipalId], payload: &Value) -> Arc<Event> {
        let mut state = self.memory.state();
        let position = state.head.seq.next();
        let id = Uuid::from_u128(0xe000 + u128::from(position.get()));
        let body = format!(r#""id":"{id}","type":"{event_type}","payload":{payload}}}"#);
        let event = Arc::new(Event::new(
            position,
            EventId::new(id),
            EventType::parse(event_type).unwrap(),
            to.map(channel),
            Audience::new(audience),
            origin,
            self.clock.now(),
            Bytes::from(body),
        ));
        state.events.push(Arc::clone(&event));
        state.head.seq = position;
        event
    }

    /// Commits an event of which nobody in this process hears before the tail looks by itself.
    pub(crate) fn publish_unannounced(&self) -> u64 {
        self.append("message.created", EventOrigin::Published, Some(OPEN), &[], &json!({})).seq.get()
    }

    pub(crate) fn announce(&self, events: Vec<Arc<Event>>) {
        let epoch = self.memory.state().head.epoch;
        self.logs.committed(&tenant(), epoch, &events);
    }

    /// Takes the agent's right to the open channel away, as an administrator would; answers the position of the report.
    pub(crate) fn revoke_grant(&self, id: &PrincipalId) -> u64 {
        self.memory.state().grants.retain(|(principal, ..)| principal != id);
        let payload = json!({"change": "grant.revoked", "principal": id, "resource": OPEN, "permission": "read"});
        self.report("access.changed", std::slice::from_ref(id), &payload)
    }

    pub(crate) fn grant(&self, id: &PrincipalId, to: &str) -> u64 {
        self.memory.state().grants.push((id.clone(), Resource::parse_or_panic(to), Permission::Read));
        let payload = json!({"change": "grant.created", "principal": id, "resource": to, "permission": "read"});
        self.report("access.changed", std::slice::from_ref(id), &payload)
    }

    pub(crate) fn disable(&self, id: &PrincipalId) {
        let mut state = self.memory.state();
        for principal in state.principals.iter_mut().filter(|principal| principal.id == *id) {
            principal.enabled = false;
        }
        drop(state);
        self.report("access.changed", std::slice::from_ref(id), &json!({"change": "principal.disabled", "principal": id}));
    }

    pub(crate) fn suspend_tenant(&self) {
        self.memory.state().serves = authz::TenantState::Suspended;
        self.report("access.changed", &[], &json!({"change": "tenant.suspended"}));
    }

    /// Removes the events up to and with this position, as retention does.
    pub(crate) fn retire(&self, up_to: u64) {
        let mut state = self.memory.state();
        state.head.floor = seq(up_to + 1);
        state.events.retain(|event| event.seq.get() > up_to);
    }

    /// A socket to the gateway.
    pub(crate) fn dial(&self) -> Peer {
        self.dial_with(1_000_000, None)
    }

    /// A socket of a peer to which so many unread frames can be on their way.
    pub(crate) fn dial_with(&self, queue: usize, credential: Option<&str>) -> Peer {
        let (connection, peer) = connect(queue);
        let (gateway, credential) = (self.gateway.clone(), credential.map(|token| Secret::new(token.to_owned())));
        self.tasks.spawn(async move { gateway.serve(connection, credential, None).await });
        peer
    }

    /// An identified connection, with its `ready`.
    pub(crate) async fn identify(&self, token: &str, more: Value) -> (Peer, Value) {
        let mut peer = self.dial();
        peer.expect("hello").await;
        let mut frame = json!({"op": "identify", "token": token});
        frame.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        peer.send(&frame);
        let ready = peer.expect("ready").await;
        (peer, ready)
    }

    /// The agent's consumer `default`, caught up.
    pub(crate) async fn consume(&self) -> (Peer, Value) {
        let (mut peer, ready) = self.identify(&self.agent_token, json!({})).await;
        peer.expect("catchup.complete").await;
        (peer, ready)
    }

    /// A resumed connection, or how it ended instead.
    pub(crate) async fn resume(&self, token: &str, session: &Value) -> Peer {
        let mut peer = self.dial();
        peer.expect("hello").await;
        peer.send(&json!({"op": "resume", "token": token, "gateway_session_id": session}));
        peer
    }

    pub(crate) async fn poll(&self, request: PollRequest) -> Result<FeedPage, agents::ConsumerError> {
        let caller = self.caller(&self.agent_token).await;
        self.feed.poll(&caller, request).await
    }

    /// Lets everything that is ready run.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Reads a resource that a test names.
trait ParseOrPanic: Sized {
    fn parse_or_panic(text: &str) -> Self;
}

impl ParseOrPanic for Resource {
    fn parse_or_panic(text: &str) -> Self {
        text.parse().unwrap()
    }
}
