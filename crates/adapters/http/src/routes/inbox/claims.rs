//! How claims are written: by hand, because it is the hot path, and because a payload is handed on as the text that it came as.

use std::io::Write;

use domain::{DeduplicationKey, EventId, Timestamp};
use inbox::{Attempt, Claimed, ClaimedNext, Item, LeaseToken};
use protocol::{EnvelopeMembers, envelope_members};
use serde::Serialize;

use super::unread::{ClaimsAnswer, Holder, Unread};
use super::wire;

/// What a claim costs beside its envelope, about.
const ENTRY: usize = 704;

/// The answer of `claimItems`.
pub(super) fn claims(outcomes: Vec<(EventId, inbox::ItemOutcome<Claimed>)>, holder: Holder) -> ClaimsAnswer {
    let envelopes = outcomes.iter().map(|(_, outcome)| wire::outcome(outcome).1.map_or(0, envelope_bytes)).sum();
    let mut text = ClaimsText::new(outcomes.len(), envelopes);
    for (event, outcome) in outcomes {
        match outcome {
            inbox::ItemOutcome::Ok(claimed) => text.claimed(claimed),
            other => text.refused(event, wire::outcome(&other).0.as_str()),
        }
    }
    text.out.extend_from_slice(b"]}");
    ClaimsAnswer::new(text.out, Unread::new(holder, text.leases))
}

/// The answer of `claimNext`.
pub(super) fn next(answer: ClaimedNext, holder: Holder) -> ClaimsAnswer {
    #[derive(Serialize)]
    struct Tail {
        empty: bool,
        backlog: protocol::ClaimBacklog,
        recipient: protocol::RecipientRef,
    }

    let ClaimedNext { claims, backlog } = answer;
    let tail = Tail { empty: claims.is_empty(), backlog: wire::backlog(backlog), recipient: holder.recipient() };
    let mut text = ClaimsText::new(claims.len(), claims.iter().map(envelope_bytes).sum());
    for claimed in claims {
        text.claimed(claimed);
    }
    text.out.extend_from_slice(b"],");
    let tail = serde_json::to_vec(&tail).unwrap_or_default();
    text.out.extend_from_slice(tail.get(1..).unwrap_or(b"}"));
    ClaimsAnswer::new(text.out, Unread::new(holder, text.leases))
}

fn envelope_bytes(claimed: &Claimed) -> usize {
    claimed.envelope.as_ref().map_or(0, bytes::Bytes::len)
}

/// The text of the member `claims`, under way.
struct ClaimsText {
    out: Vec<u8>,
    stamps: Stamps,
    entries: usize,
    leases: Vec<(EventId, LeaseToken)>,
}

impl ClaimsText {
    fn new(claims: usize, envelopes: usize) -> Self {
        let mut out = Vec::with_capacity(claims * ENTRY + envelopes + ENTRY);
        out.extend_from_slice(br#"{"claims":["#);
        Self { out, stamps: Stamps::default(), entries: 0, leases: Vec::with_capacity(claims) }
    }

    fn begin(&mut self, event: EventId, outcome: &str) {
        if self.entries > 0 {
            self.out.push(b',');
        }
        self.entries += 1;
        // Writing to memory cannot fail.
        let _ = write!(self.out, r#"{{"event_id":"{event}","outcome":"{outcome}""#);
    }

    fn refused(&mut self, event: EventId, outcome: &str) {
        self.begin(event, outcome);
        self.out.push(b'}');
    }

    /// The members in the order of [`protocol::ItemClaim`].
    fn claimed(&mut self, claimed: Claimed) {
        let Claimed { item, token, expires_in, envelope } = claimed;
        let facts = &item.facts;
        self.begin(facts.event_id, "ok");
        let _ = write!(self.out, r#","inbox_seq":{},"event_type":"{}""#, facts.inbox_seq, facts.event_type);
        self.optional_text(br#","kind":"#, facts.kind.as_deref());
        self.optional_text(br#","source":"#, facts.source.as_deref());
        self.optional_text(br#","summary":"#, Some(&facts.summary));
        let (queue, priority) = (&facts.queue, wire::priority(facts.priority).as_str());
        let _ = write!(self.out, r#","queue":"{queue}","priority":"{priority}""#);
        self.optional_text(br#","deduplication_key":"#, facts.deduplication_key.as_ref().map(DeduplicationKey::as_str));
        let (state, attempts, most) = (wire::ack_state(item.state), item.delivery_attempts, facts.max_attempts);
        let _ = write!(self.out, r#","ack_state":"{state}","delivery_attempts":{attempts},"max_attempts":{most}"#);
        let _ = write!(self.out, r#","lease_token":"{}""#, token.reveal());
        self.times(&item, expires_in.as_millis());
        self.history(&item.history);
        let members = envelope.as_deref().and_then(envelope_members).unwrap_or_default();
        self.envelope(&members);
        self.out.push(b'}');
        self.leases.push((facts.event_id, token));
    }

    fn times(&mut self, item: &Item, expires_in_ms: u128) {
        if let Some(lease) = &item.lease {
            self.stamp(br#","visibility_lease_until_utc":""#, lease.until);
            let _ = write!(self.out, r#","lease_expires_in_ms":{expires_in_ms}"#);
            self.stamp(br#","attempt_deadline_utc":""#, lease.attempt_deadline);
        }
        self.stamp(br#","created_at_utc":""#, item.facts.created_at);
        self.stamp(br#","availability_at_utc":""#, item.facts.available_at);
        if let Some(expires_at) = item.facts.expires_at {
            self.stamp(br#","expires_at_utc":""#, expires_at);
        }
    }

    fn stamp(&mut self, opening: &[u8], at: Timestamp) {
        self.out.extend_from_slice(opening);
        self.out.extend_from_slice(self.stamps.text(at).as_bytes());
        self.out.push(b'"');
    }

    fn history(&mut self, history: &[Attempt]) {
        self.out.extend_from_slice(br#","prior_attempts":"#);
        let attempts: Vec<_> = history.iter().map(wire::attempt).collect();
        let _ = serde_json::to_writer(&mut self.out, &attempts);
    }

    fn envelope(&mut self, members: &EnvelopeMembers<'_>) {
        let EnvelopeMembers { correlation, payload_ref, payload } = *members;
        let openings: [(&[u8], _); 3] =
            [(br#","correlation":"#, correlation), (br#","payload_ref":"#, payload_ref), (br#","payload":"#, payload)];
        for (opening, text) in openings {
            if let Some(text) = text {
                self.out.extend_from_slice(opening);
                self.out.extend_from_slice(text);
            }
        }
    }

    fn optional_text(&mut self, opening: &[u8], text: Option<&str>) {
        if let Some(text) = text {
            self.out.extend_from_slice(opening);
            let _ = serde_json::to_writer(&mut self.out, text);
        }
    }
}

/// Instants as texts. Those of one batch are mostly the same few.
#[derive(Default)]
struct Stamps {
    known: [Option<(Timestamp, String)>; 4],
    oldest: usize,
}

impl Stamps {
    fn text(&mut self, at: Timestamp) -> &str {
        let known = self.known.iter().position(|entry| entry.as_ref().is_some_and(|(known, _)| *known == at));
        let place = known.unwrap_or_else(|| {
            let place = self.oldest;
            self.oldest = (place + 1) % self.known.len();
            if let Some(entry) = self.known.get_mut(place) {
                *entry = Some((at, at.to_string()));
            }
            place
        });
        self.known.get(place).and_then(Option::as_ref).map_or("", |(_, text)| text)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{
        Actor, DeduplicationKey, EnvelopeParts, EventId, EventType, IdGenerator, PayloadRef, PrincipalId, Priority, QueueName, Seq,
        SystemIds, Timestamp, Work, WorkFor, encode_body,
    };
    use inbox::{Attempt, AttemptOutcome, Claimed, Item, LeaseKey, RecipientNumber, Rules};
    use protocol::{ClaimResponse, ItemOutcome};
    use serde_json::value::RawValue;

    use super::{ClaimsText, Stamps};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(1_780_000_000_123_456 + seconds * 1_000_000)
    }

    /// A claimed item; a full one has every member that there is.
    fn claimed(full: bool, payload: &str) -> Claimed {
        let (event_id, event_type) = (EventId::new(SystemIds.uuid()), EventType::parse("message.created").unwrap());
        let agent = PrincipalId::parse("alpha").unwrap();
        let text = "a \"quoted\" line\u{2028}";
        let recipient = WorkFor { agent: agent.clone(), queue: QueueName::parse("mail").unwrap() };
        let work = Work {
            recipients: vec![recipient.clone()],
            priority: Priority::High,
            kind: full.then(|| text.to_owned()),
            source: full.then(|| text.to_owned()),
            summary: text.to_owned(),
            available_at: at(0),
            claim_key: at(0),
            expires_at: full.then(|| at(1_000)),
            max_attempts: 5,
        };
        let key = full.then(|| DeduplicationKey::parse("msg:\"7\"").unwrap());
        let seq = Seq::new(184_392).unwrap();
        let mut item = Item::new(RecipientNumber::new(1), &recipient, &work, event_id, seq, &event_type, key.as_ref(), at(0), 100);
        if full {
            item.history.push(Attempt {
                number: 1,
                session: Some("sess_01J2M7YGF41B5B2N0T3W3D7SM2".parse().unwrap()),
                claimed_at: at(1),
                heartbeat_at: at(2),
                ended_at: at(3),
                outcome: AttemptOutcome::Failed,
                summary: Some(text.to_owned()),
                result: Some(r#"{ "a": [1] }"#.to_owned()),
            });
        }
        let token = LeaseKey::new([7; 32]).token(&agent, event_id, item.next_generation());
        item.claim(at(10), Duration::from_mins(2), token.hash(), None, &Rules::default()).unwrap();
        let (actor, payload) = (Actor::server(), RawValue::from_string(payload.to_owned()).unwrap());
        let (correlation, payload_ref) =
            ([("room".to_owned(), text.to_owned())].into(), PayloadRef { kind: text.to_owned(), id: "1".to_owned() });
        let parts = EnvelopeParts {
            correlation: full.then_some(&correlation),
            payload_ref: full.then_some(&payload_ref),
            payload: full.then_some(&payload),
            ..EnvelopeParts::new(event_id, &event_type, at(0), &actor)
        };
        Claimed { item, token, expires_in: Duration::from_millis(119_999), envelope: Some(encode_body(&parts).unwrap()) }
    }

    #[test]
    fn claims_written_by_hand_are_the_documented_ones() {
        let payload = "{ \"spaced\" : [1,\n2] , \"big\":123456789012345678901234567890 }";
        let (full, bare, lost) = (claimed(true, payload), claimed(false, "{}"), EventId::new(SystemIds.uuid()));
        let without_envelope = Claimed { envelope: None, ..claimed(true, payload) };
        let mut text = ClaimsText::new(4, 0);
        text.claimed(full.clone());
        text.refused(lost, ItemOutcome::AlreadyClaimed.as_str());
        text.claimed(bare);
        text.claimed(without_envelope);
        text.out.extend_from_slice(b"]}");
        assert_eq!(text.leases.len(), 3);
        let read: ClaimResponse = serde_json::from_slice(&text.out).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), String::from_utf8(text.out).unwrap(), "the same members in the same order");
        let [first, second, third, fourth] = read.claims.as_slice() else { panic!("four claims") };
        assert_eq!(first.payload.as_ref().unwrap().get(), payload);
        assert_eq!(first.lease_token.as_ref().unwrap().expose(), full.token.reveal());
        assert_eq!((first.lease_expires_in_ms, first.max_attempts), (Some(119_999), Some(5)));
        assert_eq!(first.prior_attempts.as_ref().unwrap()[0].output.as_ref().unwrap().get(), r#"{ "a": [1] }"#);
        assert_eq!(first.correlation.as_ref().unwrap().get("room"), first.kind.as_deref());
        assert_eq!((second.event_id, second.outcome.known(), second.lease_token.clone()), (lost, Some(ItemOutcome::AlreadyClaimed), None));
        assert!(
            third.payload.is_none()
                && third.kind.is_none()
                && third.prior_attempts.as_ref().unwrap().is_empty()
                && third.expires_at_utc.is_none()
        );
        assert!(third.prior_attempts.as_ref().is_some_and(Vec::is_empty) && second.prior_attempts.is_none());
        assert!(fourth.payload.is_none() && fourth.payload_ref.is_none() && fourth.kind.is_some());
    }

    #[test]
    fn an_instant_has_the_same_text_however_many_were_written_before() {
        let mut stamps = Stamps::default();
        for round in 0..40_i64 {
            let at = at(round * 7 % 11);
            assert_eq!(stamps.text(at), at.to_string());
        }
    }
}
