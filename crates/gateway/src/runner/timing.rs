//! What a runner does at certain times: pings, the end of a silent peer, and when to look again.

use std::pin::pin;
use std::time::Duration;

use protocol::CloseCode;
use tokio::time::Instant;

use super::{End, Runner, Track, within};
use crate::Connection;

/// How long a token whose expiry is reached by one clock and not by the other is waited for.
const EXPIRY_PAUSE: Duration = Duration::from_millis(1);

impl Runner<'_> {
    /// Pings the peer each `gateway.heartbeat_interval` and gives it up after two of silence.
    pub(super) async fn tend<C: Connection>(&mut self, connection: &mut C, now: Instant) -> Result<(), End> {
        let interval = self.gateway.settings.heartbeat_interval;
        if now >= self.silent_at() {
            // A runner that was held up itself finds here what came in meanwhile.
            self.hear_what_waits(connection).await?;
            if now >= self.silent_at() {
                return Err(End::Close(CloseCode::HeartbeatTimeout));
            }
        }
        if now < self.ping_at {
            return Ok(());
        }
        self.ping_at = now + interval;
        let ping = async {
            connection.ping().await?;
            connection.flush().await
        };
        within(&self.link, self.gateway.settings.write_timeout, pin!(ping)).await
    }

    fn silent_at(&self) -> Instant {
        self.heard + 2 * self.gateway.settings.heartbeat_interval
    }

    /// When this runner has to look again although nothing happened.
    pub(super) fn next_instant(&self) -> Instant {
        let mut next = self.ping_at.min(self.silent_at());
        if let Some(end) = self.caller.expires_at {
            let left = end.since(self.gateway.clock.now()).max(EXPIRY_PAUSE);
            next = next.min(Instant::now() + left);
        }
        if self.job.is_some() {
            return next;
        }
        if let Some(at) = self.retry.pending() {
            return next.min(at);
        }
        if self.in_page {
            next = next.min(self.keep_page_until);
        }
        match &self.track {
            Track::Consumer(window) => window.deadline().map_or(next, |deadline| next.min(deadline)),
            Track::Client(_) => next,
        }
    }
}
