//! Claims on their way to the worker. A caller that goes away in between, as a request does whose client hung up, leaves no item behind that
//! nobody knows of: the claim is finished without it, and given back uncounted.

use std::sync::Weak;

use authz::Caller;
use domain::{EventId, StoreError};
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::{Claimed, Inbox, InboxError, LeaseToken};

/// What a claim answers, until its caller takes it.
pub(crate) struct Handing<T> {
    answer: Option<T>,
    claims: fn(&T) -> Vec<(EventId, LeaseToken)>,
    inbox: Weak<Inbox>,
    caller: Caller,
}

impl<T> Handing<T> {
    /// What was claimed.
    pub(crate) const fn answer(&self) -> Option<&T> {
        self.answer.as_ref()
    }

    /// It arrived.
    ///
    /// # Errors
    /// When it was taken before.
    pub(crate) fn take(mut self) -> Result<T, InboxError> {
        self.answer.take().ok_or(InboxError::Store(StoreError::InDoubt))
    }
}

impl<T> Drop for Handing<T> {
    fn drop(&mut self) {
        let claims = self.answer.as_ref().map(self.claims).unwrap_or_default();
        let Some(inbox) = self.inbox.upgrade().filter(|_| !claims.is_empty()) else { return };
        let caller = self.caller.clone();
        let tasks = inbox.tasks.clone();
        tasks.spawn(async move {
            if let Err(error) = inbox.give_back_unread(&caller, claims).await {
                tracing::warn!(error = %error, "items whose client is gone are held until their leases end");
            }
        });
    }
}

impl Inbox {
    /// Runs a claim to its end, whether or not its caller waits for it.
    pub(crate) async fn hand<T: Send + 'static>(
        &self,
        caller: &Caller,
        claims: fn(&T) -> Vec<(EventId, LeaseToken)>,
        claim: impl Future<Output = Result<T, InboxError>> + Send + 'static,
    ) -> Result<Handing<T>, InboxError> {
        let (sender, receiver) = oneshot::channel();
        let (inbox, caller) = (self.me.clone(), caller.clone());
        let work = async move {
            let answer = claim.await.map(|answer| Handing { answer: Some(answer), claims, inbox, caller });
            // Nobody is there any more: dropping it gives it back.
            drop(sender.send(answer));
        };
        self.tasks.spawn(work.instrument(tracing::Span::current()));
        receiver.await.unwrap_or(Err(InboxError::Store(StoreError::InDoubt)))
    }
}

/// An item and the secret of its lease.
pub(crate) fn lease_of(claimed: &Claimed) -> (EventId, LeaseToken) {
    (claimed.item.facts.event_id, claimed.token.clone())
}
