//! How many rows there are, and a sum of them that does not depend on their order.

use ring::digest::{SHA256, digest};

use crate::Value;

/// The count and the checksum of rows. Two stores read the same rows in different orders and come to the same tally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many rows.
    pub rows: u64,
    /// The sum, modulo 2^128, of the first half of each row's SHA-256.
    pub sum: u128,
}

impl Tally {
    /// Counts a row.
    pub fn add(&mut self, row: &[Value]) {
        let mut bytes = Vec::with_capacity(row.iter().map(Value::size).sum());
        for value in row {
            value.write(&mut bytes);
        }
        let hash = digest(&SHA256, &bytes);
        let half = hash.as_ref().first_chunk::<16>().copied().unwrap_or_default();
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from_le_bytes(half));
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use crate::Value;

    fn tally(rows: &[&[Value]]) -> Tally {
        let mut tally = Tally::default();
        for row in rows {
            tally.add(row);
        }
        tally
    }

    #[test]
    fn the_order_does_not_count_and_everything_else_does() {
        let (one, two) = ([Value::Integer(1), Value::Absent], [Value::Integer(2), Value::Text(String::new())]);
        assert_eq!(tally(&[&one, &two]), tally(&[&two, &one]));
        assert_ne!(tally(&[&one, &two]), tally(&[&one, &one]));
        assert_ne!(tally(&[&one, &one]), tally(&[&two, &two]));
        assert_ne!(tally(&[&one]), tally(&[&[Value::Integer(1), Value::Text(String::new())]]));
    }
}
