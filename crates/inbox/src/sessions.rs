//! Sessions: what an agent says about itself when it subscribes. A record for people and for `single_active_session`; no right follows from it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use authz::Caller;
use domain::{AgentSessionId, StoreError, Timestamp};

use crate::{Inbox, InboxError, Subscribe, Subscribed};

/// When each session was last written down as heard of, so that polls do not write each time.
#[derive(Debug, Default)]
pub(crate) struct Touches(Mutex<HashMap<AgentSessionId, Timestamp>>);

impl Inbox {
    /// Opens a session of the calling agent.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `stream.subscribe`; [`InboxError::Invalid`] for a device name that
    /// is too long; the store's.
    pub async fn subscribe(&self, _caller: &Caller, _request: Subscribe) -> Result<Subscribed, InboxError> {
        drop(self.touches.0.lock().unwrap_or_else(PoisonError::into_inner));
        Err(StoreError::Unavailable.into())
    }
}
