//! The tail of one tenant: hands every event, in order, once, to the observer, then to the readers (design/stream.md, "Tail").

use std::sync::Arc;
use std::time::Duration;

use domain::{Event, StoreError};

use crate::inbox::Waiting;
use crate::shared::Shared;
use crate::{Page, PageRange};

const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Why a tail ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ended;

/// Runs until it is cancelled or the history is gone.
pub(crate) async fn run(shared: Arc<Shared>) {
    let metrics = &shared.parts.metrics;
    metrics.live_tails.up();
    tokio::select! {
        () = shared.cancel.cancelled() => {}
        Ended = follow(&shared) => shared.mark_replaced(),
    }
    metrics.live_tails.down();
    shared.parts.observer.tail_stopped(&shared.tenant);
}

async fn follow(shared: &Shared) -> Ended {
    loop {
        let waiting = shared.inbox.next().await;
        if let Err(ended) = advance(shared, waiting).await {
            return ended;
        }
    }
}

/// Takes what continues the position, and reads from the store what else there is.
async fn advance(shared: &Shared, waiting: Waiting) -> Result<(), Ended> {
    let metrics = &shared.parts.metrics;
    let mut must_look = waiting.must_look;
    for batch in &waiting.batches {
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { continue };
        let expected = shared.seq().next();
        if first.seq == expected {
            accept(shared, batch).await?;
            metrics.events_from_memory.add(batch.len() as u64);
        } else {
            let counter = if first.seq < expected { &metrics.batches_stale } else { &metrics.batches_ahead };
            counter.increment();
            must_look |= last.seq >= expected;
        }
    }
    if must_look { catch_up(shared).await } else { Ok(()) }
}

/// Reads from the store up to the head of the first snapshot: what came after it was offered, or is looked for again.
async fn catch_up(shared: &Shared) -> Result<(), Ended> {
    let mut target = None;
    loop {
        let Some(page) = repeat(shared, "read", || next_page(shared)).await? else { return Err(Ended) };
        accept(shared, &page.events).await?;
        shared.parts.metrics.events_from_store.add(page.events.len() as u64);
        if shared.seq() >= *target.get_or_insert(page.head.seq) {
            return Ok(());
        }
    }
}

/// The page after the position; `None` when it does not continue what was observed.
async fn next_page(shared: &Shared) -> Result<Option<Page>, StoreError> {
    let (position, settings) = (shared.seq(), &shared.parts.settings);
    let range = PageRange { after: position, up_to: None, max_events: settings.page_max_events, max_bytes: settings.page_max_bytes };
    let page = shared.parts.store.page(&shared.tenant, range).await?;
    // Rows that retention removed unobserved may have changed rights: only a fresh start knows them.
    if !shared.continues(&page.head, position) || page.is_below_floor(position) {
        return Ok(None);
    }
    let is_continued = page.events.first().map_or(page.head.seq == position, |event| event.seq == position.next());
    if is_continued { Ok(Some(page)) } else { Err(StoreError::Corrupt(format!("the log does not continue after {position}"))) }
}

/// Has the observer see the events, then makes them visible.
async fn accept(shared: &Shared, events: &[Arc<Event>]) -> Result<(), Ended> {
    if events.is_empty() {
        return Ok(());
    }
    repeat(shared, "observe", || shared.parts.observer.observe(&shared.tenant, events)).await?;
    shared.publish(events);
    Ok(())
}

/// Repeats what failed in the store, with growing pauses up to `database.listen_reconnect_backoff_cap`. A tenant that is gone ends the tail.
async fn repeat<T, F: Future<Output = Result<T, StoreError>>>(
    shared: &Shared,
    step: &'static str,
    mut act: impl FnMut() -> F,
) -> Result<T, Ended> {
    let cap = shared.parts.settings.backoff_cap;
    let mut pause = FIRST_PAUSE.min(cap);
    let mut failures = 0_u64;
    loop {
        match act().await {
            Ok(done) => {
                if failures > 0 {
                    tracing::info!(tenant.id = %shared.tenant, step, failures, "the tail goes on");
                }
                return Ok(done);
            }
            Err(StoreError::TenantInactive) => return Err(Ended),
            Err(error) => {
                // A store that is away for long is told of once.
                if failures == 0 {
                    tracing::warn!(tenant.id = %shared.tenant, step, error = %error, "the tail repeats a step that failed");
                }
                failures += 1;
                shared.parts.metrics.tail_retries.increment();
            }
        }
        let stalled = Stalled::begin(shared);
        tokio::time::sleep(pause).await;
        drop(stalled);
        pause = pause.saturating_mul(2).min(cap);
    }
}

/// Counts a tail as stalled while it waits to repeat, also when it is cancelled meanwhile.
struct Stalled<'a>(&'a Shared);

impl<'a> Stalled<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.parts.metrics.stalled_tails.up();
        Self(shared)
    }
}

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        self.0.parts.metrics.stalled_tails.down();
    }
}
