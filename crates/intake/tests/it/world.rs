//! A publisher and a promoter over one store, with people who may publish.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use authz::{Authorizer, Caller, Credential, Permission, Principal, PrincipalKind, Role, Scope, TenantState, TokenRecord, TokenSecret};
use domain::{ChannelRef, Clock, EventType, IdGenerator, PrincipalId, TenantId, Timestamp, TokenId};
use intake::{IntakeParts, Metrics, NewEvent, Promoter, PublishError, Published, Publisher, ScheduleBell, Settings};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::fake::Fake;

/// The runtime's clock, so that paused time moves this one too.
#[derive(Debug)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000).plus(self.0.elapsed())
    }
}

/// Ids that grow.
#[derive(Debug, Default)]
struct Ids(AtomicU64);

impl IdGenerator for Ids {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::SeqCst)) + 1)
    }
}

pub(crate) struct World {
    pub(crate) store: Arc<Fake>,
    pub(crate) parts: IntakeParts,
    pub(crate) publisher: Publisher,
    pub(crate) owner: Caller,
    tracker: TaskTracker,
    stop: CancellationToken,
}

pub(crate) fn tenant() -> TenantId {
    TenantId::parse("default").unwrap()
}

pub(crate) fn id(name: &str) -> PrincipalId {
    PrincipalId::parse(name).unwrap()
}

pub(crate) fn channel(name: &str) -> ChannelRef {
    ChannelRef::parse(name).unwrap()
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// An event to `support/general` whose payload carries `number`.
pub(crate) fn event(number: usize) -> NewEvent {
    NewEvent {
        channel: Some(channel("support/general")),
        payload: Some(raw(&format!(r#"{{"n":{number}}}"#))),
        ..NewEvent::new(EventType::parse("message.created").unwrap())
    }
}

/// The same with a deduplication key.
pub(crate) fn keyed(number: usize, key: &str) -> NewEvent {
    NewEvent { deduplication_key: Some(key.parse().unwrap()), ..event(number) }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_settings(Settings::default()).await
    }

    pub(crate) async fn with_settings(settings: Settings) -> Self {
        let store = Arc::new(Fake::default());
        store.state.lock().unwrap().channels.extend([channel("support/general"), channel("ops/general")]);
        let clock: Arc<dyn Clock> = Arc::new(RuntimeClock(Instant::now()));
        let authorizer = Authorizer::new(store.clone(), clock.clone());
        let parts = IntakeParts {
            authorizer,
            append: store.clone(),
            transactions: store.clone(),
            schedule: store.clone(),
            clock,
            ids: Arc::new(Ids::default()),
            bell: ScheduleBell::default(),
            metrics: Arc::new(Metrics::default()),
            settings,
        };
        let owner = enter(&store, &parts, "owner", PrincipalKind::Person, Role::Owner).await;
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        Self { publisher: Publisher::new(parts.clone()), store, parts, owner, tracker, stop }
    }

    pub(crate) async fn principal(&self, name: &str, kind: PrincipalKind) -> Caller {
        enter(&self.store, &self.parts, name, kind, Role::Member).await
    }

    pub(crate) fn grant(&self, name: &str, resource: &str, permission: Permission) {
        self.store.state.lock().unwrap().grants.push((id(name), resource.parse().unwrap(), permission));
    }

    /// Starts a promoter.
    pub(crate) fn promote(&self) {
        let (promoter, stop) = (Promoter::new(self.parts.clone()), self.stop.clone());
        self.tracker.spawn(async move { promoter.run(stop).await });
    }

    /// Ends the promoters.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// `event`, to appear after `delay`.
    pub(crate) fn later(&self, event: NewEvent, delay: Duration) -> NewEvent {
        NewEvent { available_at: Some(self.now().plus(delay)), ..event }
    }

    pub(crate) async fn publish(&self, events: Vec<NewEvent>) -> Result<Published, PublishError> {
        self.publisher.publish(&self.owner, events).await
    }

    /// The log as JSON envelopes.
    pub(crate) fn log(&self) -> Vec<serde_json::Value> {
        let log = self.store.state.lock().unwrap().log.clone();
        log.iter().map(|(_, row)| serde_json::from_slice(&[b"{", &row.body[..]].concat()).unwrap()).collect()
    }

    /// The numbers in the payloads of the log.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.log().iter().map(|envelope| envelope["payload"]["n"].as_u64().unwrap()).collect()
    }
}

async fn enter(store: &Fake, parts: &IntakeParts, name: &str, kind: PrincipalKind, role: Role) -> Caller {
    let secret = TokenSecret::generate(kind).unwrap();
    let created_at = parts.clock.now();
    let token = TokenRecord {
        id: TokenId::new(parts.ids.uuid()),
        principal: id(name),
        hash: secret.hash(),
        prefix: secret.prefix().to_owned(),
        scopes: Scope::ALL.into_iter().collect(),
        created_at,
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    };
    let principal = Principal { id: id(name), kind, role, display_name: None, enabled: true, created_at };
    let credential = Credential { tenant: tenant(), tenant_state: TenantState::Active, token, principal };
    store.state.lock().unwrap().credentials.push(credential);
    parts.authorizer.authenticate(secret.reveal()).await.unwrap()
}
