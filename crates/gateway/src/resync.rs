//! When a position cannot be served, and what a reader is told then. Pure.

use domain::{Seq, SyncEpoch};
use protocol::{ResyncReason, ResyncRequired, ServerFrame};
use sync::Head;

/// A position could not be served; reading goes on after `head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resync {
    /// Why.
    pub reason: ResyncReason,
    /// The committed head.
    pub head: Seq,
    /// The log's present epoch.
    pub epoch: SyncEpoch,
    /// The lowest retained position.
    pub floor: Seq,
}

impl Resync {
    pub(crate) const fn new(reason: ResyncReason, head: &Head) -> Self {
        Self { reason, head: head.seq, epoch: head.epoch, floor: head.floor }
    }

    /// The frame that says so.
    pub(crate) fn frame(&self) -> ServerFrame {
        ServerFrame::ResyncRequired(ResyncRequired {
            reason: self.reason.into(),
            head_seq: self.head,
            sync_epoch: self.epoch,
            floor_seq: self.floor,
        })
    }
}

/// Why a consumer cannot continue after `position`. Neither `too_far_behind` nor `epoch_changed` applies to consumers: their backlog is
/// bounded by the window, and their cursor is the server's own (seed 004, design note 5).
pub(crate) fn consumer_resync(position: Seq, head: &Head) -> Option<Resync> {
    let reason = match agents::check_position(position, head.seq, head.floor)? {
        agents::ResyncReason::Retention => ResyncReason::Retention,
        agents::ResyncReason::CursorAhead => ResyncReason::CursorAhead,
        agents::ResyncReason::EpochChanged => ResyncReason::EpochChanged,
    };
    Some(Resync::new(reason, head))
}

/// Why a person or app cannot continue after the `cursor` that it brought.
///
/// `max_catchup` is how far behind the head it may begin; unbounded over REST, where the reader asks page by page.
pub(crate) fn client_resync(cursor: Seq, epoch: Option<SyncEpoch>, head: &Head, max_catchup: Option<u64>) -> Option<Resync> {
    let reason = match cursor {
        _ if epoch.is_some_and(|epoch| epoch != head.epoch) => ResyncReason::EpochChanged,
        _ if cursor > head.seq => ResyncReason::CursorAhead,
        _ if cursor.next() < head.floor => ResyncReason::Retention,
        _ if max_catchup.is_some_and(|most| head.seq.since(cursor) > most) => ResyncReason::TooFarBehind,
        _ => return None,
    };
    Some(Resync::new(reason, head))
}

#[cfg(test)]
mod tests {
    use domain::{Seq, SyncEpoch};
    use protocol::ResyncReason;
    use sync::Head;
    use uuid::Uuid;

    use super::{client_resync, consumer_resync};

    fn seq(value: u64) -> Seq {
        Seq::new(value).unwrap()
    }

    fn epoch(value: u128) -> SyncEpoch {
        SyncEpoch::new(Uuid::from_u128(value))
    }

    fn head() -> Head {
        Head { seq: seq(1_000), floor: seq(10), epoch: epoch(1) }
    }

    #[test]
    fn consumers_resync_for_retention_and_cursor_ahead_and_never_for_distance() {
        let reason = |position| consumer_resync(seq(position), &head()).map(|resync| resync.reason);
        assert_eq!(reason(8), Some(ResyncReason::Retention));
        assert_eq!(reason(9), None);
        assert_eq!(reason(1_000), None);
        assert_eq!(reason(1_001), Some(ResyncReason::CursorAhead));
    }

    #[test]
    fn people_and_apps_resync_for_four_reasons() {
        let reason = |cursor, brought, most| client_resync(seq(cursor), brought, &head(), most).map(|resync| resync.reason);
        assert_eq!(reason(1_000, Some(epoch(2)), None), Some(ResyncReason::EpochChanged));
        assert_eq!(reason(1_001, Some(epoch(1)), None), Some(ResyncReason::CursorAhead));
        assert_eq!(reason(8, None, None), Some(ResyncReason::Retention));
        assert_eq!(reason(899, None, Some(100)), Some(ResyncReason::TooFarBehind));
        assert_eq!(reason(900, None, Some(100)), None);
        assert_eq!(reason(9, Some(epoch(1)), None), None);
    }
}
