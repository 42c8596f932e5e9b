//! What an event must be before it is accepted. Pure; what the types guarantee already is not asked again.

use domain::{PayloadRef, Timestamp, check_json_text};

use crate::error::{Place, PublishError};
use crate::{NewEvent, Settings};

/// Types of the server's own events (stream.md, "Event envelope"): nobody else publishes under their names.
const RESERVED_TYPES: [&str; 8] = [
    "access.changed",
    "agent.updated",
    "hook.disabled",
    "inbox.dead_lettered",
    "inbox.quarantined",
    "inbox.requeued",
    "inbox.resumed",
    "source.received",
];
/// Most characters of `kind`, `source` and the members of `payload_ref`.
const LABEL_CHARS: usize = 256;
/// Most characters of a summary.
const SUMMARY_CHARS: usize = 200;

/// A fault within one event: the member and what is wrong.
type Fault = (String, String);

/// Checks the event with this number in a request.
pub(crate) fn validate(number: usize, event: &NewEvent, settings: &Settings, now: Timestamp) -> Result<(), PublishError> {
    let place = |member: String| Place { event: Some(number), member };
    if let Some(payload) = &event.payload
        && payload.get().len() > settings.max_payload_bytes
    {
        let (size, max) = (payload.get().len(), settings.max_payload_bytes);
        return Err(PublishError::PayloadTooLarge { place: place("/payload".to_owned()), size, max });
    }
    check(event, settings, now).map_err(|(member, detail)| PublishError::Invalid { place: place(member), detail })
}

fn check(event: &NewEvent, settings: &Settings, now: Timestamp) -> Result<(), Fault> {
    if RESERVED_TYPES.contains(&event.event_type.as_str()) {
        return fault("/type", "this type is the server's own");
    }
    check_addressees(event, settings)?;
    check_times(event, settings, now)?;
    check_label("/kind", event.kind.as_deref())?;
    check_label("/source", event.source.as_deref())?;
    if let Some(PayloadRef { kind, id }) = &event.payload_ref {
        check_label("/payload_ref/kind", Some(kind))?;
        check_label("/payload_ref/id", Some(id))?;
    }
    if let Some(summary) = event.summary.as_deref()
        && sanitise(summary).is_none()
    {
        return fault("/summary", format!("1 to {SUMMARY_CHARS} characters, not only white space"));
    }
    check_correlation(event, settings)?;
    check_payload(event, settings)
}

fn check_addressees(event: &NewEvent, settings: &Settings) -> Result<(), Fault> {
    if event.channel.is_none() && event.audience.is_empty() && event.recipients.is_empty() {
        return fault("", "an event needs a channel, an audience or recipients");
    }
    if event.recipients.len() > settings.max_recipients {
        return fault("/recipients", format!("at most {} recipients", settings.max_recipients));
    }
    for (index, recipient) in event.recipients.iter().enumerate() {
        if event.recipients.iter().take(index).any(|other| other.id == recipient.id) {
            return fault(format!("/recipients/{index}"), "named twice");
        }
    }
    let addressees = event.audience.len() + event.recipients.len();
    if addressees > settings.max_audience && event.addressees().len() > settings.max_audience {
        return fault("/audience", format!("at most {} principals, recipients included", settings.max_audience));
    }
    Ok(())
}

fn check_times(event: &NewEvent, settings: &Settings, now: Timestamp) -> Result<(), Fault> {
    let available = event.available_at.map_or(now, |at| at.max(now));
    if available > now.plus(settings.schedule_horizon) {
        return fault("/available_at", "further in the future than `intake.schedule_horizon` allows");
    }
    if event.expires_at.is_some_and(|end| end <= available) {
        return fault("/expires_at", "must lie in the future and after available_at");
    }
    Ok(())
}

fn check_label(member: &str, label: Option<&str>) -> Result<(), Fault> {
    if label.is_some_and(|label| label.is_empty() || !is_line(label, LABEL_CHARS)) {
        return fault(member, format!("1 to {LABEL_CHARS} characters without control characters"));
    }
    Ok(())
}

fn check_correlation(event: &NewEvent, settings: &Settings) -> Result<(), Fault> {
    let Some(correlation) = &event.correlation else { return Ok(()) };
    if correlation.len() > settings.max_correlation_entries {
        return fault("/correlation", format!("at most {} members", settings.max_correlation_entries));
    }
    let max = settings.max_correlation_chars;
    for (name, value) in correlation {
        if name.is_empty() || !is_line(name, max) || !is_line(value, max) {
            let detail = format!("names of 1 to {max} characters and values of at most {max}, without control characters");
            return fault(format!("/correlation/{}", name.replace('~', "~0").replace('/', "~1")), detail);
        }
    }
    Ok(())
}

fn check_payload(event: &NewEvent, settings: &Settings) -> Result<(), Fault> {
    let Some(payload) = event.payload.as_deref() else { return Ok(()) };
    if !payload.get().starts_with('{') {
        return fault("/payload", "a payload is a JSON object");
    }
    check_json_text(payload.get(), settings.max_depth).or_else(|error| fault("/payload", error.to_string()))
}

/// One line of at most [`SUMMARY_CHARS`] characters: control characters, those that turn the text, and runs of white
/// space become one space each, the ends are trimmed.
pub(crate) fn sanitise(summary: &str) -> Option<String> {
    if summary.chars().count() > SUMMARY_CHARS {
        return None;
    }
    let words = summary.split(|c: char| c.is_whitespace() || c.is_control() || turns_text(c)).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// Whether a character only changes the direction of the text around it, by which a line can show what it does not say.
const fn turns_text(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{061C}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn is_line(text: &str, max_chars: usize) -> bool {
    text.chars().count() <= max_chars && !text.chars().any(char::is_control)
}

fn fault<T>(member: impl Into<String>, detail: impl Into<String>) -> Result<T, Fault> {
    Err((member.into(), detail.into()))
}
