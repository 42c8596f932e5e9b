//! What a payload must be before it is kept verbatim: an object that every reader can read again.

use std::collections::BTreeMap;

use domain::check_json_text;
use serde_json::value::RawValue;

use crate::body::push_segment;
use crate::{InvalidBody, ProblemCode, PublishLimits};

/// Checks a payload's text, which is valid JSON. `place` is its pointer; asked for only when something is wrong.
pub(crate) fn check_payload(payload: &RawValue, limits: &PublishLimits, place: impl Fn() -> String) -> Result<(), InvalidBody> {
    let text = payload.get();
    if !text.starts_with('{') {
        return Err(InvalidBody::new(place(), "a payload is a JSON object"));
    }
    if text.len() > limits.max_payload_bytes {
        let detail = format!("{} bytes; a payload has at most {}", text.len(), limits.max_payload_bytes);
        return Err(InvalidBody { code: ProblemCode::PayloadTooLarge, pointer: place(), detail });
    }
    fault(text, limits.max_depth).map_or(Ok(()), |detail| {
        let mut pointer = place();
        descend(payload, limits.max_depth, &mut pointer);
        Err(InvalidBody::new(pointer, detail))
    })
}

/// Checks the text of any valid JSON value that is to be kept verbatim: no NUL, no lone surrogate, no number that no reader can hold, at most
/// `max_depth` nested objects and arrays.
///
/// # Errors
/// What is wrong, for people.
pub fn check_kept_json(text: &RawValue, max_depth: usize) -> Result<(), String> {
    fault(text.get(), max_depth).map_or(Ok(()), Err)
}

/// What is wrong with a JSON text, or nothing.
fn fault(text: &str, max_depth: usize) -> Option<String> {
    if surely_fine(text.as_bytes(), max_depth) {
        return None;
    }
    if let Err(error) = check_json_text(text, max_depth) {
        return Some(error.to_string());
    }
    (!numbers_are_finite(text)).then(|| "a number is too large for any reader (IEEE 754)".to_owned())
}

/// Clears most texts without reading them in order: no escape that could be NUL or a surrogate, too few braces and brackets to nest too
/// deeply, no exponent and no very long number. Each look is one that the compiler makes wide.
fn surely_fine(bytes: &[u8], max_depth: usize) -> bool {
    count(bytes, |b| matches!(b, b'{' | b'[')) <= max_depth
        && !any_pair(bytes, |b, next| b == b'\\' && next == b'u')
        && !any_pair(bytes, |b, next| b.is_ascii_digit() && next | 0x20 == b'e')
        && !may_hold_long_number(bytes)
}

/// How many bytes are `wanted`; summed in pieces that a byte can count.
fn count(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    bytes.chunks(128).map(|piece| usize::from(piece.iter().map(|&b| u8::from(wanted(b))).sum::<u8>())).sum()
}

/// Whether any two neighbours are `wanted`; does not stop early, so that it can be wide.
fn any_pair(bytes: &[u8], wanted: impl Fn(u8, u8) -> bool) -> bool {
    bytes.iter().zip(bytes.get(1..).unwrap_or_default()).fold(false, |any, (&b, &next)| any | wanted(b, next))
}

/// A number of [`SHORT`] characters or more covers two neighbours of any sample taken at every third of that length.
fn may_hold_long_number(bytes: &[u8]) -> bool {
    let samples = || bytes.iter().step_by(SHORT / 3).map(u8::is_ascii_digit);
    samples().zip(samples().skip(1)).any(|(here, next)| here && next)
}

/// Numbers of fewer characters and without an exponent are finite (the largest has 309 digits).
const SHORT: usize = 300;

/// Whether every number of a valid JSON text stays finite when it is read. Readers fail on others, or read infinity.
fn numbers_are_finite(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at += string_length(bytes.get(at..).unwrap_or_default()),
            b'0'..=b'9' => {
                let length = bytes.get(at..).map_or(0, number_length);
                if !is_finite(text.get(at..at + length).unwrap_or_default()) {
                    return false;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    true
}

/// Bytes of the string that `rest` begins with, quotes included.
fn string_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    rest.len()
}

fn number_length(rest: &[u8]) -> usize {
    rest.iter().take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')).count()
}

/// Short numbers without an exponent are finite without a look at their value.
fn is_finite(number: &str) -> bool {
    (number.len() < SHORT && !number.bytes().any(|b| matches!(b, b'e' | b'E'))) || number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Bytes that are read again to say where the fault is. Each level reads what is left of the text, so that a hostile payload could
/// otherwise cost its size times its depth.
const DESCENT_BYTES: usize = 64 * 1024;

/// Extends `pointer` to the innermost member that is at fault, as far as [`DESCENT_BYTES`] go.
fn descend(value: &RawValue, mut depth: usize, pointer: &mut String) {
    let (mut here, mut left) = (value.to_owned(), DESCENT_BYTES);
    while depth > 0 {
        depth -= 1;
        let Some(rest) = left.checked_sub(here.get().len()) else { return };
        left = rest;
        let Some((name, child)) = faulty_child(&here, depth) else { return };
        push_segment(pointer, &name);
        here = child;
    }
}

fn faulty_child(value: &RawValue, depth: usize) -> Option<(String, Box<RawValue>)> {
    let faulty = |child: &RawValue| fault(child.get(), depth).is_some();
    match value.get().as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
            members.into_iter().find(|(_, child)| faulty(child)).map(|(name, child)| (name, child.to_owned()))
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            elements.into_iter().enumerate().find(|(_, child)| faulty(child)).map(|(index, child)| (index.to_string(), child.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{descend, fault, numbers_are_finite, surely_fine};
    use domain::check_json_text;

    fn slow_fault(text: &str, max_depth: usize) -> bool {
        check_json_text(text, max_depth).is_err() || !numbers_are_finite(text)
    }

    #[test]
    fn saying_where_the_fault_is_costs_a_bounded_share_of_a_hostile_payload() {
        let wide = format!("{{\"a\":{}{}{}}}", "[".repeat(70), vec!["[]"; 200_000].join(","), "]".repeat(70));
        let payload = RawValue::from_string(wide).unwrap();
        let mut pointer = "/payload".to_owned();
        descend(&payload, 64, &mut pointer);
        assert_eq!(pointer, "/payload", "larger than what is read again");
        let small = RawValue::from_string(format!("{{\"a\":{}{}}}", "[".repeat(70), "]".repeat(70))).unwrap();
        descend(&small, 64, &mut pointer);
        assert_eq!(pointer, format!("/payload/a{}", "/0".repeat(63)));
    }

    #[test]
    fn what_is_cleared_at_a_glance_is_fine_when_read() {
        let long = |digits: usize, before: usize| format!(r#"{{"{}":{}}}"#, "k".repeat(before), "9".repeat(digits));
        let mut texts: Vec<String> =
            ["{}", r#"{"a":"\\u0000"}"#, r#"{"a":"\u0000"}"#, r#"{"a":1e999}"#, r#"{"a":1E5}"#, "[[[[]]]]"].map(str::to_owned).into();
        for digits in [299, 300, 308, 309, 310, 400] {
            texts.extend((0..220).map(|before| long(digits, before)));
        }
        let mut cleared = 0;
        for text in &texts {
            for max_depth in [1, 3, 4] {
                let fine = surely_fine(text.as_bytes(), max_depth);
                cleared += usize::from(fine);
                assert!(!(fine && slow_fault(text, max_depth)), "{text} at {max_depth}");
                assert_eq!(fault(text, max_depth).is_some(), slow_fault(text, max_depth), "{text} at {max_depth}");
            }
        }
        assert!(cleared > 0);
    }
}
