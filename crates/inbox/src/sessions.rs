//! Sessions: what an agent says about itself when it subscribes. A record for people and for `single_active_session`; no right follows from it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{AgentSessionId, Seq, StoreError, Timestamp, TokenId};

use crate::change::{Change, Kit};
use crate::inbox::Job;
use crate::{AgentSession, Inbox, InboxError, InboxTx, Recipient, Subscribe, Subscribed};

/// Transports that there are, as sessions name them.
const TRANSPORTS: [&str; 4] = ["sse", "websocket", "long-poll", "poll"];

/// Characters of a device's name.
const DEVICE_MAX: usize = 128;

/// When each session was last written down as heard of, so that not every poll writes.
#[derive(Debug, Default)]
pub(crate) struct Touches(Mutex<HashMap<AgentSessionId, Timestamp>>);

impl Touches {
    /// How many are remembered before old ones are forgotten.
    const MANY: usize = 10_000;

    /// Whether it is time to write down again that `session` was heard of.
    fn is_due(&self, session: &AgentSessionId, now: Timestamp, interval: Duration) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(session).is_none_or(|at| at.plus(interval) <= now)
    }

    /// It is written down. Only for sessions that there are: names that clients make up are not remembered.
    fn note(&self, session: &AgentSessionId, now: Timestamp, interval: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= Self::MANY {
            known.retain(|_, at| at.plus(interval) > now);
        }
        if known.len() < Self::MANY {
            known.insert(session.clone(), now);
        }
    }
}

impl Inbox {
    /// Opens a session of the calling agent.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `stream.subscribe`; [`InboxError::Invalid`] for a device name that
    /// is too long; the store's.
    pub async fn subscribe(&self, caller: &Caller, request: Subscribe) -> Result<Subscribed, InboxError> {
        let recipient = self.own(caller, Action::StreamSubscribe).await?;
        if request.device.as_ref().is_some_and(|device| device.is_empty() || device.chars().count() > DEVICE_MAX) {
            return Err(InboxError::invalid("/device_id", format!("1 to {DEVICE_MAX} characters")));
        }
        let unnamed = || StoreError::Conflict("a session id cannot be made");
        let session = AgentSessionId::parse(&format!("sess_{}", self.parts.ids.uuid().simple())).map_err(|_| unnamed())?;
        let known = |wanted: &String| TRANSPORTS.into_iter().find(|transport| transport == wanted);
        let transport = request.transports.iter().find_map(known).unwrap_or("poll");
        let (token, is_claiming) = (caller.token, request.wants_claims);
        let job = SubscribeJob {
            kit: self.kit.clone(),
            recipient: recipient.clone(),
            session: session.clone(),
            device: request.device,
            transport,
            last_seen: request.last_seen,
            token,
            is_claiming,
        };
        self.run("subscribe", job).await?;
        let view = self.view(&recipient).await?;
        Ok(Subscribed { session, head: view.head(), epoch: view.epoch, transport })
    }

    /// Notes that a session was heard of, where a request names one, at most every `inbox.session_touch_interval`. It is a note: nothing fails
    /// because of it, and a session that is not the inbox's is passed by without a write.
    pub(crate) async fn touch(&self, recipient: &Recipient, session: Option<&AgentSessionId>, last_seen: Option<Seq>) {
        let Some(session) = session else { return };
        let (now, interval) = (self.parts.clock.now(), self.settings().session_touch_interval);
        if !self.touches.is_due(session, now, interval) {
            return;
        }
        let is_own = match self.parts.store.session(&recipient.tenant, session).await {
            Ok(found) => found.is_some_and(|found| found.recipient == *recipient),
            Err(error) => {
                tracing::debug!(error = %error, "it could not be looked up which session was heard of");
                false
            }
        };
        if is_own && self.write_touch(recipient, session, last_seen, true).await {
            self.touches.note(session, now, interval);
        }
    }

    /// Answers whether it was written.
    pub(crate) async fn write_touch(
        &self,
        recipient: &Recipient,
        session: &AgentSessionId,
        last_seen: Option<Seq>,
        is_active: bool,
    ) -> bool {
        let job = TouchJob { recipient: recipient.clone(), session: session.clone(), last_seen, is_active };
        let written = self.run("touch_session", job).await;
        written.inspect_err(|error| tracing::debug!(error = %error, "it could not be noted that a session was heard of")).unwrap_or(false)
    }
}

struct SubscribeJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    session: AgentSessionId,
    device: Option<String>,
    transport: &'static str,
    last_seen: Seq,
    token: TokenId,
    is_claiming: bool,
}

#[async_trait]
impl Job for SubscribeJob {
    type Answer = ();

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<(), InboxError> {
        let mut change = Change::open(tx, &self.kit, &self.recipient).await?;
        let session = AgentSession {
            id: self.session.clone(),
            recipient: self.recipient.clone(),
            device: self.device.clone(),
            transport: self.transport.to_owned(),
            connected_at: change.now,
            heartbeat_at: change.now,
            last_seen: self.last_seen,
            token: self.token,
            is_active: true,
        };
        change.tx.put_session(&session).await?;
        if self.is_claiming {
            change.row.active_session = Some(self.session.clone());
        }
        change.close().await?;
        Ok(())
    }
}

struct TouchJob {
    recipient: Recipient,
    session: AgentSessionId,
    last_seen: Option<Seq>,
    is_active: bool,
}

#[async_trait]
impl Job for TouchJob {
    type Answer = bool;

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<bool, InboxError> {
        Ok(tx.touch_session(&self.recipient, &self.session, self.last_seen, self.is_active).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{AgentSessionId, Timestamp};

    use super::Touches;

    #[test]
    fn a_session_is_remembered_once_it_is_written_down_and_not_because_it_was_asked_about() {
        let (touches, interval) = (Touches::default(), Duration::from_secs(15));
        let (start, session) = (Timestamp::from_micros(0), AgentSessionId::parse("sess_1").unwrap());
        for number in 0..50 {
            assert!(touches.is_due(&AgentSessionId::parse(&format!("sess_{number}")).unwrap(), start, interval));
        }
        assert!(touches.0.lock().unwrap().is_empty());
        touches.note(&session, start, interval);
        assert!(!touches.is_due(&session, start, interval));
        assert!(touches.is_due(&session, start.plus(interval), interval));
    }
}
