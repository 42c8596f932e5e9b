//! A server's worth of identities: one bootstrapped store with an authorizer and the administration over it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use authz::{
    Admin, Authorizer, Caller, Grant, IdentityStore, IssuedToken, Made, NewGrant, NewPrincipal, NewToken, Outcome, Permission,
    PrincipalKind, Role, Settings,
};
use domain::{
    Audience, ChannelRef, Clock, Event, EventId, EventOrigin, EventType, IdGenerator, PrincipalId, Publication, Seq, TenantId, Timestamp,
};
use uuid::Uuid;

use crate::fake::Fake;

/// A clock that tests move.
#[derive(Debug)]
pub(crate) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// Ids that grow.
#[derive(Debug, Default)]
pub(crate) struct Ids(AtomicU64);

impl IdGenerator for Ids {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::SeqCst)) + 1)
    }
}

pub(crate) struct World {
    pub(crate) store: Arc<Fake>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) admin: Admin,
    pub(crate) owner: Caller,
    observed: Mutex<usize>,
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

pub(crate) fn new_principal(name: &str, kind: PrincipalKind, role: Role) -> NewPrincipal {
    NewPrincipal { id: id(name), kind, role, display_name: None }
}

/// What was created just now.
pub(crate) fn made<T>(outcome: Outcome<T>) -> T {
    match outcome {
        Outcome::Done(Made::New(thing)) => thing,
        Outcome::Done(Made::Present(_)) => panic!("was there already"),
        Outcome::Replayed(_) => panic!("was replayed"),
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_settings(Settings::default()).await
    }

    pub(crate) async fn with_settings(settings: Settings) -> Self {
        let store = Arc::new(Fake::default());
        let clock = Arc::new(ManualClock(AtomicI64::new(1_700_000_000_000_000)));
        let identities: Arc<dyn IdentityStore> = store.clone();
        let authorizer = Authorizer::with_settings(identities.clone(), clock.clone(), settings);
        let admin = Admin::new(authorizer.clone(), identities, store.clone(), clock.clone(), Arc::new(Ids::default()));
        let kept = std::cell::RefCell::new(None);
        admin.bootstrap::<authz::AdminError>(|secret| Ok(_ = kept.replace(Some(secret.clone())))).await.unwrap();
        let secret = kept.into_inner().unwrap();
        let owner = authorizer.authenticate(secret.reveal()).await.unwrap();
        Self { store, clock, authorizer, admin, owner, observed: Mutex::new(0) }
    }

    /// A principal with a token that has every scope.
    pub(crate) async fn principal(&self, name: &str, kind: PrincipalKind, role: Role) -> (Caller, IssuedToken) {
        made(self.admin.create_principal(&self.owner, new_principal(name, kind, role), None).await.unwrap());
        let token = self.token(name, NewToken::default()).await;
        (self.authorizer.authenticate(token.secret.reveal()).await.unwrap(), token)
    }

    pub(crate) async fn member(&self, name: &str) -> Caller {
        self.principal(name, PrincipalKind::App, Role::Member).await.0
    }

    pub(crate) async fn token(&self, name: &str, new: NewToken) -> IssuedToken {
        made(self.admin.create_token(&self.owner, &id(name), new, None).await.unwrap())
    }

    /// Makes the channels with their spaces.
    pub(crate) async fn channels(&self, names: &[&str]) {
        for name in names {
            let (space, channel) = name.split_once('/').unwrap();
            let space = space.parse().unwrap();
            self.admin.create_space(&self.owner, Clone::clone(&space), None).await.ok();
            made(self.admin.create_channel(&self.owner, &space, channel.parse().unwrap(), None).await.unwrap());
        }
    }

    pub(crate) async fn grant(&self, name: &str, resource: &str, permission: Permission) -> Grant {
        let new = NewGrant { principal: id(name), resource: resource.parse().unwrap(), permission };
        made(self.admin.create_grant(&self.owner, new, None).await.unwrap())
    }

    /// What another process does: the same administration over the same store, with a memory of its own.
    pub(crate) async fn elsewhere(&self) -> (Admin, Caller) {
        let identities: Arc<dyn IdentityStore> = self.store.clone();
        let authorizer = Authorizer::new(identities.clone(), self.clock.clone());
        let admin =
            Admin::new(authorizer.clone(), identities, self.store.clone(), self.clock.clone(), Arc::new(Ids(AtomicU64::new(1 << 40))));
        let token = self.token("owner", NewToken::default()).await;
        let owner = authorizer.authenticate(token.secret.reveal()).await.unwrap();
        (admin, owner)
    }

    /// Events of the log of tenant `default` that the tail has not handed over yet.
    pub(crate) fn fresh_events(&self) -> Vec<Arc<Event>> {
        let log = self.store.state.lock().unwrap().log.clone();
        let mut observed = self.observed.lock().unwrap();
        let own = log.into_iter().filter(|(t, _)| *t == tenant()).map(|(_, publication)| publication);
        let events: Vec<_> = own.enumerate().skip(*observed).map(|(at, publication)| event(at as u64 + 1, publication)).collect();
        *observed += events.len();
        events
    }

    /// The tail begins at the present head.
    pub(crate) async fn start_tail(&self) {
        self.fresh_events();
        self.authorizer.tail_started(&tenant()).await.unwrap();
    }

    /// The tail hands over what is new.
    pub(crate) async fn observe(&self) {
        self.authorizer.observe(&tenant(), &self.fresh_events()).await.unwrap();
    }

    pub(crate) fn reads(&self) -> u64 {
        self.store.reads.load(Ordering::SeqCst)
    }

    /// What the log tells of changes of rights, as JSON.
    pub(crate) fn announced(&self) -> Vec<(EventType, serde_json::Value, Vec<PrincipalId>)> {
        let log = self.store.state.lock().unwrap().log.clone();
        log.into_iter()
            .map(|(_, publication)| {
                assert_eq!(publication.origin, EventOrigin::Server);
                let envelope: serde_json::Value = serde_json::from_slice(&[b"{", &publication.body[..]].concat()).unwrap();
                assert_eq!(envelope["actor"]["kind"], "server");
                (publication.event_type, envelope["payload"].clone(), publication.audience.as_slice().to_vec())
            })
            .collect()
    }
}

pub(crate) fn event(seq: u64, publication: Publication) -> Arc<Event> {
    let Publication { id, event_type, channel, audience, origin, created_at, body, deduplication: _, work: _ } = publication;
    Arc::new(Event::new(Seq::new(seq).unwrap(), id, event_type, channel, audience, origin, created_at, body))
}

/// An event of this channel and audience.
pub(crate) fn published(channel: Option<&str>, audience: &[&str], origin: EventOrigin) -> Event {
    let audience: Vec<_> = audience.iter().map(|name| id(name)).collect();
    Event::new(
        Seq::ZERO,
        EventId::new(Uuid::nil()),
        EventType::parse("a.b").unwrap(),
        channel.map(self::channel),
        Audience::new(&audience),
        origin,
        Timestamp::from_micros(0),
        "".into(),
    )
}
