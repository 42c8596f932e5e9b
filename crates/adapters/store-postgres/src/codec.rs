//! Columns as values of the domain, and back. What cannot be read is corrupt, never a default.

use std::str::FromStr;

use domain::{Audience, PrincipalId, Seq, Timestamp};
use sqlx_core::decode::Decode;
use sqlx_core::row::Row;
use sqlx_core::types::Type;
use sqlx_postgres::{PgRow, Postgres};
use uuid::Uuid;

use crate::failure::Failure;

/// A column as the driver reads it. NULL is `None` of an `Option`, and corrupt otherwise.
pub(crate) fn get<'r, T: Decode<'r, Postgres> + Type<Postgres>>(row: &'r PgRow, column: usize) -> Result<T, Failure> {
    row.try_get(column).map_err(|error| {
        tracing::error!(error = %error, "a stored row cannot be read");
        unreadable(column)
    })
}

/// A text column as an identifier, a word or anything else that is parsed.
pub(crate) fn text<T: FromStr>(row: &PgRow, column: usize) -> Result<T, Failure> {
    get::<&str>(row, column)?.parse().map_err(|_| unreadable(column))
}

/// The same for a column that may be NULL.
pub(crate) fn optional_text<T: FromStr>(row: &PgRow, column: usize) -> Result<Option<T>, Failure> {
    get::<Option<&str>>(row, column)?.map(|text| text.parse().map_err(|_| unreadable(column))).transpose()
}

/// A word of a closed vocabulary.
pub(crate) fn word<T>(row: &PgRow, column: usize, parse: fn(&str) -> Option<T>) -> Result<T, Failure> {
    parse(get::<&str>(row, column)?).ok_or_else(|| unreadable(column))
}

/// A UUID.
pub(crate) fn uuid(row: &PgRow, column: usize) -> Result<Uuid, Failure> {
    get(row, column)
}

/// A UUID that may be NULL.
pub(crate) fn optional_uuid(row: &PgRow, column: usize) -> Result<Option<Uuid>, Failure> {
    get(row, column)
}

/// A digest in its 32 bytes.
pub(crate) fn digest(row: &PgRow, column: usize) -> Result<[u8; 32], Failure> {
    get::<&[u8]>(row, column)?.try_into().map_err(|_| unreadable(column))
}

/// A position in a log.
pub(crate) fn seq(row: &PgRow, column: usize) -> Result<Seq, Failure> {
    natural(row, column).and_then(|number| Seq::new(number).ok_or_else(|| unreadable(column)))
}

/// A position that may be NULL.
pub(crate) fn optional_seq(row: &PgRow, column: usize) -> Result<Option<Seq>, Failure> {
    let number = get::<Option<i64>>(row, column)?;
    number.map(|number| u64::try_from(number).ok().and_then(Seq::new).ok_or_else(|| unreadable(column))).transpose()
}

/// A number that is never negative.
pub(crate) fn natural(row: &PgRow, column: usize) -> Result<u64, Failure> {
    u64::try_from(get::<i64>(row, column)?).map_err(|_| unreadable(column))
}

/// An instant.
pub(crate) fn timestamp(row: &PgRow, column: usize) -> Result<Timestamp, Failure> {
    Ok(Timestamp::from_micros(get(row, column)?))
}

/// An instant that may be NULL.
pub(crate) fn optional_timestamp(row: &PgRow, column: usize) -> Result<Option<Timestamp>, Failure> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_micros))
}

/// What a column is when it holds no value of its domain.
pub(crate) fn unreadable(column: usize) -> Failure {
    Failure::corrupt(format!("column {column} of a row holds no valid value"))
}

/// A position as BIGINT.
pub(crate) fn from_seq(seq: Seq) -> i64 {
    i64::try_from(seq.get()).unwrap_or(i64::MAX)
}

/// A count as BIGINT.
pub(crate) fn from_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A natural number as BIGINT.
pub(crate) fn from_natural(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
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
