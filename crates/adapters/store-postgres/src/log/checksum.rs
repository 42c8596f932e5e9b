//! The checksum that every row of the log carries: damage is told from data, never served.

use std::cell::RefCell;

use domain::{EventOrigin, Seq};

/// The columns of a row that its checksum covers, as they are stored.
pub(crate) struct Columns<'a> {
    pub(crate) id: &'a [u8; 16],
    pub(crate) event_type: &'a str,
    pub(crate) channel: Option<&'a str>,
    pub(crate) audience: Option<&'a str>,
    pub(crate) origin: i16,
    pub(crate) created_at: i64,
    pub(crate) body: &'a [u8],
}

/// Bytes that a thread keeps for the next row.
const KEPT: usize = 64 << 10;
/// Stands for the length of a column that is NULL.
const ABSENT: u32 = u32::MAX;

impl Columns<'_> {
    /// CRC-32 over the fixed part and the texts. Lengths come first, so that no text can pass for a part of its neighbour.
    ///
    /// The row's place is not known before it is written: the database mixes it in ([`mixed`]).
    pub(crate) fn checksum(&self) -> u32 {
        thread_local! {
            /// One long piece is summed many times faster than several short ones.
            static ROW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        ROW.with_borrow_mut(|row| {
            row.clear();
            row.shrink_to(KEPT);
            self.write(row);
            crc32fast::hash(row)
        })
    }

    fn write(&self, row: &mut Vec<u8>) {
        let texts = [Some(self.event_type.as_bytes()), self.channel.map(str::as_bytes), self.audience.map(str::as_bytes), Some(self.body)];
        let lengths = texts.map(|text| text.map_or(ABSENT, |text| u32::try_from(text.len()).unwrap_or(ABSENT - 1)).to_le_bytes());
        row.extend_from_slice(&self.created_at.to_le_bytes());
        row.extend_from_slice(&self.origin.to_le_bytes());
        row.extend_from_slice(lengths.as_flattened());
        row.extend_from_slice(self.id);
        for text in texts {
            row.extend_from_slice(text.unwrap_or_default());
        }
    }
}

/// The stored checksum of a row at its place; the same as the function `log_mix` of the schema.
pub(crate) fn mixed(checksum: u32, tenant_number: i64, seq: Seq) -> i64 {
    const LOW: u64 = 0xffff_ffff;
    let (tenant, seq) = (tenant_number.cast_unsigned(), seq.get());
    let place = (seq & LOW).wrapping_mul(1_540_483_477) ^ (seq >> 32).wrapping_mul(668_265_263) ^ (tenant & LOW).wrapping_mul(374_761_393);
    (u64::from(checksum) ^ (place & LOW)).cast_signed()
}

/// The column of an origin.
pub(crate) fn origin_number(origin: EventOrigin) -> i16 {
    match origin {
        EventOrigin::Published => 0,
        EventOrigin::Server => 1,
        EventOrigin::Work => 2,
    }
}

/// The origin of a column.
pub(crate) fn parse_origin(number: i16) -> Option<EventOrigin> {
    match number {
        0 => Some(EventOrigin::Published),
        1 => Some(EventOrigin::Server),
        2 => Some(EventOrigin::Work),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::Seq;

    use super::{Columns, mixed};

    const ROW: Columns<'_> = Columns {
        id: &[0x11; 16],
        event_type: "message.created",
        channel: Some("support/general"),
        audience: Some("agent_alpha agent_beta"),
        origin: 0,
        created_at: 1_752_337_323_123_456,
        body: br#""id":"x","payload":{}}"#,
    };

    #[test]
    fn every_column_counts_and_none_runs_into_the_next() {
        let sum = ROW.checksum();
        let others = [
            Columns { id: &[0x12; 16], ..ROW },
            Columns { event_type: "message.create", channel: Some("dsupport/general"), ..ROW },
            Columns { channel: None, ..ROW },
            Columns { channel: Some(""), ..ROW },
            Columns { audience: None, ..ROW },
            Columns { origin: 1, ..ROW },
            Columns { created_at: 0, ..ROW },
            Columns { body: br#""id":"y","payload":{}}"#, ..ROW },
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(other.checksum(), sum, "{index}");
        }
    }

    #[test]
    fn a_row_at_another_place_has_another_checksum() {
        let at = |tenant, seq| mixed(ROW.checksum(), tenant, Seq::new(seq).unwrap());
        let places = [(1, 7), (1, 8), (2, 7), (2, 8), (1, 7 + (1 << 32)), (8, 1)];
        for (index, one) in places.iter().enumerate() {
            for other in &places[index + 1..] {
                assert_ne!(at(one.0, one.1), at(other.0, other.1), "{one:?} {other:?}");
            }
        }
        assert!((0..=i64::from(u32::MAX)).contains(&at(i64::MAX, (1 << 53) - 1)));
    }
}
