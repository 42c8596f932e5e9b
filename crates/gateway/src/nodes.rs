//! What delivery tells other nodes over the same store, and what it makes of what they tell (design/stream.md, "Several nodes").
//!
//! A hint closes nothing: it has the session verified against the store. Whoever hears no hint learns of the take by the ticker's look.

use std::time::Duration;

use agents::{ConsumerKey, Holder};
use domain::Timestamp;
use sync::{Hint, HintListener};

use crate::Gateway;
use crate::registry::Held;

/// How far a look for takes reaches back beyond the last: a take becomes visible only when it is committed.
const OVERLAP: Duration = Duration::from_secs(10);

impl Gateway {
    /// A consumer was taken from somebody whom this process does not serve.
    pub(crate) fn tell_nodes(&self, key: &ConsumerKey) {
        if let Some(nodes) = &self.nodes {
            nodes.tell(Hint::Taken { tenant: key.tenant.clone(), agent: key.agent.clone(), consumer: key.name.clone() });
        }
    }

    /// Has every session verified whose consumer was taken by somebody else since the last look; answers when this one began. A store that one process uses alone knows no others.
    pub(crate) async fn look_for_takes(&self, last: Timestamp) -> Timestamp {
        if self.nodes.is_none() {
            return last;
        }
        let now = self.clock.now();
        match self.consumers.taken_since(last.minus(OVERLAP)).await {
            Ok(taken) => {
                for (key, holder) in taken {
                    self.was_taken(&key, holder);
                }
                now
            }
            Err(error) => {
                tracing::warn!(error.cause = %error, "who took consumers on other nodes could not be read; the next tick looks again");
                last
            }
        }
    }

    fn was_taken(&self, key: &ConsumerKey, holder: Option<Holder>) {
        if let Some(Held { session, .. }) = self.registry.held(key)
            && holder != Some(session.holder())
        {
            self.saver.touch(&session);
        }
        if holder != Some(Holder::Rest) {
            self.waiters.wake(key);
        }
    }
}

impl HintListener for Gateway {
    /// Another node took a consumer: the session that held it here is verified at once, and polls that wait for it look again.
    fn heard(&self, hint: &Hint) {
        let Hint::Taken { tenant, agent, consumer } = hint else { return };
        let key = ConsumerKey { tenant: tenant.clone(), agent: agent.clone(), name: consumer.clone() };
        if let Some(Held { session, .. }) = self.registry.held(&key) {
            self.saver.doubt(&session);
        }
        self.waiters.wake(&key);
    }
}
