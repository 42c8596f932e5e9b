//! Columns as values of the domain, and back. What cannot be read is corrupt, never a default.

use std::str::FromStr;

use domain::{Audience, PrincipalId, Seq, StoreError, Timestamp};
use rusqlite::Row;
use uuid::Uuid;

use crate::failure::Failure;

/// Where an event lies in the one tree of all logs: the tenant's number in the upper bits, its `seq` in the lower (ADR 0007).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position(i64);

const SEQ_BITS: u32 = 43;
const SEQ_MASK: i64 = (1 << SEQ_BITS) - 1;
/// The sign bit stays clear, so that positions order as tenants do.
const MAX_TENANT_NUMBER: i64 = (1 << (63 - SEQ_BITS)) - 1;

impl Position {
    /// The position of `seq` in the log of a tenant.
    pub(crate) fn new(tenant_number: i64, seq: Seq) -> Result<Self, StoreError> {
        let seq = i64::try_from(seq.get()).unwrap_or(i64::MAX);
        if seq >= SEQ_MASK {
            return Err(StoreError::Conflict("the tenant's log has as many events as this store can number"));
        }
        Ok(Self(check_tenant_number(tenant_number)? << SEQ_BITS | seq))
    }

    pub(crate) const fn from_raw(raw: i64) -> Self {
        Self(raw)
    }

    pub(crate) const fn raw(self) -> i64 {
        self.0
    }

    pub(crate) fn seq(self) -> Seq {
        u64::try_from(self.0 & SEQ_MASK).ok().and_then(Seq::new).unwrap_or_default()
    }

    pub(crate) const fn tenant_number(self) -> i64 {
        self.0 >> SEQ_BITS
    }

    /// Below the first event of a tenant.
    pub(crate) const fn before(tenant_number: i64) -> i64 {
        tenant_number << SEQ_BITS
    }

    /// Above the last event of a tenant.
    pub(crate) const fn after(tenant_number: i64) -> i64 {
        tenant_number << SEQ_BITS | SEQ_MASK
    }
}

/// Refuses a tenant number that has no room in a position.
pub(crate) fn check_tenant_number(number: i64) -> Result<i64, StoreError> {
    if (1..=MAX_TENANT_NUMBER).contains(&number) {
        Ok(number)
    } else {
        Err(StoreError::Conflict("the store has numbered as many tenants as it can"))
    }
}

/// A text column as an identifier, a word or anything else that is parsed.
pub(crate) fn text<T: FromStr>(row: &Row<'_>, column: usize) -> Result<T, Failure> {
    let text = row.get_ref(column)?.as_str().map_err(|_| unreadable(column))?;
    text.parse().map_err(|_| unreadable(column))
}

/// The same for a column that may be NULL.
pub(crate) fn optional_text<T: FromStr>(row: &Row<'_>, column: usize) -> Result<Option<T>, Failure> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(|_| unreadable(column))?;
    text.map(|text| text.parse().map_err(|_| unreadable(column))).transpose()
}

/// A word of a closed vocabulary.
pub(crate) fn word<T>(row: &Row<'_>, column: usize, parse: fn(&str) -> Option<T>) -> Result<T, Failure> {
    let text = row.get_ref(column)?.as_str().map_err(|_| unreadable(column))?;
    parse(text).ok_or_else(|| unreadable(column))
}

/// A UUID in its 16 bytes.
pub(crate) fn uuid(row: &Row<'_>, column: usize) -> Result<Uuid, Failure> {
    let bytes = row.get_ref(column)?.as_blob().map_err(|_| unreadable(column))?;
    Uuid::from_slice(bytes).map_err(|_| unreadable(column))
}

/// A UUID that may be NULL.
pub(crate) fn optional_uuid(row: &Row<'_>, column: usize) -> Result<Option<Uuid>, Failure> {
    let bytes = row.get_ref(column)?.as_blob_or_null().map_err(|_| unreadable(column))?;
    bytes.map(|bytes| Uuid::from_slice(bytes).map_err(|_| unreadable(column))).transpose()
}

/// A digest in its 32 bytes.
pub(crate) fn digest(row: &Row<'_>, column: usize) -> Result<[u8; 32], Failure> {
    let bytes = row.get_ref(column)?.as_blob().map_err(|_| unreadable(column))?;
    bytes.try_into().map_err(|_| unreadable(column))
}

/// A position in a log.
pub(crate) fn seq(row: &Row<'_>, column: usize) -> Result<Seq, Failure> {
    natural(row, column).and_then(|number| Seq::new(number).ok_or_else(|| unreadable(column)))
}

/// A number that is never negative.
pub(crate) fn natural(row: &Row<'_>, column: usize) -> Result<u64, Failure> {
    let number = row.get_ref(column)?.as_i64().map_err(|_| unreadable(column))?;
    u64::try_from(number).map_err(|_| unreadable(column))
}

/// An instant.
pub(crate) fn timestamp(row: &Row<'_>, column: usize) -> Result<Timestamp, Failure> {
    Ok(Timestamp::from_micros(row.get_ref(column)?.as_i64().map_err(|_| unreadable(column))?))
}

/// An instant that may be NULL.
pub(crate) fn optional_timestamp(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, Failure> {
    let micros = row.get_ref(column)?.as_i64_or_null().map_err(|_| unreadable(column))?;
    Ok(micros.map(Timestamp::from_micros))
}

fn unreadable(column: usize) -> Failure {
    Failure::corrupt(format!("column {column} of a row holds no valid value"))
}

/// A position as SQLite holds integers.
pub(crate) fn from_seq(seq: Seq) -> i64 {
    i64::try_from(seq.get()).unwrap_or(i64::MAX)
}

/// A count as SQLite holds integers.
pub(crate) fn from_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// An audience as its column holds it: the principals, separated by spaces; NULL for none.
pub(crate) fn audience_text(audience: &Audience) -> Option<String> {
    let principals = audience.as_slice();
    (!principals.is_empty()).then(|| principals.iter().map(PrincipalId::as_str).collect::<Vec<_>>().join(" "))
}

/// Reads an audience from its column.
pub(crate) fn parse_audience(text: &str) -> Option<Audience> {
    let principals: Option<Vec<PrincipalId>> = text.split(' ').map(|id| PrincipalId::parse(id).ok()).collect();
    principals.map(|principals| Audience::new(&principals))
}

#[cfg(test)]
mod tests {
    use domain::{Seq, StoreError};

    use super::{MAX_TENANT_NUMBER, Position, check_tenant_number};

    #[test]
    fn positions_order_by_tenant_then_seq_and_give_the_seq_back() {
        let at = |number, seq| Position::new(number, Seq::new(seq).unwrap()).unwrap();
        assert!(at(1, u64::from(u32::MAX)).raw() < at(2, 1).raw());
        assert!(Position::before(2) < at(2, 1).raw());
        assert!(at(2, (1 << 43) - 2).raw() < Position::after(2));
        assert_eq!(at(MAX_TENANT_NUMBER, 77).seq().get(), 77);
        assert!(at(MAX_TENANT_NUMBER, 77).raw() > 0);
    }

    #[test]
    fn what_cannot_be_numbered_is_refused() {
        assert!(matches!(Position::new(1, Seq::new(1 << 43).unwrap()), Err(StoreError::Conflict(_))));
        assert!(matches!(check_tenant_number(MAX_TENANT_NUMBER + 1), Err(StoreError::Conflict(_))));
        assert!(matches!(check_tenant_number(0), Err(StoreError::Conflict(_))));
    }
}
