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
    /// [`InboxError::EpochChanged`] for a cursor of another history; [`InboxError::CursorReset`] for one above the log's head, or below both what
    /// the log retains and what is current; the store's.
    pub async fn poll(&self, caller: &Caller, request: Poll) -> Result<Polled, InboxError> {
        let (recipient, since) = (self.own(caller, Action::InboxPoll).await?, Instant::now());
        let limit = Self::limit("/limit", request.limit, self.settings().poll_max_items)?;
        let queues = self.queue_filter(request.queues.clone())?;
        let (after, claimable_only, scan_max) = (request.after, request.claimable_only, self.settings().scan_max.max(1));
        let range = PollRange { after, limit, claimable_only, queues, scan_max };
        self.parts.metrics.polls.increment();
        self.bells.fetched(&recipient);
        self.touch(&recipient, request.session.as_ref(), Some(request.after)).await;
        let mut wait: Option<Wait> = None;
        loop {
            let page = self.page(&recipient, &request, &range).await?;
            if !page.items.is_empty() || page.more {
                return Ok(polled(page));
            }
            let is_first = wait.is_none();
            if is_first {
                wait = self.wait(caller, &recipient, request.wait, since).await;
            }
            let Some(wait) = wait.as_mut() else { return Ok(polled(page)) };
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
        Ok(polled(page))
    }

    async fn page(&self, recipient: &Recipient, request: &Poll, range: &PollRange) -> Result<InboxPage, InboxError> {
        let page = self.parts.store.poll(recipient, range).await?;
        check_epoch(&page.view, request)?;
        if is_out_of_range(&page, range.after) {
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

/// Whether the cursor was never reached, or is older than everything that is known of the inbox: rows between it and the floor are gone, and so
/// are all items that were current when it was handed out. Between the oldest current item and the head a cursor is exact, however old that
/// item is: items outlive their rows in the log.
fn is_out_of_range(page: &InboxPage, after: Seq) -> bool {
    let (view, head) = (&page.view, page.view.head());
    let known_from = page.oldest.map_or(head, |oldest| oldest.min(head));
    after > view.log_head || (after > Seq::ZERO && after < view.floor.previous() && after < known_from)
}

fn polled(page: InboxPage) -> Polled {
    let row = page.view.row.as_ref();
    let items = page.items.into_iter().map(|item| {
        let paused = row.is_some_and(|row| row.is_paused(&item.facts.queue));
        (item, paused)
    });
    Polled { head: page.view.head(), epoch: page.view.epoch, items: items.collect(), next: page.next, more: page.more }
}
