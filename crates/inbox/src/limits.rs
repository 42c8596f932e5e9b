//! What every request is held to before anything else is done for it.

use domain::QueueName;

use crate::{Inbox, InboxError, QueueFilter};

impl Inbox {
    /// A limit: capped at `most`, refused below 1 (conventions).
    pub(crate) fn limit(pointer: &str, limit: usize, most: usize) -> Result<usize, InboxError> {
        if limit == 0 {
            return Err(InboxError::invalid(pointer, "at least 1"));
        }
        Ok(limit.min(most.max(1)))
    }

    /// A batch: not empty, not longer than `inbox.claim_max_items`.
    pub(crate) fn check_batch(&self, pointer: &str, length: usize) -> Result<(), InboxError> {
        let most = self.settings().claim_max_items;
        match length {
            0 => Err(InboxError::invalid(pointer, "at least one entry")),
            length if length > most => Err(InboxError::invalid(pointer, format!("{length} entries; at most {most}"))),
            _ => Ok(()),
        }
    }

    /// The queues that a request names.
    pub(crate) fn queue_filter(&self, only: Option<Vec<QueueName>>) -> Result<QueueFilter, InboxError> {
        let most = self.settings().max_queues;
        match &only {
            Some(only) if only.is_empty() => Err(InboxError::invalid("/queues", "at least one queue, or no such member")),
            Some(only) if only.len() > most => Err(InboxError::invalid("/queues", format!("at most {most} queues"))),
            _ => Ok(QueueFilter { only, except: Vec::new() }),
        }
    }

    /// Text of a worker: at most `most` bytes.
    pub(crate) fn check_text(pointer: String, text: Option<&String>, most: usize) -> Result<(), InboxError> {
        match text {
            Some(text) if text.len() > most => Err(InboxError::invalid(pointer, format!("{} bytes; at most {most}", text.len()))),
            _ => Ok(()),
        }
    }
}
