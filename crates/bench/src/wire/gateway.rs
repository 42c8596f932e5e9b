//! The few frames of the gateway that the bench writes and recognises.

use std::net::SocketAddr;

use super::{Socket, WireError};

/// How a dispatch begins: the server writes `seq` first.
const DISPATCH: &[u8] = br#"{"op":"dispatch","event":{"seq":"#;
const READY: &[u8] = br#"{"op":"ready""#;

/// A consumer's connection.
#[derive(Debug)]
pub(crate) struct Follower {
    /// Its socket, after `identify`.
    pub(crate) socket: Socket,
}

impl Follower {
    /// Connects and identifies, without waiting for `ready`: it comes like any other frame, events right behind it.
    pub(crate) async fn identify(address: SocketAddr, token: &str, consumer: &str) -> Result<Self, WireError> {
        let mut socket = Socket::connect(address, "/v1/gateway", Some(token)).await?;
        socket.send(&identify_frame(consumer)).await?;
        Ok(Self { socket })
    }

    /// Connects and identifies a consumer that has nothing to catch up with, and waits until it is live.
    pub(crate) async fn live(address: SocketAddr, token: &str, consumer: &str) -> Result<Self, WireError> {
        let mut follower = Self::identify(address, token, consumer).await?;
        follower.socket.wait_for(|text| text.starts_with(READY)).await?;
        Ok(follower)
    }
}

/// The `seq` of a dispatched event; `None` of any other frame.
pub(crate) fn dispatched_seq(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(DISPATCH)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    let digits = digits.get(..end).filter(|digits| !digits.is_empty())?;
    Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

fn identify_frame(consumer: &str) -> Vec<u8> {
    format!(r#"{{"op":"identify","consumer":"{consumer}"}}"#).into_bytes()
}

/// The frame that acknowledges everything up to `seq`.
pub(crate) fn ack_frame(seq: u64) -> Vec<u8> {
    format!(r#"{{"op":"ack","seq":{seq}}}"#).into_bytes()
}

#[cfg(test)]
mod tests {
    use domain::{Audience, DeliveryFields, Event, EventOrigin, EventType, Seq, Timestamp};
    use protocol::{Ack, ClientFrame};

    use super::{ack_frame, dispatched_seq, identify_frame};

    #[test]
    fn the_seq_is_read_where_the_server_writes_it() {
        let event = Event::new(
            Seq::new(184_392).unwrap(),
            "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70".parse().unwrap(),
            EventType::parse("bench.event").unwrap(),
            None,
            Audience::default(),
            EventOrigin::Published,
            Timestamp::from_micros(0),
            br#""id":"0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70"}"#.to_vec().into(),
        );
        for redelivered in [false, true] {
            assert_eq!(dispatched_seq(&event.dispatch_frame(DeliveryFields { redelivered })), Some(184_392));
        }
    }

    #[test]
    fn the_seq_is_read_from_dispatches_only() {
        assert_eq!(dispatched_seq(br#"{"op":"cursor","seq":184392}"#), None);
        assert_eq!(dispatched_seq(br#"{"op":"dispatch","event":{"seq":,"id":"x"}}"#), None);
        assert_eq!(dispatched_seq(br#"{"op":"dispatch","event":{"seq":18"#), None);
    }

    #[test]
    fn what_is_sent_is_a_frame_of_the_protocol() {
        assert_eq!(ClientFrame::parse(ack_frame(7)).unwrap(), ClientFrame::Ack(Ack { seq: Seq::new(7).unwrap() }));
        assert!(
            matches!(ClientFrame::parse(identify_frame("c-1")).unwrap(), ClientFrame::Identify(identify) if identify.consumer.is_some())
        );
    }
}
