//! Members of a stored envelope as they stand in its text: what a claim hands out is copied, not read and written anew.

/// The texts of some members of an envelope, verbatim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnvelopeMembers<'a> {
    /// `correlation`.
    pub correlation: Option<&'a [u8]>,
    /// `payload_ref`.
    pub payload_ref: Option<&'a [u8]>,
    /// `payload`.
    pub payload: Option<&'a [u8]>,
}

/// Finds them in the text of an envelope without its opening brace and its `seq` ([`domain::Event::body`]), as [`domain::encode_body`] wrote it:
/// the payload is its last member, so its text is never looked into. `None` when the text is none.
pub fn envelope_members(body: &[u8]) -> Option<EnvelopeMembers<'_>> {
    let mut found = EnvelopeMembers::default();
    let mut rest = body.strip_suffix(b"}")?;
    while !rest.is_empty() {
        let (name, value) = member(rest)?;
        if name == b"payload" {
            found.payload = Some(value);
            return Some(found);
        }
        let (value, after) = value.split_at_checked(value_length(value)?)?;
        match name {
            b"correlation" => found.correlation = Some(value),
            b"payload_ref" => found.payload_ref = Some(value),
            _ => {}
        }
        rest = match after {
            [b',', rest @ ..] => rest,
            [] => after,
            _ => return None,
        };
    }
    Some(found)
}

/// `"name":rest`. The names of members need no escapes.
fn member(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let (name, rest) = text.split_at_checked(text.iter().position(|byte| *byte == b'"')?)?;
    Some((name, rest.strip_prefix(b"\":")?))
}

/// Bytes of the value that `text` begins with.
fn value_length(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match text.get(at) {
            None => return (depth == 0 && at > 0).then_some(at),
            Some(b'"') => at += string_length(text.get(at..)?)?,
            Some(b'{' | b'[') => (at, depth) = (at + 1, depth + 1),
            Some(b'}' | b']') => (at, depth) = (at + 1, depth.checked_sub(1)?),
            Some(b',') if depth == 0 => return (at > 0).then_some(at),
            Some(_) => at += 1,
        }
    }
}

/// Bytes of the string that `text` begins with, quotation marks included.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::{
        Actor, ActorKind, ChannelRef, DeduplicationKey, EnvelopeParts, EventId, EventType, PayloadRef, PrincipalId, Timestamp, encode_body,
    };
    use serde_json::value::{RawValue, to_raw_value};

    use super::{EnvelopeMembers, envelope_members};

    #[test]
    fn every_member_is_found_as_it_was_written_whatever_the_texts_around_it_hold() {
        let event_type = EventType::parse("message.created").unwrap();
        let actor = Actor { kind: ActorKind::Person, id: PrincipalId::parse("sam").unwrap() };
        let channel = ChannelRef::parse("support/general").unwrap();
        let key = DeduplicationKey::parse(r#"},"payload":{"#).unwrap();
        let texts = ["plain", r#"a "quoted" \ word"#, r#"},"payload":{"x":1"#, "{[\"", "\\", "ä,\u{1F600}"];
        let payload = RawValue::from_string("{ \"payload\" : [1, {\"correlation\":\"}\"}] , \"n\":1.0 }".to_owned()).unwrap();
        for text in texts {
            let correlation = BTreeMap::from([(text.to_owned(), text.to_owned()), ("b".to_owned(), String::new())]);
            let payload_ref = PayloadRef { kind: text.to_owned(), id: text.to_owned() };
            for mask in 0..16_u8 {
                let has = |bit: u8| mask & bit != 0;
                let parts = EnvelopeParts {
                    channel: Some(&channel),
                    audience: std::slice::from_ref(&actor.id),
                    deduplication_key: Some(&key),
                    correlation: has(1).then_some(&correlation),
                    payload_ref: has(2).then_some(&payload_ref),
                    summary: has(8).then_some(text),
                    payload: has(4).then_some(&*payload),
                    ..EnvelopeParts::new(EventId::new(uuid::Uuid::nil()), &event_type, Timestamp::from_micros(0), &actor)
                };
                let body = encode_body(&parts).unwrap();
                let (correlation, payload_ref) = (to_raw_value(&correlation).unwrap(), to_raw_value(&payload_ref).unwrap());
                let expected = EnvelopeMembers {
                    correlation: has(1).then_some(correlation.get().as_bytes()),
                    payload_ref: has(2).then_some(payload_ref.get().as_bytes()),
                    payload: has(4).then_some(payload.get().as_bytes()),
                };
                assert_eq!(envelope_members(&body), Some(expected), "{text} {mask}");
            }
        }
    }

    #[test]
    fn what_is_no_envelope_has_no_members() {
        for text in ["", "x", r#""id":"1""#, r#"id":1}"#, r#""id":"1}"#, r#""id":]}"#, r#""id":}"#] {
            assert_eq!(envelope_members(text.as_bytes()), None, "{text}");
        }
        assert_eq!(envelope_members(b"}"), Some(EnvelopeMembers::default()));
    }
}
