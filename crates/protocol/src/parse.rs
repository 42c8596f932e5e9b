//! Reading a publish request: the hot path of intake. Members are typed, payloads stay text.

use serde_json::value::RawValue;

use crate::body::{diagnose, parse_text, push_segment, utf8};
use crate::payload::check_payload;
use crate::publish::EventBatch;
use crate::{Correlation, EventInput, InvalidBody, PublishLimits};

/// Reads a publish request: one event object or `{"events": […]}`.
///
/// Unknown and repeated members, `null` for a member of ours, arrays in place of objects, NUL and lone surrogates, numbers that no
/// reader can hold and payloads nested too deeply are refused. Payloads are kept verbatim.
///
/// # Errors
/// What is wrong first, with a pointer such as `/events/3/type`.
pub fn parse_publish(bytes: &[u8], limits: &PublishLimits) -> Result<Vec<EventInput>, InvalidBody> {
    let text = utf8(bytes)?;
    if begins_with_events(text) {
        let batch = parse_text::<EventBatch>(text)?;
        return check_batch(batch.events, limits);
    }
    match parse_text::<EventInput>(text) {
        Ok(event) => {
            check_event(&event, limits, String::new)?;
            Ok(vec![event])
        }
        Err(_) if has_member_events(text) => {
            let batch = diagnose::<EventBatch>(text).map_err(told_of_batch)?;
            check_batch(batch.events, limits)
        }
        Err(refusal) => Err(refusal),
    }
}

/// Says of a batch with other members why they are unknown.
fn told_of_batch(mut refusal: InvalidBody) -> InvalidBody {
    if refusal.detail.starts_with("unknown field") {
        refusal.detail.push_str("; beside `events` there is no other member");
    }
    refusal
}

/// Whether the first member is `events`, as every client writes a batch. A batch written otherwise is found by [`has_member_events`].
fn begins_with_events(text: &str) -> bool {
    let rest = text.trim_start_matches(is_space);
    rest.strip_prefix('{').is_some_and(|rest| rest.trim_start_matches(is_space).starts_with("\"events\""))
}

const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn has_member_events(text: &str) -> bool {
    type Members<'a> = std::collections::BTreeMap<std::borrow::Cow<'a, str>, &'a RawValue>;
    serde_json::from_str::<Members<'_>>(text).is_ok_and(|members| members.contains_key("events"))
}

fn check_batch(events: Vec<EventInput>, limits: &PublishLimits) -> Result<Vec<EventInput>, InvalidBody> {
    check_count(events.len(), limits, "/events")?;
    for (index, event) in events.iter().enumerate() {
        check_event(event, limits, || format!("/events/{index}"))?;
    }
    Ok(events)
}

pub(crate) fn check_count(count: usize, limits: &PublishLimits, pointer: &str) -> Result<(), InvalidBody> {
    match count {
        0 => Err(InvalidBody::new(pointer, "at least one event")),
        _ if count > limits.max_events => {
            Err(InvalidBody::new(pointer, format!("{count} events; at most {} in a request", limits.max_events)))
        }
        _ => Ok(()),
    }
}

/// What the types alone do not say. `place` is the event's own pointer; asked for only when something is wrong.
pub(crate) fn check_event(event: &EventInput, limits: &PublishLimits, place: impl Fn() -> String) -> Result<(), InvalidBody> {
    let too_many = |member: &str, count: usize, most: usize| InvalidBody::new(place() + member, format!("{count} entries; at most {most}"));
    let audience = event.audience.as_ref().map_or(0, Vec::len);
    if audience > limits.max_audience {
        return Err(too_many("/audience", audience, limits.max_audience));
    }
    let recipients = event.recipients.as_ref().map_or(0, Vec::len);
    if recipients > limits.max_recipients {
        return Err(too_many("/recipients", recipients, limits.max_recipients));
    }
    if let Some(correlation) = &event.correlation {
        check_correlation(correlation, limits, &place)?;
    }
    match &event.payload {
        Some(payload) => check_payload(payload, limits, || place() + "/payload"),
        None => Ok(()),
    }
}

fn check_correlation(correlation: &Correlation, limits: &PublishLimits, place: &impl Fn() -> String) -> Result<(), InvalidBody> {
    let most = limits.max_correlation_entries;
    if correlation.len() > most {
        return Err(InvalidBody::new(place() + "/correlation", format!("{} entries; at most {most}", correlation.len())));
    }
    let fits = |text: &str| text.chars().count() <= limits.max_correlation_chars && !text.chars().any(char::is_control);
    for (name, value) in correlation.iter() {
        if name.is_empty() || !fits(name) || !fits(value) {
            let mut pointer = place() + "/correlation";
            push_segment(&mut pointer, name);
            let most = limits.max_correlation_chars;
            return Err(InvalidBody::new(
                pointer,
                format!("names have 1 to {most} characters, values at most {most}, none a control character"),
            ));
        }
    }
    Ok(())
}
