//! The inbox over the store in memory, with the real authorizer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use authz::{Authorizer, Caller, IdentityStore};
use domain::{AgentSessionId, EventId, PrincipalId, Seq};
use inbox::{
    AckResult, AckState, Acknowledge, Claim, ClaimNext, Claimed, GiveBack, Heartbeat, Inbox, InboxError, InboxParts, Item, ItemOutcome,
    LeaseKey, Metrics, Poll, Report, Settings, Sweeper,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::identities::Identities;
use crate::memory::{Memory, New, recipient};

pub(crate) fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

pub(crate) fn agent(id: &str) -> PrincipalId {
    PrincipalId::parse(id).unwrap()
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct World {
    pub(crate) memory: Arc<Memory>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) alpha: Caller,
    pub(crate) alex: Caller,
    identities: Arc<Identities>,
    authorizer: Arc<Authorizer>,
    stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(configure: impl FnOnce(&mut Settings)) -> Self {
        Self::over(Memory::new(), Arc::new(Identities::new()), configure).await
    }

    /// The same store under a process that was started anew.
    pub(crate) async fn restart(&self) -> Self {
        Self::over(self.memory.reopened(), Arc::clone(&self.identities), |_| {}).await
    }

    async fn over(memory: Arc<Memory>, identities: Arc<Identities>, configure: impl FnOnce(&mut Settings)) -> Self {
        let identity_store: Arc<dyn IdentityStore> = identities.clone();
        let authorizer = Authorizer::new(identity_store.clone(), memory.clock.clone());
        let mut settings = Settings::default();
        configure(&mut settings);
        let inbox = Inbox::new(InboxParts {
            store: memory.clone(),
            transactions: memory.clone(),
            authorizer: authorizer.clone(),
            identities: identity_store,
            clock: memory.clock.clone(),
            ids: memory.ids.clone(),
            tails: memory.clone(),
            metrics: Arc::new(Metrics::default()),
            settings,
        });
        memory.bells.set(inbox.bells().clone()).unwrap();
        memory.edit(|state| drop(state.lease_key.get_or_insert_with(|| LeaseKey::new([7; 32])).clone()));
        let (alpha, alex) = (
            authorizer.authenticate(identities.secret("alpha")).await.unwrap(),
            authorizer.authenticate(identities.secret("alex")).await.unwrap(),
        );
        Self { memory, inbox, alpha, alex, identities, authorizer, stop: CancellationToken::new(), tasks: TaskTracker::new() }
    }

    pub(crate) async fn caller(&self, id: &str) -> Caller {
        self.authorizer.authenticate(self.identities.secret(id)).await.unwrap()
    }

    /// Has the sweeper run until the world ends.
    pub(crate) fn sweep_in_background(&self) {
        let (sweeper, stop) = (Sweeper::new(self.inbox.clone()), self.stop.clone());
        self.tasks.spawn(async move { sweeper.run(stop).await });
    }

    pub(crate) async fn sweep(&self) {
        while Sweeper::new(self.inbox.clone()).sweep().await.unwrap() {}
    }

    pub(crate) async fn publish(&self) -> EventId {
        self.memory.publish("alpha", New::default()).await
    }

    pub(crate) async fn publish_many(&self, count: usize) -> Vec<EventId> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.publish().await);
        }
        events
    }

    pub(crate) fn item(&self, event: EventId) -> Item {
        let state = self.memory.state();
        let number = state.rows[&recipient("alpha")].number;
        state.items[&(number, event)].clone()
    }

    pub(crate) fn state_of(&self, event: EventId) -> AckState {
        self.item(event).state
    }

    pub(crate) async fn take(&self, limit: usize) -> Vec<Claimed> {
        self.inbox.claim_next(&self.alpha, next(limit)).await.unwrap().claims
    }

    pub(crate) async fn take_one(&self) -> Claimed {
        let mut claims = self.take(1).await;
        assert_eq!(claims.len(), 1, "there is something to claim");
        claims.remove(0)
    }

    pub(crate) async fn claim(&self, events: &[EventId]) -> Vec<ItemOutcome<Claimed>> {
        let answer = self.inbox.claim(&self.alpha, claim(events)).await.unwrap();
        assert_eq!(answer.iter().map(|(event, _)| *event).collect::<Vec<_>>(), events);
        answer.into_iter().map(|(_, outcome)| outcome).collect()
    }

    pub(crate) async fn ack(&self, claimed: &Claimed, result: AckResult) -> ItemOutcome<Item> {
        self.inbox.acknowledge(&self.alpha, None, vec![ack(claimed, result)]).await.unwrap().remove(0)
    }

    pub(crate) async fn release(&self, claimed: &Claimed, reason: &str, rest: Option<Duration>) -> Result<Item, InboxError> {
        let request = GiveBack {
            event: claimed.item.facts.event_id,
            token: claimed.token.reveal().to_owned(),
            reason: reason.to_owned(),
            rest,
            session: None,
        };
        self.inbox.release(&self.alpha, request).await
    }

    pub(crate) async fn beat(&self, claimed: &Claimed, extend: Option<Duration>) -> ItemOutcome<inbox::Extended> {
        let beat = Heartbeat { event: claimed.item.facts.event_id, token: claimed.token.reveal().to_owned(), extend };
        self.inbox.heartbeat(&self.alpha, None, vec![beat]).await.unwrap().remove(0)
    }

    /// The types of the log's rows and the reasons that they name, from position `from` on.
    pub(crate) fn announced(&self, from: Seq) -> Vec<(String, Option<String>)> {
        let state = self.memory.state();
        let rows = state.log.iter().skip(from.get() as usize).filter(|row| row.event_type.as_str().starts_with("inbox."));
        rows.map(|row| {
            let body: serde_json::Value = serde_json::from_str(&format!("{{{}", std::str::from_utf8(&row.body).unwrap())).unwrap();
            let reason = body["payload"]["reason"].as_str().or(body["payload"]["cause"].as_str()).map(str::to_owned);
            (row.event_type.to_string(), reason)
        })
        .collect()
    }

    pub(crate) fn log_head(&self) -> Seq {
        self.memory.state().log_head()
    }

    pub(crate) fn units(&self) -> usize {
        self.memory.units.load(Ordering::SeqCst)
    }
}

pub(crate) fn next(limit: usize) -> ClaimNext {
    ClaimNext { queues: None, limit, lease: None, wait: Duration::ZERO, session: None, key: None }
}

pub(crate) fn waiting(seconds: u64) -> ClaimNext {
    ClaimNext { wait: Duration::from_secs(seconds), ..next(1) }
}

pub(crate) fn claim(events: &[EventId]) -> Claim {
    Claim { events: events.to_vec(), lease: None, session: None, key: None }
}

pub(crate) fn ack(claimed: &Claimed, result: AckResult) -> Acknowledge {
    let (event, token) = (claimed.item.facts.event_id, claimed.token.reveal().to_owned());
    Acknowledge { event, token, result, report: Report::default() }
}

pub(crate) fn poll(after: Seq) -> Poll {
    Poll { after, limit: 100, ..Poll::default() }
}

pub(crate) fn session(name: &str) -> AgentSessionId {
    AgentSessionId::parse(&format!("sess_{name}")).unwrap()
}

/// A word for an outcome, for comparison.
pub(crate) fn word<T>(outcome: &ItemOutcome<T>) -> &'static str {
    match outcome {
        ItemOutcome::Ok(_) => "ok",
        ItemOutcome::AlreadyClaimed => "already_claimed",
        ItemOutcome::NotAvailable => "not_available",
        ItemOutcome::Expired => "expired",
        ItemOutcome::NotFound => "not_found",
        ItemOutcome::LeaseLost => "lease_lost",
        ItemOutcome::LimitReached => "limit_reached",
    }
}
