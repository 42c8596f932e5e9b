//! What a command is told of its item.

use std::collections::BTreeMap;

use protocol::ItemClaim;
use serde_json::value::{RawValue, to_raw_value};

/// The variables that a command finds in its environment, as the help lists them.
pub(crate) const VARIABLES: &str = "\
Variables of the command (empty where the item has no such thing):
  DOORSTEP_EVENT_ID           the event, which is also the item's identity
  DOORSTEP_EVENT_SEQ          its position in the log
  DOORSTEP_EVENT_TYPE         its type
  DOORSTEP_EVENT_KIND         the publisher's word for the kind of work
  DOORSTEP_EVENT_SOURCE       the publisher's word for where it comes from
  DOORSTEP_EVENT_SUMMARY      one line about it; it informs and never instructs
  DOORSTEP_EVENT_KEY          its deduplication key
  DOORSTEP_QUEUE              the queue it was found in
  DOORSTEP_PRIORITY           low, normal, high or urgent
  DOORSTEP_ATTEMPT            how often it was claimed, this time included
  DOORSTEP_MAX_ATTEMPTS       how many failures there may be before it is a dead letter
  DOORSTEP_CREATED_AT         when it was made
  DOORSTEP_EXPIRES_AT         after when nobody needs to work on it
  DOORSTEP_ATTEMPT_DEADLINE   when this attempt is over at the latest";

/// The item as JSON on one line: as it was claimed, without the secret of its lease, which is the worker's.
pub(super) fn json(item: &ItemClaim) -> Result<String, serde_json::Error> {
    let whole = to_raw_value(item)?;
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(whole.get())?;
    for own in ["lease_token", "outcome", "lease_expires_in_ms"] {
        members.remove(own);
    }
    serde_json::to_string(&members)
}

/// The item as variables.
pub(super) fn variables(item: &ItemClaim) -> Vec<(&'static str, String)> {
    let text = |value: Option<String>| value.unwrap_or_default().replace('\0', "");
    vec![
        ("DOORSTEP_EVENT_ID", item.event_id.to_string()),
        ("DOORSTEP_EVENT_SEQ", text(item.inbox_seq.map(|seq| seq.to_string()))),
        ("DOORSTEP_EVENT_TYPE", text(item.event_type.as_ref().map(ToString::to_string))),
        ("DOORSTEP_EVENT_KIND", text(item.kind.clone())),
        ("DOORSTEP_EVENT_SOURCE", text(item.source.clone())),
        ("DOORSTEP_EVENT_SUMMARY", text(item.summary.clone())),
        ("DOORSTEP_EVENT_KEY", text(item.deduplication_key.as_ref().map(ToString::to_string))),
        ("DOORSTEP_QUEUE", text(item.queue.as_ref().map(ToString::to_string))),
        ("DOORSTEP_PRIORITY", text(item.priority.as_ref().map(ToString::to_string))),
        ("DOORSTEP_ATTEMPT", text(item.delivery_attempts.map(|number| number.to_string()))),
        ("DOORSTEP_MAX_ATTEMPTS", text(item.max_attempts.map(|number| number.to_string()))),
        ("DOORSTEP_CREATED_AT", text(item.created_at_utc.map(|at| at.to_string()))),
        ("DOORSTEP_EXPIRES_AT", text(item.expires_at_utc.map(|at| at.to_string()))),
        ("DOORSTEP_ATTEMPT_DEADLINE", text(item.attempt_deadline_utc.map(|at| at.to_string()))),
    ]
}

#[cfg(test)]
mod tests {
    use protocol::ItemClaim;

    use super::{VARIABLES, json, variables};

    fn item() -> ItemClaim {
        let text = r#"{"event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "outcome": "ok", "lease_token": "secret", "lease_expires_in_ms": 5,
            "summary": "nul\u0000", "payload": {"n": 1.00, "big": 12345678901234567890}}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_item_is_one_line_with_the_payload_verbatim_and_without_the_secret() {
        let text = json(&item()).unwrap();
        assert!(!text.contains("secret") && !text.contains('\n'), "{text}");
        assert!(text.contains(r#""payload":{"n": 1.00, "big": 12345678901234567890}"#), "{text}");
    }

    #[test]
    fn every_variable_is_documented_and_can_be_set() {
        let made = variables(&item());
        for (name, value) in &made {
            assert!(VARIABLES.contains(&format!("  {name} ")), "{name}");
            assert!(!value.contains('\0'));
        }
        assert_eq!(VARIABLES.lines().count(), made.len() + 1);
    }
}
