//! The text of an event stream (HTML standard, "Server-sent events").

use std::convert::Infallible;
use std::fmt::Write;

use bytes::Bytes;
use domain::{Seq, SyncEpoch};
use gateway::{EventStream, Resync, StreamItem};
use protocol::CloseCode;
use serde_json::json;

use crate::routes::event_stream::{HEARTBEAT, OPENING};

/// A stream on its way to one client.
#[derive(Debug)]
pub(super) struct Live {
    stream: EventStream,
    stage: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    Running,
    Ended,
}

impl Live {
    /// A stream of which nothing was sent yet.
    pub(super) fn begin(stream: EventStream) -> Self {
        Self { stream, stage: Stage::Opening }
    }

    /// The next piece of text, and what is left.
    pub(super) async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let text = match self.stage {
            Stage::Ended => return None,
            Stage::Opening => {
                self.stage = Stage::Running;
                Bytes::from_static(OPENING)
            }
            Stage::Running => {
                let item = self.stream.next().await;
                if matches!(item, StreamItem::End(_)) {
                    self.stage = Stage::Ended;
                }
                encode(&item, self.stream.epoch())
            }
        };
        Some((Ok(text), self))
    }
}

fn encode(item: &StreamItem, epoch: SyncEpoch) -> Bytes {
    match item {
        StreamItem::Event { seq, envelope } => event(*seq, epoch, envelope),
        StreamItem::Cursor(seq) => named("cursor", Some((*seq, epoch)), &json!({"seq": seq})),
        StreamItem::Heartbeat => Bytes::from_static(HEARTBEAT),
        StreamItem::Resync(Resync { reason, head, epoch, floor }) => {
            let data = json!({"reason": reason, "head_seq": head, "sync_epoch": epoch, "floor_seq": floor});
            named("resync_required", Some((*head, *epoch)), &data)
        }
        StreamItem::End(code) => named("end", None, &end(*code)),
    }
}

fn end(code: CloseCode) -> serde_json::Value {
    json!({"code": code.number(), "name": code.name()})
}

/// An event of the log. A payload is kept verbatim, so its text may have line breaks between its tokens; each line is a `data` line.
fn event(seq: Seq, epoch: SyncEpoch, envelope: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(envelope.len() + 96);
    out.extend_from_slice(format!("id: {epoch}:{seq}\n").as_bytes());
    for line in envelope.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
    out.into()
}

fn named(name: &str, position: Option<(Seq, SyncEpoch)>, data: &serde_json::Value) -> Bytes {
    let mut out = String::with_capacity(160);
    if let Some((seq, epoch)) = position {
        let _ = writeln!(out, "id: {epoch}:{seq}");
    }
    let _ = write!(out, "event: {name}\ndata: {data}\n\n");
    out.into()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use domain::{Seq, SyncEpoch};
    use gateway::{Resync, StreamItem};
    use protocol::{CloseCode, ResyncReason};

    use super::encode;

    fn text(item: &StreamItem) -> String {
        let epoch: SyncEpoch = "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10".parse().unwrap();
        String::from_utf8(encode(item, epoch).to_vec()).unwrap()
    }

    fn seq(seq: u64) -> Seq {
        Seq::new(seq).unwrap()
    }

    #[test]
    fn an_event_has_its_epoch_and_seq_as_id() {
        let item = StreamItem::Event { seq: seq(7), envelope: Bytes::from_static(br#"{"seq":7}"#) };
        assert_eq!(text(&item), "id: 6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10:7\ndata: {\"seq\":7}\n\n");
    }

    #[test]
    fn line_breaks_inside_a_payload_break_no_event() {
        let item = StreamItem::Event { seq: seq(7), envelope: Bytes::from_static(b"{\"payload\":{\r\n\"a\":1,\n\n\r\"b\":2}}") };
        let text = text(&item);
        let data: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(data, ["{\"payload\":{", "\"a\":1,", "\"b\":2}}"]);
        assert_eq!(text.matches("\n\n").count(), 1, "{text:?}");
    }

    #[test]
    fn a_resync_moves_the_resume_position_to_the_head_of_the_new_epoch() {
        let epoch = "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70".parse().unwrap();
        let text = text(&StreamItem::Resync(Resync { reason: ResyncReason::Retention, head: seq(9), epoch, floor: seq(5) }));
        assert!(text.starts_with("id: 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70:9\nevent: resync_required\n"), "{text}");
        assert!(text.contains(r#""reason":"retention""#), "{text}");
    }

    #[test]
    fn the_end_says_why_and_moves_no_position() {
        assert_eq!(text(&StreamItem::End(CloseCode::ShuttingDown)), "event: end\ndata: {\"code\":4013,\"name\":\"shutting_down\"}\n\n");
    }
}
