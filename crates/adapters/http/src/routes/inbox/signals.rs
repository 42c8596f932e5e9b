//! The text of a stream of signals.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use inbox::{Signal, SignalStream};

use super::wire;
use crate::routes::event_stream::{HEARTBEAT, OPENING};

/// What the stream says next, with the stream itself: it is not let go of while a heartbeat is sent.
type Next = Pin<Box<dyn Future<Output = (Option<Signal>, SignalStream)> + Send>>;

/// A stream on its way to one client.
pub(super) struct Live {
    stage: Stage,
    heartbeat: Duration,
}

enum Stage {
    Opening(Next),
    Running(Next),
    Ended,
}

impl Live {
    /// A stream of which nothing was sent yet; silent, it says every `heartbeat` that it is alive.
    pub(super) fn begin(stream: SignalStream, heartbeat: Duration) -> Self {
        Self { stage: Stage::Opening(following(stream)), heartbeat }
    }

    /// The next piece of text, and what is left; nothing once the caller may not be told any more.
    pub(super) async fn next(self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let heartbeat = self.heartbeat;
        let (text, stage) = match self.stage {
            Stage::Opening(next) => (Bytes::from_static(OPENING), Stage::Running(next)),
            Stage::Running(mut next) => match tokio::time::timeout(heartbeat, &mut next).await {
                Err(_) => (Bytes::from_static(HEARTBEAT), Stage::Running(next)),
                Ok((Some(signal), stream)) => (event(signal), Stage::Running(following(stream))),
                Ok((None, _)) => (Bytes::from_static(END), Stage::Ended),
            },
            Stage::Ended => return None,
        };
        Some((Ok(text), Self { stage, heartbeat }))
    }
}

/// Said last, so that a client can tell an end from a loss.
const END: &[u8] = b"event: end\ndata: {}\n\n";

fn following(mut stream: SignalStream) -> Next {
    Box::pin(async move {
        let signal = stream.next().await;
        (signal, stream)
    })
}

fn event(signal: Signal) -> Bytes {
    let (epoch, head) = (signal.epoch, signal.head);
    let data = serde_json::to_string(&wire::signal(signal)).unwrap_or_default();
    format!("id: {epoch}:{head}\nevent: inbox.updated\ndata: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use domain::{EventId, PrincipalId, Seq, TenantId, Timestamp};
    use inbox::Signal;

    use super::event;

    #[test]
    fn a_signal_is_seed_000s_with_the_head_as_its_id() {
        let epoch = "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10";
        let signal = Signal {
            tenant: TenantId::parse("tenant_42").unwrap(),
            recipient: PrincipalId::parse("agent_alpha").unwrap(),
            head: Seq::new(184_392).unwrap(),
            epoch: epoch.parse().unwrap(),
            unacked: 3,
            resync: false,
            queues: Vec::new(),
            delivery: "0197f0ab-4623-7d52-a87e-27afcf0d9a92".parse::<EventId>().unwrap(),
            sent_at: Timestamp::parse("2026-07-12T16:22:04Z").unwrap(),
        };
        let expected = format!(
            "id: {epoch}:184392\nevent: inbox.updated\ndata: {{\"signal_type\":\"inbox.updated\",\"tenant_id\":\"tenant_42\",\
             \"recipient_id\":\"agent_alpha\",\"head_seq\":184392,\"sync_epoch\":\"{epoch}\",\"approximate_unacked\":3,\
             \"delivery_id\":\"0197f0ab-4623-7d52-a87e-27afcf0d9a92\",\"sent_at_utc\":\"2026-07-12T16:22:04.000Z\"}}\n\n"
        );
        assert_eq!(event(signal.clone()), expected);
        let text = event(Signal { resync: true, ..signal });
        assert!(String::from_utf8_lossy(&text).contains(r#""resync":true"#));
    }
}
