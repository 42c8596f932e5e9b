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

/// What is wrong with a JSON text, or nothing.
fn fault(text: &str, max_depth: usize) -> Option<String> {
    if let Err(error) = check_json_text(text, max_depth) {
        return Some(error.to_string());
    }
    (!numbers_are_finite(text)).then(|| "a number is too large for any reader (IEEE 754)".to_owned())
}

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
    const SHORT: usize = 300;
    (number.len() < SHORT && !number.bytes().any(|b| matches!(b, b'e' | b'E'))) || number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Extends `pointer` to the innermost member that is at fault.
fn descend(value: &RawValue, mut depth: usize, pointer: &mut String) {
    let mut here = value.to_owned();
    while depth > 0 {
        depth -= 1;
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
