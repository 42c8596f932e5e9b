//! `pollInbox`: what an inbox has above a cursor. Looks and waits; never changes an item.

use authz::{Action, Caller};
use domain::Seq;
use tokio::time::Instant;

use crate::wait::{Again, Wait};
use crate::{Inbox, InboxError, InboxPage, InboxView, Poll, PollRange, Polled, Recipient};

impl Inbox {
    /// Current items of the calling agent whose `ring_seq` lies above a cursor, waiting for the first if it may.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `inbox.poll`; [`InboxError::Invalid`];
    /// [`InboxError::EpochChanged`] for a cursor of another history; [`InboxError::CursorReset`] for one that lies below what the log retains
    /// or above its head; the store's.
    pub async fn poll(&self, caller: &Caller, request: Poll) -> Result<Polled, InboxError> {
        let (recipient, since) = (self.own(caller, Action::InboxPoll).await?, Instant::now());
        let limit = Self::limit("/limit", request.limit, self.settings().poll_max_items)?;
        let queues = self.queue_filter(request.queues.clone())?;
        let range = PollRange { after: request.after, limit, claimable_only: request.claimable_only, queues };
        self.parts.metrics.polls.increment();
        self.bells.fetched(&recipient);
        if let Some(session) = &request.session {
            self.touch(&recipient, session, Some(request.after)).await;
        }
        let mut wait: Option<Wait> = None;
        loop {
            let page = self.page(&recipient, &request, &range).await?;
            if !page.items.is_empty() {
                return Ok(polled(page, request.after));
            }
            let is_first = wait.is_none();
            if is_first {
                wait = self.wait(&recipient, request.wait, since).await;
            }
            let Some(wait) = wait.as_mut() else { return Ok(polled(page, request.after)) };
            let again = if is_first { Again::Rung } else { wait.again(None).await };
            if again == Again::Last || again == Again::Drained {
                return self.last_look(caller, &recipient, &request, &range, again).await;
            }
            wait.begin_look();
            self.own(caller, Action::InboxPoll).await?;
        }
    }

    /// The end of a wait: a hint may have been lost.
    async fn last_look(
        &self,
        caller: &Caller,
        recipient: &Recipient,
        request: &Poll,
        range: &PollRange,
        again: Again,
    ) -> Result<Polled, InboxError> {
        if again == Again::Last {
            self.own(caller, Action::InboxPoll).await?;
        }
        let page = self.page(recipient, request, range).await?;
        if page.items.is_empty() {
            self.parts.metrics.long_poll_timeouts.increment();
        }
        Ok(polled(page, request.after))
    }

    async fn page(&self, recipient: &Recipient, request: &Poll, range: &PollRange) -> Result<InboxPage, InboxError> {
        let page = self.parts.store.poll(recipient, range).await?;
        check_epoch(&page.view, request)?;
        if is_out_of_range(&page.view, range.after) {
            self.parts.metrics.cursor_resets.increment();
            let head = page.view.head();
            return Err(InboxError::CursorReset { oldest: page.oldest.unwrap_or(head), head, epoch: page.view.epoch });
        }
        Ok(page)
    }
}

fn check_epoch(view: &InboxView, request: &Poll) -> Result<(), InboxError> {
    match request.epoch {
        Some(epoch) if epoch != view.epoch => Err(InboxError::EpochChanged { head: view.head(), epoch: view.epoch, floor: view.floor }),
        _ => Ok(()),
    }
}

/// Whether nothing can be said about what lies above the cursor: rows between it and the floor are gone, or it was never reached.
fn is_out_of_range(view: &InboxView, after: Seq) -> bool {
    after > view.log_head || (after > Seq::ZERO && after < view.floor.previous())
}

fn polled(page: InboxPage, after: Seq) -> Polled {
    let row = page.view.row.as_ref();
    let items = page.items.into_iter().map(|item| {
        let paused = row.is_some_and(|row| row.is_paused(&item.facts.queue));
        (item, paused)
    });
    let items: Vec<_> = items.collect();
    let next = items.last().map_or(after, |(item, _)| item.ring_seq);
    Polled { head: page.view.head(), epoch: page.view.epoch, items, next, more: page.more }
}
