//! The end of what a command has written.

use std::collections::VecDeque;

/// The most bytes of a summary (`inbox.summary_max`).
pub(super) const SUMMARY_BYTES: usize = 2_048;

/// Keeps the last bytes that it is given.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<u8>);

impl Tail {
    /// Adds what was written next.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let last = bytes.get(bytes.len().saturating_sub(SUMMARY_BYTES)..).unwrap_or_default();
        let excess = (self.0.len() + last.len()).saturating_sub(SUMMARY_BYTES);
        self.0.drain(..excess.min(self.0.len()));
        self.0.extend(last);
    }

    /// The text, without what controls a terminal, and without white space around it.
    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        // The first character may be cut; what is left of it is no start of any.
        let start = bytes.iter().position(|byte| byte & 0b1100_0000 != 0b1000_0000).unwrap_or(bytes.len());
        let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default());
        let text: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
        text.trim().to_owned()
    }
}

/// A summary of at most [`SUMMARY_BYTES`]: `head`, then as much of the end of `tail` as there is room for. `None` when there is nothing to say.
pub(super) fn summary(head: &str, tail: &str) -> Option<String> {
    let joined = match (head.is_empty(), tail.is_empty()) {
        (true, true) => return None,
        (true, false) => last(tail, SUMMARY_BYTES).to_owned(),
        (false, true) => head.to_owned(),
        (false, false) => format!("{head}: {}", last(tail, SUMMARY_BYTES.saturating_sub(head.len() + 2))),
    };
    Some(joined)
}

/// The last characters of `text` that fit into `bytes`.
fn last(text: &str, bytes: usize) -> &str {
    let from = (text.len().saturating_sub(bytes)..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{SUMMARY_BYTES, Tail, summary};

    fn tail(pieces: &[&[u8]]) -> String {
        let mut tail = Tail::default();
        for piece in pieces {
            tail.add(piece);
        }
        tail.text()
    }

    #[test]
    fn the_last_bytes_are_kept_however_they_come() {
        assert_eq!(tail(&[b"one\n", b"two\n"]), "one\ntwo");
        let long = "x".repeat(SUMMARY_BYTES) + "end";
        assert_eq!(tail(&[long.as_bytes()]), tail(&[&long.as_bytes()[..100], &long.as_bytes()[100..]]));
        assert!(tail(&[long.as_bytes()]).ends_with("xend"));
        assert_eq!(tail(&[long.as_bytes()]).len(), SUMMARY_BYTES);
    }

    #[test]
    fn a_character_that_is_cut_does_not_spoil_the_text() {
        let text = "é".repeat(SUMMARY_BYTES);
        let kept = tail(&[text.as_bytes(), b"!"]);
        assert!(kept.len() < SUMMARY_BYTES && kept.chars().all(|c| c == 'é' || c == '!'), "{kept}");
        assert_eq!(tail(&[b"a\xffb"]), "a\u{fffd}b");
    }

    #[test]
    fn what_controls_a_terminal_is_left_out() {
        assert_eq!(tail(&[b"\x1b[31mred\x1b[0m\r\n"]), "[31mred [0m");
    }

    #[test]
    fn a_summary_has_room_for_its_head() {
        let text = "é".repeat(SUMMARY_BYTES);
        let made = summary("exit code 7", &text).unwrap();
        assert!(made.starts_with("exit code 7: é") && made.len() <= SUMMARY_BYTES, "{}", made.len());
        assert_eq!(summary("", "done"), Some("done".to_owned()));
        assert_eq!(summary("killed", ""), Some("killed".to_owned()));
        assert_eq!(summary("", ""), None);
    }
}
