//! Values as every store can hold them.

use domain::StoreError;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a column holds, unless it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Integer,
    /// Unicode text.
    Text,
    /// Bytes.
    Bytes,
    /// A UUID.
    Uuid,
    /// Yes or no.
    Flag,
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Value {
    /// The column is absent.
    #[serde(rename = "n")]
    Absent,
    /// A whole number.
    #[serde(rename = "i")]
    Integer(i64),
    /// Unicode text.
    #[serde(rename = "t")]
    Text(String),
    /// Bytes.
    #[serde(rename = "b")]
    Bytes(Vec<u8>),
    /// A UUID.
    #[serde(rename = "u")]
    Uuid(Uuid),
    /// Yes or no.
    #[serde(rename = "f")]
    Flag(bool),
}

/// The values of one row, in the order of its table's columns.
pub type Row = Vec<Value>;

impl Value {
    /// What the value is of; nothing when it is absent.
    pub const fn kind(&self) -> Option<Kind> {
        match self {
            Self::Absent => None,
            Self::Integer(_) => Some(Kind::Integer),
            Self::Text(_) => Some(Kind::Text),
            Self::Bytes(_) => Some(Kind::Bytes),
            Self::Uuid(_) => Some(Kind::Uuid),
            Self::Flag(_) => Some(Kind::Flag),
        }
    }

    /// About how many bytes it takes.
    pub const fn size(&self) -> usize {
        match self {
            Self::Text(text) => 8 + text.len(),
            Self::Bytes(bytes) => 8 + bytes.len(),
            _ => 16,
        }
    }

    /// Below every value of a kind that is used as a key.
    pub const fn lowest(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integer(i64::MIN),
            Kind::Text => Self::Text(String::new()),
            Kind::Bytes => Self::Bytes(Vec::new()),
            Kind::Uuid => Self::Uuid(Uuid::nil()),
            Kind::Flag => Self::Flag(false),
        }
    }

    /// Appends bytes that no other value has. The format is that of checksums which are compared within one run: it is stored nowhere.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Absent => out.push(0),
            Self::Integer(number) => piece(out, 1, &number.to_le_bytes()),
            Self::Text(text) => piece(out, 2, text.as_bytes()),
            Self::Bytes(bytes) => piece(out, 3, bytes),
            Self::Uuid(uuid) => piece(out, 4, uuid.as_bytes()),
            Self::Flag(flag) => piece(out, 5, &[u8::from(*flag)]),
        }
    }
}

fn piece(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Where a store continues behind a row: the values of its key, which are `columns` of the row.
pub fn position(row: &[Value], columns: &[usize]) -> String {
    let key: Vec<&Value> = columns.iter().filter_map(|column| row.get(*column)).collect();
    serde_json::to_string(&key).unwrap_or_default()
}

/// The key that a [`position`] names; below every row when there is none.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is no position of such a key.
pub fn parse_position(text: Option<&str>, kinds: &[Kind]) -> Result<Vec<Value>, StoreError> {
    let Some(text) = text else { return Ok(kinds.iter().copied().map(Value::lowest).collect()) };
    let key: Option<Vec<Value>> = serde_json::from_str(text).ok();
    let fits = |key: &Vec<Value>| key.len() == kinds.len() && key.iter().zip(kinds).all(|(value, kind)| value.kind() == Some(*kind));
    key.filter(fits).ok_or_else(|| StoreError::Corrupt("how far a transfer had come cannot be read".to_owned()))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{Kind, Value, parse_position, position};

    #[test]
    fn a_position_names_its_key_whatever_is_in_it() {
        let row = vec![
            Value::Text("a\"b\\".to_owned()),
            Value::Absent,
            Value::Integer(i64::MIN),
            Value::Uuid(Uuid::max()),
            Value::Bytes(vec![0, 255]),
        ];
        let text = position(&row, &[0, 2, 3, 4]);
        let key = parse_position(Some(&text), &[Kind::Text, Kind::Integer, Kind::Uuid, Kind::Bytes]).unwrap();
        assert_eq!(key, [row[0].clone(), row[2].clone(), row[3].clone(), row[4].clone()]);
    }

    #[test]
    fn what_is_no_position_of_the_key_is_refused() {
        for text in ["", "{}", "[]", r#"[{"i":1}]"#, r#"[{"t":"a"},{"t":"b"}]"#] {
            assert!(parse_position(Some(text), &[Kind::Text]).is_err(), "{text}");
        }
        assert_eq!(parse_position(None, &[Kind::Text]).unwrap(), [Value::Text(String::new())]);
    }

    #[test]
    fn no_two_rows_are_written_alike() {
        let rows = [
            vec![Value::Text("ab".to_owned()), Value::Text("c".to_owned())],
            vec![Value::Text("a".to_owned()), Value::Text("bc".to_owned())],
            vec![Value::Text("abc".to_owned()), Value::Absent],
            vec![Value::Absent, Value::Text("abc".to_owned())],
            vec![Value::Bytes(b"ab".to_vec()), Value::Text("c".to_owned())],
            vec![Value::Integer(0), Value::Flag(false)],
            vec![Value::Integer(0), Value::Absent],
        ];
        let mut written: Vec<Vec<u8>> = rows
            .iter()
            .map(|row| {
                row.iter().fold(Vec::new(), |mut out, value| {
                    value.write(&mut out);
                    out
                })
            })
            .collect();
        written.sort();
        written.dedup();
        assert_eq!(written.len(), rows.len());
    }
}
