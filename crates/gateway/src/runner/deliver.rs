//! Writing: batches of events, single frames, and the patience with a peer that does not read.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use domain::Event;
use protocol::{CloseCode, Cursor, ServerFrame};
use tokio::time::{Instant, sleep};

use super::work::Job;
use super::{End, Runner, Track, caught_up};
use crate::handshake::encode;
use crate::session::Link;
use crate::{Connection, PeerGone, Preparation, Verdict};

/// A batch ends above so many bytes, so that `gateway.write_timeout` is fair to a slow peer.
const BATCH_BYTES: usize = 256 * 1024;

/// How long the rest of a page waits for budget. Longer would let consumers that do nothing hold memory.
const PAGE_PATIENCE: Duration = Duration::from_millis(250);

/// What became of an event that was offered.
enum Offered {
    /// Its frame goes out.
    Send(Bytes),
    /// It is not for this reader.
    Passed,
    /// There is no budget for it: the page ends here.
    Full,
    /// The hook needs time.
    Held(Job),
}

/// Runs a write; a peer that does not drain it within `patience` is a slow consumer. A close that is asked for meanwhile wins.
///
/// Most writes are done at the first look. What waiting needs is allocated only when one is not, so that it costs idle connections
/// nothing.
pub(crate) async fn within<W>(link: &Link, patience: Duration, mut write: Pin<&mut W>) -> Result<(), End>
where
    W: Future<Output = Result<(), PeerGone>> + Send,
{
    if let Some(written) = look_once(write.as_mut()).await {
        return written.map_err(|PeerGone| End::Gone);
    }
    let waiting = async move {
        tokio::select! {
            biased;
            written = write => written.map_err(|PeerGone| End::Gone),
            code = link.closed() => Err(End::Close(code)),
            () = sleep(patience) => Err(End::Close(CloseCode::SlowConsumer)),
        }
    };
    Box::pin(waiting).await
}

/// Looks once whether `future` is ready.
pub(super) fn look_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> impl Future<Output = Option<F::Output>> {
    poll_fn(move |cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
}

impl Runner<'_> {
    /// Writes frames at once.
    pub(crate) async fn write<C, F>(&mut self, connection: &mut C, frames: F) -> Result<(), End>
    where
        C: Connection,
        F: IntoIterator<Item = Bytes, IntoIter: Send> + Send,
    {
        let write = async {
            for frame in frames {
                connection.feed(frame).await?;
            }
            connection.flush().await
        };
        within(&self.link, self.gateway.settings.write_timeout, pin!(write)).await
    }

    /// Offers events of the page, feeds at most `sync.outbound_queue_max` frames, and flushes once.
    pub(super) async fn send_batch<C: Connection>(&mut self, connection: &mut C, now: Instant) -> Result<(), End> {
        let (link, patience) = (Arc::clone(&self.link), self.gateway.settings.write_timeout);
        let mut held = None;
        within(&link, patience, pin!(self.feed_batch(connection, now, &mut held))).await?;
        self.job = held;
        Ok(())
    }

    async fn feed_batch<C: Connection>(&mut self, connection: &mut C, now: Instant, held: &mut Option<Job>) -> Result<(), PeerGone> {
        let (mut frames, mut bytes, mut redelivered) = (0, 0, 0);
        let mut first = None;
        self.keep_page_until = now + PAGE_PATIENCE;
        while frames < self.gateway.settings.outbound_queue_max.max(1) && bytes < BATCH_BYTES {
            let Some(event) = self.page.as_slice().first() else { break };
            let event = Arc::clone(event);
            self.unheard += 1;
            match self.offer(&event, now, &mut redelivered) {
                Offered::Send(frame) => {
                    (frames, bytes) = (frames + 1, bytes + frame.len());
                    first = first.or_else(|| (redelivered == 0 && event.seq > self.live_after).then_some(event.created_at));
                    connection.feed(frame).await?;
                }
                Offered::Passed => {}
                // The rest is kept for a moment: most consumers acknowledge while they work.
                Offered::Full => break,
                Offered::Held(job) => {
                    *held = Some(job);
                    break;
                }
            }
            self.page.next();
        }
        if held.is_none() && self.page.as_slice().is_empty() {
            self.end_page(connection).await?;
        }
        self.note_dispatched(frames, redelivered);
        connection.flush().await?;
        if let Some(accepted) = first {
            self.gateway.metrics.dispatch_latency.observe(self.gateway.clock.now().since(accepted));
        }
        Ok(())
    }

    /// Lets go of the rest of a page: what was passed behind the last dispatch is checked again.
    pub(super) fn drop_page(&mut self) {
        self.page = Vec::new().into_iter();
        self.in_page = false;
        self.verdict = None;
        self.track.cut_page();
    }

    /// Decides about one event with the rights of this moment.
    fn offer(&mut self, event: &Arc<Event>, now: Instant, redelivered: &mut u64) -> Offered {
        let verdict = self.verdict.take();
        // An acknowledgement can overtake the page.
        if event.seq <= self.track.read() {
            return Offered::Passed;
        }
        if !self.admission.admits(event) {
            self.track.pass(event.seq);
            return Offered::Passed;
        }
        if matches!(self.track, Track::Consumer(_)) {
            let verdict = match verdict {
                Some(verdict) => verdict,
                None => match self.gateway.hook.prepare(&self.caller.principal, event) {
                    Preparation::Ready(verdict) => verdict,
                    Preparation::Later(deciding) => return Offered::Held(Job::preparing(deciding)),
                },
            };
            if verdict == Verdict::Withhold {
                self.track.pass(event.seq);
                return Offered::Passed;
            }
        }
        match self.track.dispatch(event.seq, now) {
            Some(fields) => {
                *redelivered += u64::from(fields.redelivered);
                Offered::Send(event.dispatch_frame(fields))
            }
            None => Offered::Full,
        }
    }

    /// Ends the page: `cursor` and `catchup.complete`, when they are due, leave in the same write as its last events.
    async fn end_page<C: Connection>(&mut self, connection: &mut C) -> Result<(), PeerGone> {
        self.in_page = false;
        if let Some(seq) = self.track.end_page() {
            connection.feed(encode(&ServerFrame::Cursor(Cursor { seq }))).await?;
        }
        match self.track.caught_up() {
            Some(head) => connection.feed(caught_up(head)).await,
            None => Ok(()),
        }
    }

    fn note_dispatched(&self, frames: usize, redelivered: u64) {
        let metrics = &self.gateway.metrics;
        metrics.dispatched.add(frames as u64);
        if redelivered > 0 {
            metrics.redelivered.add(redelivered);
        }
        match &self.track {
            Track::Consumer(window) if frames > 0 => {
                self.session.set_oldest_sent(window.oldest());
                self.gateway.saver.touch(&self.session);
            }
            Track::Consumer(_) => {}
            Track::Client(progress) => self.session.set(progress.told()),
        }
    }
}
