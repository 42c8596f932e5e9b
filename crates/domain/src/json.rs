//! What JSON text must not contain before it is kept verbatim.

use thiserror::Error;

/// Why a JSON text is refused although it parses.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
pub enum JsonTextError {
    /// `\u0000`, which several stores and programs cut at.
    #[error("the character U+0000 is not allowed")]
    Nul,
    /// A `\uD800`–`\uDFFF` escape without its other half.
    #[error("a lone surrogate is not allowed")]
    LoneSurrogate,
    /// Nested deeper than the given bound.
    #[error("nested too deeply")]
    TooDeep,
}

/// Checks the text of a *valid* JSON value: no NUL, no lone surrogate, at most `max_depth` nested objects and arrays.
///
/// # Errors
/// The first fault found.
pub fn check_json_text(text: &str, max_depth: usize) -> Result<(), JsonTextError> {
    let bytes = text.as_bytes();
    if is_plain(bytes, max_depth) {
        return Ok(());
    }
    let (mut at, mut depth, mut in_string) = (0, 0_usize, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            0 => return Err(JsonTextError::Nul),
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                at += escape_length(bytes.get(at..).unwrap_or_default())?;
                continue;
            }
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > max_depth {
                    return Err(JsonTextError::TooDeep);
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Clears most texts without reading them in order: no NUL, no `\u`, too few braces and brackets to nest too deeply. Each look is one that the
/// compiler makes wide.
fn is_plain(bytes: &[u8], max_depth: usize) -> bool {
    // In pieces that a byte can count.
    let opening = |piece: &[u8]| usize::from(piece.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>());
    let following = bytes.get(1..).unwrap_or_default();
    let escapes_unit = |byte: u8, next: u8| byte == b'\\' && next == b'u';
    bytes.chunks(128).map(opening).sum::<usize>() <= max_depth
        && !bytes.contains(&0)
        && !bytes.iter().zip(following).fold(false, |any, (byte, next)| any | escapes_unit(*byte, *next))
}

/// The length of the escape sequence that `rest` begins with.
fn escape_length(rest: &[u8]) -> Result<usize, JsonTextError> {
    let Some(unit) = code_unit(rest) else { return Ok(2) };
    match unit {
        0 => Err(JsonTextError::Nul),
        0xD800..=0xDBFF => match rest.get(6..).and_then(code_unit) {
            Some(0xDC00..=0xDFFF) => Ok(12),
            _ => Err(JsonTextError::LoneSurrogate),
        },
        0xDC00..=0xDFFF => Err(JsonTextError::LoneSurrogate),
        _ => Ok(6),
    }
}

/// The UTF-16 code unit of a `\uXXXX` escape at the start of `rest`.
fn code_unit(rest: &[u8]) -> Option<u16> {
    let digits = rest.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::{JsonTextError, check_json_text, is_plain};

    #[test]
    fn nul_and_lone_surrogates_are_refused() {
        assert_eq!(check_json_text(r#"{"a":"\u0000"}"#, 9), Err(JsonTextError::Nul));
        for lone in [r#"["\ud800"]"#, r#"["\uDC00"]"#, r#"["\ud800\ud800"]"#, r#"["\ud800x"]"#] {
            assert_eq!(check_json_text(lone, 9), Err(JsonTextError::LoneSurrogate), "{lone}");
        }
    }

    #[test]
    fn what_only_looks_like_an_escape_is_text() {
        for fine in [r#"{"a":"\\u0000"}"#, r#"["\ud83d\ude00"]"#, r#"["\u0001","\"{[{["]"#, "{}"] {
            assert_eq!(check_json_text(fine, 3), Ok(()), "{fine}");
        }
    }

    #[test]
    fn the_quick_look_clears_only_what_the_reading_clears() {
        let plain = |text: &str, depth| is_plain(text.as_bytes(), depth);
        assert!(plain(r#"{"a":[1,"\n"]}"#, 2));
        for (text, depth) in [(r#"{"a":"\u0041"}"#, 9), ("{\"a\":\"\0\"}", 9), ("[[]]", 1), (r#"["[["]"#, 2)] {
            assert!(!plain(text, depth), "{text}");
        }
        let long = format!("[{}]", ["[]"; 300].join(","));
        assert!(!plain(&long, 300) && plain(&long, 301));
    }

    #[test]
    fn depth_counts_structure_and_not_strings() {
        assert_eq!(check_json_text("[[[]]]", 3), Ok(()));
        assert_eq!(check_json_text("[[[]]]", 2), Err(JsonTextError::TooDeep));
        assert_eq!(check_json_text(r#"["[[[[["]"#, 1), Ok(()));
    }
}
