//! The store in memory: one tenant, its identities, its log and its cursors, and faults on demand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use agents::{ConsumerKey, CursorRow};
use authz::{IdempotentAnswer, Permission, Principal, PrincipalKind, Resource, Role, Scopes, TenantState, TokenRecord, TokenSecret};
use bytes::Bytes;
use domain::{
    Audience, ChannelRef, Clock, Event, EventId, EventOrigin, EventType, IdGenerator, PrincipalId, Publication, Seq, StoreError, SyncEpoch,
    SystemClock, SystemIds, TenantId, Timestamp, TokenId,
};
use sync::{CommitListener, Head};

/// Everything that is stored.
pub(crate) struct State {
    pub(crate) served: TenantState,
    pub(crate) head: Head,
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) principals: Vec<Principal>,
    pub(crate) tokens: Vec<TokenRecord>,
    pub(crate) grants: Vec<(PrincipalId, Resource, Permission)>,
    pub(crate) rows: BTreeMap<ConsumerKey, CursorRow>,
    /// What every write answers.
    pub(crate) broken_writes: Option<StoreError>,
    /// What every read of a page answers.
    pub(crate) broken_pages: Option<StoreError>,
    /// Reading this principal's rights panics.
    pub(crate) cursed: Option<PrincipalId>,
    /// What creating requests were answered, by principal and key.
    pub(crate) answers: Vec<(PrincipalId, String, IdempotentAnswer)>,
    listener: Option<Arc<dyn CommitListener>>,
}

/// The store.
pub(crate) struct Memory {
    state: Mutex<State>,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        let head = Head { seq: Seq::ZERO, floor: Seq::ZERO.next(), epoch: SyncEpoch::new(SystemIds.uuid()) };
        let state = State {
            served: TenantState::Active,
            head,
            events: Vec::new(),
            principals: Vec::new(),
            tokens: Vec::new(),
            grants: Vec::new(),
            rows: BTreeMap::new(),
            broken_writes: None,
            broken_pages: None,
            cursed: None,
            answers: Vec::new(),
            listener: None,
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    pub(crate) fn tenant() -> TenantId {
        TenantId::parse("default").unwrap()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn set_listener(&self, listener: Arc<dyn CommitListener>) {
        self.state().listener = Some(listener);
    }

    /// Makes a principal with a token of every scope; answers the token.
    pub(crate) fn principal(&self, id: &str, kind: PrincipalKind, role: Role) -> String {
        let (id, now) = (PrincipalId::parse(id).unwrap(), SystemClock::new().now());
        let secret = TokenSecret::generate(kind).unwrap();
        let mut state = self.state();
        state.principals.push(Principal { id: id.clone(), kind, role, display_name: None, enabled: true, created_at: now });
        state.tokens.push(TokenRecord {
            id: TokenId::new(SystemIds.uuid()),
            principal: id,
            hash: secret.hash(),
            prefix: secret.prefix().to_owned(),
            scopes: authz::Scope::ALL.into_iter().collect::<Scopes>(),
            created_at: now,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        });
        secret.reveal().to_owned()
    }

    /// Makes another token of a principal, that expires; answers it.
    pub(crate) fn principal_until(&self, id: &str, expires_at: Timestamp) -> String {
        let secret = TokenSecret::generate(PrincipalKind::Agent).unwrap();
        let mut state = self.state();
        let first = state.tokens.iter().find(|token| token.principal.as_str() == id).unwrap().clone();
        let (id, hash, prefix) = (TokenId::new(SystemIds.uuid()), secret.hash(), secret.prefix().to_owned());
        state.tokens.push(TokenRecord { id, hash, prefix, expires_at: Some(expires_at), ..first });
        secret.reveal().to_owned()
    }

    pub(crate) fn grant(&self, principal: &str, resource: &str, permission: Permission) {
        self.state().grants.push((PrincipalId::parse(principal).unwrap(), resource.parse().unwrap(), permission));
    }

    /// Appends an event to `support/general` as if somebody had published it.
    pub(crate) fn publish(&self, payload: &str) -> u64 {
        let id = EventId::new(SystemIds.uuid());
        let body = format!(r#""id":"{id}","type":"message.created","payload":{payload}}}"#);
        let publication = Publication {
            id,
            event_type: EventType::parse("message.created").unwrap(),
            channel: Some(ChannelRef::parse("support/general").unwrap()),
            audience: Audience::default(),
            origin: EventOrigin::Published,
            created_at: SystemClock::new().now(),
            body: Bytes::from(body),
            deduplication: None,
            work: None,
        };
        self.append_all(std::slice::from_ref(&publication));
        self.state().head.seq.get()
    }

    pub(crate) fn append_all(&self, publications: &[Publication]) -> Vec<Seq> {
        let (events, epoch, listener) = {
            let mut state = self.state();
            let mut events = Vec::new();
            for publication in publications {
                let seq = state.head.seq.next();
                state.head.seq = seq;
                let publication = publication.clone();
                let event = Event::new(
                    seq,
                    publication.id,
                    publication.event_type,
                    publication.channel,
                    publication.audience,
                    publication.origin,
                    publication.created_at,
                    publication.body,
                );
                events.push(Arc::new(event));
            }
            state.events.extend(events.iter().cloned());
            (events, state.head.epoch, state.listener.clone())
        };
        if let Some(listener) = listener {
            listener.committed(&Self::tenant(), epoch, &events);
        }
        events.iter().map(|event| event.seq).collect()
    }
}
