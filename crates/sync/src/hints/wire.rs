//! Hints as text: the form in which nodes of different releases understand each other.
//!
//! The first line is the form's number and the sender; then one line a hint. Identifiers hold no blanks. Lines that are not understood are skipped, so that
//! a newer node may say more.

use std::fmt::Write as _;

use domain::{ConsumerName, NodeId, PrincipalId, Seq, TenantId};

use super::Hint;

const FORM: &str = "1";

/// Texts of at most `max_bytes` each that say `hints` between them. A hint that does not fit into a text alone is left out.
pub(super) fn encode(sender: NodeId, hints: &[Hint], max_bytes: usize) -> Vec<String> {
    let head = format!("{FORM} {sender}");
    let mut texts: Vec<String> = Vec::new();
    for hint in hints {
        let line = line(hint);
        if head.len() + line.len() > max_bytes {
            continue;
        }
        match texts.last_mut().filter(|text| text.len() + line.len() <= max_bytes) {
            Some(text) => text.push_str(&line),
            None => texts.push(format!("{head}{line}")),
        }
    }
    texts
}

fn line(hint: &Hint) -> String {
    let mut line = String::new();
    let _ = match hint {
        Hint::Head { tenant, seq } => write!(line, "\nh {tenant} {seq}"),
        Hint::Taken { tenant, agent, consumer } => write!(line, "\nt {tenant} {agent} {consumer}"),
    };
    line
}

/// Who tells, and what. Nothing for a text of another form.
pub(super) fn decode(text: &str) -> Option<(NodeId, Vec<Hint>)> {
    let mut lines = text.lines();
    let (form, sender) = lines.next()?.split_once(' ')?;
    if form != FORM {
        return None;
    }
    Some((sender.parse().ok()?, lines.filter_map(hint).collect()))
}

fn hint(line: &str) -> Option<Hint> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let tenant = TenantId::parse(words.next()?).ok()?;
    let hint = match kind {
        "h" => Hint::Head { tenant, seq: Seq::new(words.next()?.parse().ok()?)? },
        "t" => Hint::Taken { tenant, agent: PrincipalId::parse(words.next()?).ok()?, consumer: ConsumerName::parse(words.next()?).ok()? },
        _ => return None,
    };
    words.next().is_none().then_some(hint)
}

#[cfg(test)]
mod tests {
    use domain::{ConsumerName, NodeId, PrincipalId, Seq, TenantId};

    use super::{Hint, decode, encode};

    fn node() -> NodeId {
        "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70".parse().unwrap()
    }

    fn head(tenant: &str, seq: u64) -> Hint {
        Hint::Head { tenant: TenantId::parse(tenant).unwrap(), seq: Seq::new(seq).unwrap() }
    }

    fn taken(agent: &str) -> Hint {
        Hint::Taken {
            tenant: TenantId::parse("acme.eu").unwrap(),
            agent: PrincipalId::parse(agent).unwrap(),
            consumer: ConsumerName::parse("work-2").unwrap(),
        }
    }

    #[test]
    fn the_form_is_what_other_releases_speak() {
        let texts = encode(node(), &[head("acme.eu", 42), taken("agent_alpha")], 8_000);
        assert_eq!(texts, ["1 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70\nh acme.eu 42\nt acme.eu agent_alpha work-2"]);
    }

    #[test]
    fn what_is_told_is_what_is_heard_in_texts_that_keep_the_bound() {
        let long = "x".repeat(64);
        let hints: Vec<Hint> =
            (0..500).flat_map(|number| [head(&format!("t{number}"), number), taken(&format!("a{number}")), taken(&long)]).collect();
        for max_bytes in [300, 7_999, 1 << 20] {
            let texts = encode(node(), &hints, max_bytes);
            assert!(texts.iter().all(|text| text.len() <= max_bytes), "{max_bytes}");
            let heard: Vec<Hint> = texts.iter().flat_map(|text| decode(text).unwrap().1).collect();
            assert_eq!(heard, hints, "{max_bytes}");
        }
        assert!(texts_of_nothing().is_empty());
    }

    fn texts_of_nothing() -> Vec<String> {
        encode(node(), &[], 8_000)
    }

    #[test]
    fn what_is_not_understood_is_skipped() {
        let text = format!("1 {}\nx y z\nh UPPER 1\nh a\nh a -1\nh a 1 2\nh a 5\nt a b\nt a b c", node());
        let heard = decode(&text).unwrap();
        assert_eq!(heard.0, node());
        assert_eq!(heard.1.len(), 2, "{:?}", heard.1);
        for other in ["", "2 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70\nh a 5", "1 nobody\nh a 5", "hello", "\n\n"] {
            assert_eq!(decode(other), None, "{other:?}");
        }
    }
}
