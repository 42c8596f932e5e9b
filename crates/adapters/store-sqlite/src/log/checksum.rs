//! The checksum that every row of the log carries: damage is told from data, never served.

use std::cell::RefCell;

use domain::EventOrigin;

/// The columns of a row that its checksum covers, as they are stored.
pub(crate) struct Columns<'a> {
    pub(crate) position: i64,
    pub(crate) id: &'a [u8],
    pub(crate) event_type: &'a [u8],
    pub(crate) channel: Option<&'a [u8]>,
    pub(crate) audience: Option<&'a [u8]>,
    pub(crate) origin: i64,
    pub(crate) created_at: i64,
    pub(crate) body: &'a [u8],
}

/// Bytes that a thread keeps for the next row.
const KEPT: usize = 64 << 10;
/// Stands for the length of a column that is NULL.
const ABSENT: u32 = u32::MAX;

impl Columns<'_> {
    /// CRC-32 over the fixed part and the texts. Lengths come first, so that no text can pass for a part of its neighbour.
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
        let lengths = [Some(self.event_type), self.channel, self.audience, Some(self.body)];
        let lengths = lengths.map(|text| text.map_or(ABSENT, |text| u32::try_from(text.len()).unwrap_or(ABSENT - 1)).to_le_bytes());
        let numbers = [self.position, self.origin, self.created_at].map(i64::to_le_bytes);
        row.extend_from_slice(numbers.as_flattened());
        row.extend_from_slice(lengths.as_flattened());
        row.extend_from_slice(self.id);
        for text in [self.event_type, self.channel.unwrap_or_default(), self.audience.unwrap_or_default(), self.body] {
            row.extend_from_slice(text);
        }
    }
}

/// The column of an origin.
pub(crate) fn origin_number(origin: EventOrigin) -> i64 {
    match origin {
        EventOrigin::Published => 0,
        EventOrigin::Server => 1,
        EventOrigin::Work => 2,
    }
}

/// The origin of a column.
pub(crate) fn parse_origin(number: i64) -> Option<EventOrigin> {
    match number {
        0 => Some(EventOrigin::Published),
        1 => Some(EventOrigin::Server),
        2 => Some(EventOrigin::Work),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Columns;

    const ROW: Columns<'_> = Columns {
        position: 1 << 43 | 7,
        id: &[0x11; 16],
        event_type: b"message.created",
        channel: Some(b"support/general"),
        audience: Some(b"agent_alpha agent_beta"),
        origin: 0,
        created_at: 1_752_337_323_123_456,
        body: br#""id":"x","payload":{}}"#,
    };

    #[test]
    fn the_stored_format_is_this_one() {
        assert_eq!(ROW.checksum(), 317_847_542);
    }

    #[test]
    fn every_column_counts_and_none_runs_into_the_next() {
        let sum = ROW.checksum();
        let others = [
            Columns { position: 8, ..ROW },
            Columns { id: &[0x12; 16], ..ROW },
            Columns { event_type: b"message.create", channel: Some(b"dsupport/general"), ..ROW },
            Columns { channel: None, ..ROW },
            Columns { channel: Some(b""), ..ROW },
            Columns { audience: None, ..ROW },
            Columns { origin: 1, ..ROW },
            Columns { created_at: 0, ..ROW },
            Columns { body: br#""id":"y","payload":{}}"#, ..ROW },
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(other.checksum(), sum, "{index}");
        }
    }
}
