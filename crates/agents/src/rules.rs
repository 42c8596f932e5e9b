//! What holds for a consumer's position, without any I/O.

use domain::Seq;

use crate::{AckRefused, ResyncReason};

/// What an acknowledgement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckEffect {
    /// It raises the acknowledged position.
    Advances,
    /// It is at or below the acknowledged position: no error, no change.
    Nothing,
}

/// Judges the acknowledgement of everything up to `seq` (seed 004, design note 8). Beyond what was dispatched is allowed and skips it.
///
/// # Errors
/// [`AckRefused::AboveHead`] above the committed head.
pub fn check_ack(seq: Seq, acked: Seq, head: Seq) -> Result<AckEffect, AckRefused> {
    match seq {
        _ if seq > head => Err(AckRefused::AboveHead),
        _ if seq > acked => Ok(AckEffect::Advances),
        _ => Ok(AckEffect::Nothing),
    }
}

/// Whether delivery after `position` is possible in a log with this committed `head` and lowest retained position `floor`; if not, why
/// (seed 004, design note 5, "Resync").
pub fn check_position(position: Seq, head: Seq, floor: Seq) -> Option<ResyncReason> {
    match position {
        _ if position > head => Some(ResyncReason::CursorAhead),
        _ if position.next() < floor => Some(ResyncReason::Retention),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::Seq;

    use super::{AckEffect, check_ack, check_position};
    use crate::{AckRefused, ResyncReason};

    fn seq(value: u64) -> Seq {
        Seq::new(value).unwrap()
    }

    #[test]
    fn an_acknowledgement_is_monotone_and_bounded_by_the_committed_head() {
        let judged = |value| check_ack(seq(value), seq(5), seq(9));
        assert_eq!(judged(0), Ok(AckEffect::Nothing));
        assert_eq!(judged(4), Ok(AckEffect::Nothing));
        assert_eq!(judged(5), Ok(AckEffect::Nothing));
        assert_eq!(judged(6), Ok(AckEffect::Advances));
        assert_eq!(judged(9), Ok(AckEffect::Advances));
        assert_eq!(judged(10), Err(AckRefused::AboveHead));
    }

    #[test]
    fn a_position_below_the_floor_or_above_the_head_cannot_be_served() {
        let judged = |position| check_position(seq(position), seq(9), seq(4));
        assert_eq!(judged(2), Some(ResyncReason::Retention));
        assert_eq!(judged(3), None);
        assert_eq!(judged(9), None);
        assert_eq!(judged(10), Some(ResyncReason::CursorAhead));
        assert_eq!(check_position(seq(9), seq(9), seq(10)), None, "nothing is retained and nothing is missed");
    }
}
