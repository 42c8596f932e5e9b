//! The compact column of what is on its way over REST: ascending positions and instants as differences, in variable-length numbers.

use agents::InFlight;
use domain::{Seq, Timestamp};

/// The first byte of the column. Nothing on its way is the empty column.
const VERSION: u8 = 1;

/// Writes the column.
pub(crate) fn encode(entries: &[InFlight]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + entries.len() * 4);
    if entries.is_empty() {
        return out;
    }
    out.push(VERSION);
    let (mut seq, mut at) = (0, 0);
    for entry in entries {
        write(&mut out, entry.seq.get().wrapping_sub(seq));
        write(&mut out, zigzag(entry.dispatched_at.as_micros().wrapping_sub(at)));
        (seq, at) = (entry.seq.get(), entry.dispatched_at.as_micros());
    }
    out
}

/// Reads the column; `None` when it is not one.
pub(crate) fn decode(column: &[u8]) -> Option<Vec<InFlight>> {
    let Some((&version, mut rest)) = column.split_first() else { return Some(Vec::new()) };
    if version != VERSION {
        return None;
    }
    let mut entries = Vec::new();
    let (mut seq, mut at) = (0_u64, 0_i64);
    while !rest.is_empty() {
        seq = seq.wrapping_add(read(&mut rest)?);
        at = at.wrapping_add(unzigzag(read(&mut rest)?));
        entries.push(InFlight { seq: Seq::new(seq)?, dispatched_at: Timestamp::from_micros(at) });
    }
    Some(entries)
}

/// Small magnitudes of either sign as small numbers.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Seven bits a byte, the lowest first; the upper bit says that more follow.
fn write(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use agents::InFlight;
    use domain::{Seq, Timestamp};
    use proptest::prelude::*;

    use super::{decode, encode};

    fn entry(seq: u64, at: i64) -> InFlight {
        InFlight { seq: Seq::new(seq).unwrap(), dispatched_at: Timestamp::from_micros(at) }
    }

    #[test]
    fn the_stored_format_is_this_one() {
        let entries = [entry(184_392, 1_752_337_323_123_456), entry(184_393, 1_752_337_323_123_456), entry(184_400, 1_752_337_323_123_400)];
        let column: &[u8] = &[1, 200, 160, 11, 128, 140, 223, 186, 186, 239, 156, 6, 1, 0, 7, 111];
        assert_eq!(encode(&entries), column);
        assert_eq!(decode(column).unwrap(), entries);
        assert_eq!(encode(&[]), Vec::<u8>::new());
    }

    #[test]
    fn what_is_no_column_is_refused() {
        for bad in [&[2, 1, 1][..], &[1, 0x80], &[1, 5], &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]] {
            assert!(decode(bad).is_none(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(entries in prop::collection::vec((0..=Seq::MAX.get(), any::<i64>()), 0..50)) {
            let entries: Vec<_> = entries.into_iter().map(|(seq, at)| entry(seq, at)).collect();
            prop_assert_eq!(decode(&encode(&entries)).unwrap(), entries);
        }
    }
}
