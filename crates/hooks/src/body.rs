//! What a ring carries: identifiers and a line about the item, never a field of a payload. Pure.

use bytes::Bytes;
use domain::{EventId, QueueName, Seq, Timestamp};
use inbox::Item;
use serde::Serialize;

use crate::{Challenge, Hook, Reason, WebhookId};

/// Most bytes of a body.
const BODY_MAX: usize = 4_096;
/// Most characters of a summary, a kind and a source.
const TEXT_MAX: usize = 200;

/// The ring of a notify hook (seed 002, "Body").
#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the members are called so on the wire")]
struct Todo<'a> {
    #[serde(rename = "type")]
    ring_type: &'static str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    todo_id: Option<EventId>,
    queue: &'a QueueName,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    summary: &'a str,
    endpoint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    created_at: Timestamp,
}

/// The body for an item that became claimable. `attempt` is the item's, constant over the attempts of the ring.
pub(crate) fn item(hook: &Hook, reason: Reason, item: &Item) -> Bytes {
    let facts = &item.facts;
    let bounded = |most: usize| {
        let todo = Todo {
            ring_type: "todo.ready",
            reason: reason.as_str(),
            todo_id: Some(facts.event_id),
            queue: &facts.queue,
            kind: facts.kind.as_deref().map(|text| cut(text, most)),
            source: facts.source.as_deref().map(|text| cut(text, most)),
            summary: cut(&facts.summary, most),
            endpoint: hook.agent.as_str(),
            attempt: Some(item.delivery_attempts.saturating_add(1)),
            created_at: facts.created_at,
        };
        encode(&todo)
    };
    // Escapes make a text up to six times as long: what three such texts cannot hold together is cut shorter.
    let mut most = TEXT_MAX;
    loop {
        let body = bounded(most);
        if body.len() <= BODY_MAX || most == 0 {
            return body;
        }
        most /= 2;
    }
}

/// The body for what waits in a queue: counts only.
pub(crate) fn backlog(hook: &Hook, queue: &QueueName, count: u64, created_at: Timestamp) -> Bytes {
    let summary = if count == 1 { "1 item is claimable".to_owned() } else { format!("{count} items are claimable") };
    encode(&Todo {
        ring_type: "todo.ready",
        reason: Reason::Backlog.as_str(),
        todo_id: None,
        queue,
        kind: None,
        source: None,
        summary: &summary,
        endpoint: hook.agent.as_str(),
        attempt: None,
        created_at,
    })
}

/// The body of a callback (seed 000, "Signal payload").
pub(crate) fn signal(hook: &Hook, id: &WebhookId, head: Seq, unacked: u64, now: Timestamp) -> Bytes {
    #[derive(Serialize)]
    #[expect(clippy::struct_field_names, reason = "the members are called so on the wire")]
    struct Signal<'a> {
        signal_type: &'static str,
        tenant_id: &'a str,
        recipient_id: &'a str,
        head_seq: Seq,
        approximate_unacked: u64,
        sent_at_utc: Timestamp,
        delivery_id: &'a str,
    }
    encode(&Signal {
        signal_type: "inbox.updated",
        tenant_id: hook.tenant.as_str(),
        recipient_id: hook.agent.as_str(),
        head_seq: head,
        approximate_unacked: unacked,
        sent_at_utc: now,
        delivery_id: id.as_str(),
    })
}

/// The body of a challenge. The receiver answers `{"response": …}` over `delivery_id.nonce.challenge`.
pub(crate) fn challenge(challenge: &Challenge) -> Bytes {
    #[derive(Serialize)]
    struct Body<'a> {
        #[serde(rename = "type")]
        ring_type: &'static str,
        delivery_id: &'a str,
        nonce: &'a str,
        challenge: &'a str,
        expires_at_utc: Timestamp,
    }
    encode(&Body {
        ring_type: "callback.challenge",
        delivery_id: challenge.delivery.as_str(),
        nonce: &challenge.nonce,
        challenge: &challenge.text,
        expires_at_utc: challenge.expires_at,
    })
}

/// The body of a test.
pub(crate) fn test(hook: &Hook, now: Timestamp) -> Bytes {
    #[derive(Serialize)]
    struct Body<'a> {
        #[serde(rename = "type")]
        ring_type: &'static str,
        endpoint: &'a str,
        created_at: Timestamp,
    }
    encode(&Body { ring_type: "hook.test", endpoint: hook.agent.as_str(), created_at: now })
}

fn encode(body: &impl Serialize) -> Bytes {
    // Nothing of these types fails to be written; an empty body would still be a signed ring.
    serde_json::to_vec(body).unwrap_or_default().into()
}

/// The first characters of a text.
fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use domain::{EventId, EventType, PrincipalId, Priority, QueueName, Seq, TenantId, Timestamp, Work, WorkFor};
    use inbox::{Item, RecipientNumber};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::{BODY_MAX, backlog, challenge, item, signal};
    use crate::{Challenge, Health, Hook, HookId, HookKind, HookState, HookUrl, Profile, Reason, WebhookId};

    const AT: Timestamp = Timestamp::from_micros(1_500_000);

    fn hook() -> Hook {
        Hook {
            id: HookId::new(Uuid::from_u128(1)),
            tenant: TenantId::parse("acme").unwrap(),
            agent: PrincipalId::parse("alpha").unwrap(),
            kind: HookKind::Notify,
            profile: Profile::StandardWebhooks,
            url: HookUrl::parse("https://example.com/x").unwrap(),
            queues: Vec::new(),
            ignore_presence: false,
            max_rate_per_minute: None,
            state: HookState::Active,
            challenge: None,
            health: Health::default(),
            since: Seq::ZERO,
            created_at: AT,
        }
    }

    fn an_item(kind: Option<String>, source: Option<String>, summary: String, queue: &str) -> Item {
        let who = WorkFor { agent: hook().agent, queue: QueueName::parse(queue).unwrap() };
        let work = Work {
            recipients: vec![who.clone()],
            priority: Priority::Normal,
            kind,
            source,
            summary,
            available_at: AT,
            claim_key: AT,
            expires_at: None,
            max_attempts: 5,
        };
        let (id, event_type) = (EventId::new(Uuid::from_u128(7)), EventType::parse("canary.type").unwrap());
        Item::new(RecipientNumber::new(1), &who, &work, id, Seq::new(3).unwrap(), &event_type, None, AT, 100)
    }

    #[test]
    fn a_ring_has_exactly_the_designed_members() {
        let item_ = an_item(Some("pull_request".into()), Some("gitea".into()), "PR 482 opened".into(), "inbox");
        let body: Value = serde_json::from_slice(&item(&hook(), Reason::Created, &item_)).unwrap();
        let expected = json!({
            "type": "todo.ready", "reason": "created", "todo_id": "00000000-0000-0000-0000-000000000007", "queue": "inbox",
            "kind": "pull_request", "source": "gitea", "summary": "PR 482 opened", "endpoint": "alpha", "attempt": 1,
            "created_at": "1970-01-01T00:00:01.500Z",
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_backlog_ring_names_a_queue_and_no_item() {
        let queue = QueueName::parse("inbox").unwrap();
        let body: Value = serde_json::from_slice(&backlog(&hook(), &queue, 12, AT)).unwrap();
        let expected = json!({
            "type": "todo.ready", "reason": "backlog", "queue": "inbox", "summary": "12 items are claimable", "endpoint": "alpha",
            "created_at": "1970-01-01T00:00:01.500Z",
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_callback_carries_the_signal_of_seed_000() {
        let id = WebhookId::of_signal(hook().id, Seq::new(9).unwrap(), AT);
        let body: Value = serde_json::from_slice(&signal(&hook(), &id, Seq::new(9).unwrap(), 3, AT)).unwrap();
        let expected = json!({
            "signal_type": "inbox.updated", "tenant_id": "acme", "recipient_id": "alpha", "head_seq": 9, "approximate_unacked": 3,
            "sent_at_utc": "1970-01-01T00:00:01.500Z", "delivery_id": id.as_str(),
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_challenge_carries_what_is_to_be_answered_for() {
        let delivery = WebhookId::fresh(hook().id, Uuid::nil());
        let open = Challenge { delivery: delivery.clone(), nonce: "n".into(), text: "c".into(), expires_at: AT };
        let body: Value = serde_json::from_slice(&challenge(&open)).unwrap();
        let expected = json!({
            "type": "callback.challenge", "delivery_id": delivery.as_str(), "nonce": "n", "challenge": "c",
            "expires_at_utc": "1970-01-01T00:00:01.500Z",
        });
        assert_eq!(body, expected);
    }

    proptest! {
        #[test]
        fn no_body_is_longer_than_four_kilobytes(
            kind in proptest::option::of("\\PC{0,300}|[\\x00-\\x1f\"]{0,300}"),
            source in proptest::option::of("[\\x00-\\x1f\u{10ffff}]{0,300}"),
            summary in "[\\x00-\\x1f\\\\]{0,400}|.{0,400}",
            queue in "[a-z0-9]{64}",
        ) {
            let body = item(&hook(), Reason::Requeued, &an_item(kind, source, summary.clone(), &queue));
            prop_assert!(body.len() <= BODY_MAX, "{} bytes", body.len());
            let body: Value = serde_json::from_slice(&body).unwrap();
            let told = body["summary"].as_str().unwrap();
            prop_assert!(told.chars().count() <= 200 && summary.starts_with(told));
        }
    }
}
