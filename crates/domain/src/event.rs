//! Events as the log holds them and as they are handed out.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{ChannelRef, EventId, EventType, PrincipalId, Seq, Timestamp};

/// What kind of principal acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A human being.
    Person,
    /// A program that publishes or reads with its own cursor.
    App,
    /// A program that consumes with a durable cursor.
    Agent,
    /// The server itself.
    Server,
}

/// Who caused an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The kind of principal.
    pub kind: ActorKind,
    /// The principal.
    pub id: PrincipalId,
}

impl Actor {
    /// The server itself, as the actor of its own events.
    pub fn server() -> Self {
        Self { kind: ActorKind::Server, id: PrincipalId::server() }
    }
}

/// The principals to whom an event is addressed beyond the readers of its channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience(Option<Arc<[PrincipalId]>>);

impl Audience {
    /// An audience of these principals, in this order.
    pub fn new(principals: &[PrincipalId]) -> Self {
        Self((!principals.is_empty()).then(|| Arc::from(principals)))
    }

    /// The principals.
    pub fn as_slice(&self) -> &[PrincipalId] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether `principal` is addressed.
    pub fn contains(&self, principal: &PrincipalId) -> bool {
        self.as_slice().contains(principal)
    }
}

/// Whose event it is; decides who may see one without a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOrigin {
    /// Published by a principal.
    Published,
    /// The same, and it left inbox items: each principal of its audience may have one.
    Work,
    /// One of the server's own (`access.changed`, `agent.updated`, …): owners and operators see it beside its audience.
    Server,
}

/// Members that exist only on a delivery and are never stored (seed 004, requirement 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFields {
    /// This consumer was sent the event before and did not acknowledge it in time.
    pub redelivered: bool,
}

/// An immutable row of the log, with the columns that admission needs and the envelope as it was encoded once.
#[derive(Debug)]
pub struct Event {
    /// Its position.
    pub seq: Seq,
    /// Its identity, by which receivers recognise a repeat.
    pub id: EventId,
    /// What happened.
    pub event_type: EventType,
    /// Where it was published.
    pub channel: Option<ChannelRef>,
    /// To whom it is addressed.
    pub audience: Audience,
    /// Whose event it is.
    pub origin: EventOrigin,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// The envelope's JSON text without its opening brace and its `seq`: `"id":"…",…}`.
    pub body: Bytes,
    frame: OnceLock<Bytes>,
}

const DISPATCH_OPEN: &[u8] = br#"{"op":"dispatch","event":"#;
const REDELIVERED: &[u8] = br#","redelivered":true}"#;
/// Digits of [`Seq::MAX`], the braces and the member name.
const SEQ_MEMBER: usize = 28;

impl Event {
    /// Joins the columns of a row.
    #[expect(clippy::too_many_arguments, reason = "one argument per column; every caller has them apart")]
    pub fn new(
        seq: Seq,
        id: EventId,
        event_type: EventType,
        channel: Option<ChannelRef>,
        audience: Audience,
        origin: EventOrigin,
        created_at: Timestamp,
        body: Bytes,
    ) -> Self {
        Self { seq, id, event_type, channel, audience, origin, created_at, body, frame: OnceLock::new() }
    }

    /// Appends the whole envelope as JSON to `out`, with the delivery fields spliced in.
    pub fn write_envelope(&self, fields: DeliveryFields, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"seq":"#);
        let mut digits = [0_u8; 20];
        out.extend_from_slice(decimal(self.seq.get(), &mut digits));
        out.push(b',');
        if fields.redelivered {
            out.extend_from_slice(self.body.strip_suffix(b"}").unwrap_or(&self.body));
            out.extend_from_slice(REDELIVERED);
        } else {
            out.extend_from_slice(&self.body);
        }
    }

    /// The whole envelope as JSON.
    pub fn envelope(&self, fields: DeliveryFields) -> Bytes {
        let mut out = Vec::with_capacity(self.body.len() + SEQ_MEMBER + REDELIVERED.len());
        self.write_envelope(fields, &mut out);
        out.into()
    }

    /// The gateway frame `dispatch {event}`. The common form is made once and shared by every consumer.
    pub fn dispatch_frame(&self, fields: DeliveryFields) -> Bytes {
        if fields == DeliveryFields::default() {
            return self.frame.get_or_init(|| self.encode_frame(fields)).clone();
        }
        self.encode_frame(fields)
    }

    fn encode_frame(&self, fields: DeliveryFields) -> Bytes {
        let mut out = Vec::with_capacity(DISPATCH_OPEN.len() + self.body.len() + SEQ_MEMBER + REDELIVERED.len() + 1);
        out.extend_from_slice(DISPATCH_OPEN);
        self.write_envelope(fields, &mut out);
        out.push(b'}');
        out.into()
    }

    /// Bytes that holding this event costs: what bounds of pages and rings count.
    pub fn size(&self) -> usize {
        self.body.len() + size_of::<Self>()
    }
}

/// Writes `value` in decimal at the end of `digits`.
fn decimal(mut value: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        start = index;
        if value == 0 {
            break;
        }
    }
    digits.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use uuid::Uuid;

    use super::{Audience, DeliveryFields, Event, EventOrigin};
    use crate::{EventId, EventType, Seq, Timestamp};

    fn event(seq: u64) -> Event {
        Event::new(
            Seq::new(seq).unwrap(),
            EventId::new(Uuid::nil()),
            EventType::parse("a.b").unwrap(),
            None,
            Audience::default(),
            EventOrigin::Published,
            Timestamp::from_micros(0),
            Bytes::from_static(br#""id":"x","payload":{}}"#),
        )
    }

    #[test]
    fn the_envelope_is_concatenated_not_encoded() {
        assert_eq!(event(7).envelope(DeliveryFields::default()), r#"{"seq":7,"id":"x","payload":{}}"#);
        assert_eq!(event(Seq::MAX.get()).envelope(DeliveryFields::default()), r#"{"seq":9007199254740991,"id":"x","payload":{}}"#);
    }

    #[test]
    fn delivery_fields_are_spliced_in_and_never_reach_the_row() {
        let event = event(120);
        let redelivered = DeliveryFields { redelivered: true };
        assert_eq!(event.dispatch_frame(redelivered), r#"{"op":"dispatch","event":{"seq":120,"id":"x","payload":{},"redelivered":true}}"#);
        assert_eq!(event.dispatch_frame(DeliveryFields::default()), r#"{"op":"dispatch","event":{"seq":120,"id":"x","payload":{}}}"#);
        assert_eq!(event.body, r#""id":"x","payload":{}}"#);
    }
}
