//! An event from flags.

use std::num::NonZeroU32;

use clap::Args;
use client::{ChannelRef, DeduplicationKey, EventType, PrincipalId, Timestamp};
use protocol::{Correlation, EventInput, Label, PayloadRef, Priority, QueueName, Recipient, RecipientKind, Summary};
use serde_json::value::RawValue;

use crate::arguments::{instant, name_value, word};
use crate::failure::Failure;

/// The event, when it is given by flags.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "One event from flags")]
pub(crate) struct OneEvent {
    /// What happened, such as message.created. With it, nothing is read from a file.
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "file")]
    event_type: Option<EventType>,
    /// Where, as space/channel.
    #[arg(long, value_name = "CHANNEL", requires = "event_type")]
    channel: Option<ChannelRef>,
    /// Principals that see it beside the readers of the channel; several with commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', requires = "event_type")]
    audience: Vec<PrincipalId>,
    /// Agents that are to work on it; several with commas, each as ID or ID:QUEUE.
    #[arg(long = "recipient", value_name = "AGENT", value_delimiter = ',', value_parser = recipient, requires = "event_type")]
    recipients: Vec<Recipient>,
    /// A JSON object; `@FILE` reads it from a file.
    #[arg(long, value_name = "JSON", requires = "event_type")]
    payload: Option<String>,
    /// The publisher's word for the kind of work.
    #[arg(long, value_name = "WORD", value_parser = label, requires = "event_type")]
    kind: Option<Label>,
    /// The publisher's word for where it comes from.
    #[arg(long, value_name = "WORD", value_parser = label, requires = "event_type")]
    source: Option<Label>,
    /// How many failed attempts make a dead letter of it; the server's `inbox.max_attempts` when absent.
    #[arg(long, value_name = "N", requires = "recipients")]
    max_attempts: Option<NonZeroU32>,
    /// By what a repeat is recognised.
    #[arg(long, value_name = "KEY", requires = "event_type")]
    key: Option<DeduplicationKey>,
    /// How urgent it is.
    #[arg(long, value_parser = word::<Priority>(), requires = "event_type")]
    priority: Option<Priority>,
    /// When it is to appear: a time as RFC 3339 (2026-07-12T16:22:03Z), or +15m.
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "event_type")]
    at: Option<Timestamp>,
    /// After when nobody needs to work on it any more: a time as RFC 3339 (2026-07-12T16:22:03Z), or +2h.
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "event_type")]
    expires_at: Option<Timestamp>,
    /// One line about it.
    #[arg(long, value_name = "TEXT", value_parser = summary, requires = "event_type")]
    summary: Option<Summary>,
    /// A reference by which receivers find what belongs together; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value, requires = "event_type")]
    correlation: Vec<(String, String)>,
    /// What it is about, as KIND=ID.
    #[arg(long, value_name = "KIND=ID", value_parser = payload_ref, requires = "event_type")]
    payload_ref: Option<PayloadRef>,
}

impl OneEvent {
    /// The event, when there is one.
    pub(crate) fn event(&self) -> Result<Option<EventInput>, Failure> {
        let Some(event_type) = &self.event_type else { return Ok(None) };
        let correlation = (!self.correlation.is_empty()).then(|| self.correlation.iter().cloned().collect::<Correlation>());
        Ok(Some(EventInput {
            channel: self.channel.clone(),
            audience: (!self.audience.is_empty()).then(|| self.audience.clone()),
            recipients: (!self.recipients.is_empty()).then(|| self.recipients.clone()),
            payload: self.payload.as_deref().map(payload).transpose()?,
            deduplication_key: self.key.clone(),
            kind: self.kind.clone(),
            source: self.source.clone(),
            max_attempts: self.max_attempts,
            priority: self.priority,
            available_at: self.at,
            expires_at: self.expires_at,
            summary: self.summary.clone(),
            payload_ref: self.payload_ref.clone(),
            correlation,
            ..EventInput::new(event_type.clone())
        }))
    }
}

fn payload(argument: &str) -> Result<Box<RawValue>, Failure> {
    let text = match argument.strip_prefix('@') {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("--payload: {path} cannot be read: {error}")))?
        }
        None => argument.to_owned(),
    };
    let payload: Box<RawValue> =
        serde_json::from_str(text.trim()).map_err(|error| Failure::Usage(format!("--payload is not JSON: {error}")))?;
    if !payload.get().starts_with('{') {
        return Err(Failure::Usage("--payload is a JSON object".to_owned()));
    }
    Ok(payload)
}

fn recipient(text: &str) -> Result<Recipient, String> {
    let (id, queue) = match text.split_once(':') {
        Some((id, queue)) => (id, Some(queue.to_owned())),
        None => (text, None),
    };
    let id = PrincipalId::parse(id).map_err(|error| error.to_string())?;
    let queue = queue.map(QueueName::parse).transpose()?;
    Ok(Recipient { kind: RecipientKind::Agent, id, queue })
}

fn label(text: &str) -> Result<Label, &'static str> {
    Label::parse(text.to_owned())
}

fn summary(text: &str) -> Result<Summary, &'static str> {
    Summary::parse(text)
}

fn payload_ref(text: &str) -> Result<PayloadRef, String> {
    let (kind, id) = name_value(text)?;
    Ok(PayloadRef { kind: Label::parse(kind)?, id: Label::parse(id)? })
}

#[cfg(test)]
mod tests {
    use super::{payload, recipient};

    #[test]
    fn a_payload_is_a_json_object_from_the_flag_or_from_a_file() {
        assert_eq!(payload(r#" {"a": 1.0} "#).unwrap().get(), r#"{"a": 1.0}"#);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{\"b\":2}\n").unwrap();
        assert_eq!(payload(&format!("@{}", file.path().display())).unwrap().get(), r#"{"b":2}"#);
        for bad in ["", "[]", "7", "{", "{} {}", "@/nowhere/at/all"] {
            assert_eq!(payload(bad).unwrap_err().code(), 2, "{bad}");
        }
    }

    #[test]
    fn a_recipient_may_name_its_queue() {
        let with_queue = recipient("agent_a:urgent").unwrap();
        assert_eq!((with_queue.id.as_str(), with_queue.queue.unwrap().as_str()), ("agent_a", "urgent"));
        assert!(recipient("agent_a").unwrap().queue.is_none());
        assert!(recipient("Agent").is_err() && recipient("a:B").is_err());
    }
}
