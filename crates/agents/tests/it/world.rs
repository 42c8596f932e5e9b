//! The use cases over fakes of their ports, with the real authorizer.

use std::sync::{Arc, Mutex};

use agents::{
    ConsumerApi, ConsumerError, ConsumerFeed, ConsumerKey, ConsumerService, CursorStore, FeedHead, FeedPage, Holder, PollRequest, Settings,
};
use async_trait::async_trait;
use authz::{Authorizer, Caller, IdentityStore};
use domain::{Clock, ConsumerName, PrincipalId, Seq, SyncEpoch, TenantId, Timestamp};

use crate::cursors::Cursors;
use crate::identities::Identities;

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

pub(crate) fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

pub(crate) fn epoch(number: u64) -> SyncEpoch {
    format!("00000000-0000-0000-0000-{number:012}").parse().unwrap()
}

pub(crate) fn tenant() -> TenantId {
    TenantId::parse("default").unwrap()
}

pub(crate) fn name(text: &str) -> ConsumerName {
    ConsumerName::parse(text).unwrap()
}

pub(crate) fn key(agent: &str, consumer: &str) -> ConsumerKey {
    ConsumerKey { tenant: tenant(), agent: PrincipalId::parse(agent).unwrap(), name: name(consumer) }
}

pub(crate) fn session(number: u64) -> Holder {
    Holder::Gateway(format!("00000000-0000-0000-0003-{number:012}").parse().unwrap())
}

#[derive(Debug)]
struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        NOW
    }
}

/// Answers an empty page and writes down what it was asked.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) polls: Mutex<Vec<PollRequest>>,
    pub(crate) acked: Mutex<Vec<(ConsumerKey, u64)>>,
    pub(crate) head: FeedHead,
}

#[async_trait]
impl ConsumerFeed for Feed {
    async fn poll(&self, _: &Caller, request: PollRequest) -> Result<FeedPage, ConsumerError> {
        self.polls.lock().unwrap().push(request);
        Ok(FeedPage { events: Vec::new(), next_cursor: seq(40), head: self.head.head, epoch: self.head.epoch, unproven: false })
    }

    fn acked(&self, key: &ConsumerKey, acked: Seq) {
        self.acked.lock().unwrap().push((key.clone(), acked.get()));
    }

    async fn head(&self, _: &TenantId) -> Result<FeedHead, ConsumerError> {
        Ok(self.head)
    }
}

pub(crate) struct World {
    pub(crate) cursors: Arc<Cursors>,
    pub(crate) identities: Arc<Identities>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) service: ConsumerService,
    pub(crate) api: ConsumerApi,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let (cursors, identities) = (Arc::new(Cursors::new()), Arc::new(Identities::new()));
        let head = FeedHead { head: seq(41), epoch: epoch(1), floor: seq(3) };
        let feed = Arc::new(Feed { polls: Mutex::default(), acked: Mutex::default(), head });
        let cursor_store: Arc<dyn CursorStore> = cursors.clone();
        let identity_store: Arc<dyn IdentityStore> = identities.clone();
        let authorizer = Authorizer::new(identity_store.clone(), Arc::new(StoppedClock));
        let service = ConsumerService::new(cursor_store.clone(), identity_store.clone(), authorizer.clone(), settings);
        let api = ConsumerApi::new(cursor_store, identity_store, authorizer.clone(), feed.clone(), settings);
        Self { cursors, identities, authorizer, feed, service, api }
    }

    pub(crate) async fn caller(&self, id: &str) -> Caller {
        self.authorizer.authenticate(self.identities.secret(id)).await.unwrap()
    }
}
