//! As much of structured fields (RFC 9651) as signatures use: dictionaries, and the parameters of an inner list.
//!
//! Only the canonical spelling is read. That is what signers write, and what is signed then is the text as it came.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The members of a dictionary: keys and the text of their values. `None` when it is none.
pub(super) fn dictionary(text: &str) -> Option<Vec<(&str, &str)>> {
    let (mut members, mut rest) = (Vec::new(), text);
    loop {
        let (member, after) = split_unquoted(rest, ',');
        let (key, value) = member.trim_matches([' ', '\t']).split_once('=')?;
        if !is_key(key) {
            return None;
        }
        members.push((key, value));
        match after {
            Some(after) => rest = after,
            None => return Some(members),
        }
    }
}

/// The value of a byte sequence: base64 between colons.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.strip_prefix(':')?.strip_suffix(':')?).ok()
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Integer(i64),
    Text(&'a str),
}

/// Parameters, each with its semicolon: `;created=1;nonce="x"`. `None` when they are none, or one is there twice.
pub(super) fn parameters(text: &str) -> Option<Vec<(&str, Value<'_>)>> {
    let mut found: Vec<(&str, Value<'_>)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (parameter, after) = split_unquoted(rest.strip_prefix(';')?, ';');
        let (key, value) = parameter.split_once('=')?;
        if !is_key(key) || found.iter().any(|(other, _)| *other == key) {
            return None;
        }
        found.push((key, value_of(value)?));
        rest = rest.get(1 + parameter.len()..)?;
        if after.is_some() != rest.starts_with(';') {
            return None;
        }
    }
    Some(found)
}

fn value_of(text: &str) -> Option<Value<'_>> {
    if let Some(quoted) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        // Escapes are never needed by what is written here, and none could be told from an end.
        let is_plain = quoted.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
        return is_plain.then_some(Value::Text(quoted));
    }
    let is_canonical =
        !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_canonical).map(Value::Integer)
}

fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase() || c == '*')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'.' | b'*'))
}

/// What is before the first separator outside of quotes, and what is after it.
fn split_unquoted(text: &str, separator: char) -> (&str, Option<&str>) {
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => {
                return (text.get(..at).unwrap_or_default(), text.get(at + c.len_utf8()..));
            }
            _ => {}
        }
    }
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::{Value, bytes, dictionary, parameters};

    #[test]
    fn dictionaries_are_split_outside_of_quotes() {
        assert_eq!(dictionary("sig1=:AA==:"), Some(vec![("sig1", ":AA==:")]));
        assert_eq!(dictionary("a=(\"x\");n=\"1,2\", b=2,\tc=3"), Some(vec![("a", "(\"x\");n=\"1,2\""), ("b", "2"), ("c", "3")]));
        for bad in ["", "a", "=1", "A=1", "a=1,", "a=1,,b=2", " , "] {
            assert_eq!(dictionary(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_canonical_parameters_are_read() {
        let read = parameters(";created=1614265330;nonce=\"a;b\";keyid=\"k\"").unwrap();
        assert_eq!(read, [("created", Value::Integer(1_614_265_330)), ("nonce", Value::Text("a;b")), ("keyid", Value::Text("k"))]);
        assert_eq!(parameters(""), Some(vec![]));
        for bad in [
            "created=1",
            "; created=1",
            ";created=01",
            ";created=1;",
            ";created",
            ";a=1;a=2",
            ";n=\"\\\"\"",
            ";n=x",
            ";n=-1",
            ";n=\"é\"",
            ";n=1.5",
            ";;n=1",
        ] {
            assert_eq!(parameters(bad), None, "{bad}");
        }
    }

    #[test]
    fn byte_sequences_stand_between_colons() {
        assert_eq!(bytes(":AQI=:"), Some(vec![1, 2]));
        for bad in ["AQI=", ":AQI:", ":AQI=", "::::", ":A Q=:"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }
}
