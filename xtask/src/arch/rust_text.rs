//! Just enough of Rust's lexis to tell code from comments, literals and tests.
//!
//! It relies on rustfmt (an item ends at the closing brace of its own indentation) and never fails: what it does not
//! understand counts as code.

use std::ops::Range;

/// A source text, taken apart.
#[derive(Debug)]
pub(crate) struct RustText {
    /// The text with comments and the contents of literals blanked; lines stay where they are.
    code: String,
    literals: Vec<Literal>,
    /// Line numbers, counted from 1, that are test code.
    tests: Vec<Range<usize>>,
}

/// A string literal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    /// Its first line, counted from 1.
    pub(crate) line: usize,
    /// Its text as written, escapes untouched.
    pub(crate) text: String,
    /// Whether it stands in test code.
    pub(crate) in_test: bool,
}

impl RustText {
    /// Takes `text` apart.
    pub(crate) fn new(text: &str) -> Self {
        let mut lexer = Lexer { bytes: text.as_bytes(), at: 0, line: 1, code: Vec::with_capacity(text.len()), literals: Vec::new() };
        lexer.run();
        let code = String::from_utf8_lossy(&lexer.code).into_owned();
        let tests = test_items(&code);
        let mut literals = lexer.literals;
        for literal in &mut literals {
            literal.in_test = tests.iter().any(|range| range.contains(&literal.line));
        }
        Self { code, literals, tests }
    }

    /// The string literals outside test code.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &Literal> {
        self.literals.iter().filter(|literal| !literal.in_test)
    }

    /// How many lines are not test code.
    pub(crate) fn lines_outside_tests(&self) -> usize {
        self.code.lines().count() - self.tests.iter().map(ExactSizeIterator::len).sum::<usize>()
    }

    /// Whether `identifier` is named in the code, tests included.
    pub(crate) fn names(&self, identifier: &str) -> bool {
        let part_of_name = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
        self.code.match_indices(identifier).any(|(at, found)| {
            let before = self.code.get(..at).and_then(|text| text.chars().next_back());
            let after = self.code.get(at + found.len()..).and_then(|text| text.chars().next());
            !part_of_name(before) && !part_of_name(after)
        })
    }
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    code: Vec<u8>,
    literals: Vec<Literal>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(byte) = self.peek(0) {
            match (byte, self.peek(1)) {
                (b'/', Some(b'/')) => self.blank_while(|lexer| lexer.peek(0) != Some(b'\n')),
                (b'/', Some(b'*')) => self.block_comment(),
                (b'"', _) => self.string(),
                (b'\'', Some(next)) => self.quote(next),
                _ if byte.is_ascii_alphabetic() || byte == b'_' => self.word(),
                _ => self.keep(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        if let Some(byte) = self.peek(0) {
            self.code.push(byte);
            self.line += usize::from(byte == b'\n');
            self.at += 1;
        }
    }

    fn blank(&mut self) {
        if let Some(byte) = self.peek(0) {
            self.code.push(if byte == b'\n' { b'\n' } else { b' ' });
            self.line += usize::from(byte == b'\n');
            self.at += 1;
        }
    }

    fn blank_while(&mut self, go_on: impl Fn(&Self) -> bool) {
        while self.peek(0).is_some() && go_on(self) {
            self.blank();
        }
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => depth += 1,
                (Some(b'*'), Some(b'/')) => depth -= 1,
                (None, _) => return,
                _ => {
                    self.blank();
                    continue;
                }
            }
            self.blank();
            self.blank();
            if depth == 0 {
                return;
            }
        }
    }

    /// An identifier or number; or the prefix of a raw string.
    fn word(&mut self) {
        while self.peek(0).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.keep();
        }
        if !matches!(self.code.as_slice(), [.., b'r']) {
            return;
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
        // `r` may also end an ordinary name; only a prefix stands alone before a quote.
        if self.peek(hashes) == Some(b'"') {
            (0..hashes).for_each(|_| self.blank());
            self.raw_string(hashes);
        }
    }

    fn string(&mut self) {
        let line = self.line;
        self.keep();
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'"' => break,
                b'\\' => {
                    self.blank();
                    self.blank();
                }
                _ => self.blank(),
            }
        }
        self.literal(line, start);
        self.keep();
    }

    fn raw_string(&mut self, hashes: usize) {
        let line = self.line;
        self.keep();
        let start = self.at;
        self.blank_while(|lexer| !(lexer.peek(0) == Some(b'"') && (1..=hashes).all(|ahead| lexer.peek(ahead) == Some(b'#'))));
        self.literal(line, start);
        self.keep();
        (0..hashes).for_each(|_| self.blank());
    }

    fn literal(&mut self, line: usize, start: usize) {
        let text = String::from_utf8_lossy(self.bytes.get(start..self.at).unwrap_or_default()).into_owned();
        self.literals.push(Literal { line, text, in_test: false });
    }

    /// A character literal, or the tick of a lifetime.
    fn quote(&mut self, next: u8) {
        // The character may take up to four bytes.
        let closes = (2..=5).any(|ahead| self.peek(ahead) == Some(b'\'') && (ahead == 2 || !next.is_ascii()));
        self.keep();
        if next == b'\\' {
            self.blank();
            self.blank();
        } else if !closes {
            return;
        }
        self.blank_while(|lexer| lexer.peek(0) != Some(b'\''));
        self.keep();
    }
}

/// The lines of every item behind `#[cfg(test)]`.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let mut lines = code.lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((first, attribute)) = lines.next() {
        if !attribute.trim_start().starts_with("#[cfg(test)]") {
            continue;
        }
        let indentation: String = attribute.chars().take_while(|character| *character == ' ').collect();
        let end = format!("{indentation}}}");
        let last = lines.by_ref().find(|(_, line)| {
            let own = line.strip_prefix(&indentation).is_some_and(|rest| !rest.starts_with(' '));
            line.trim_end() == end || (own && (line.trim_end().ends_with(';') || line.trim_end().ends_with('}')))
        });
        items.push(first..last.map_or(first, |(number, _)| number) + 1);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::RustText;

    fn texts(source: &str) -> Vec<String> {
        RustText::new(source).literals().map(|literal| literal.text.clone()).collect()
    }

    #[test]
    fn literals_are_found_in_every_spelling_and_nowhere_else() {
        let source = r##"
            // "comment"
            /* "block /* nested */ still" */
            let a = "one \" two"; let b = r#"three " four"#; let c = b"five"; let d = br"six";
            let tick: &'static str = "seven"; let quote = '"'; let escaped = '\''; let wide = 'ä'; let e = "eight";
            let number = for_bar("nine");
        "##;
        assert_eq!(texts(source), ["one \\\" two", "three \" four", "five", "six", "seven", "eight", "nine"]);
    }

    #[test]
    fn a_literal_knows_its_first_line() {
        let text = RustText::new("//! doc\n\nlet a = \"x\ny\";\nlet b = \"z\";\n");
        assert_eq!(text.literals().map(|literal| literal.line).collect::<Vec<_>>(), [3, 5]);
    }

    #[test]
    fn test_items_are_neither_counted_nor_searched() {
        let source =
            "//! doc\nconst A: &str = \"a\";\n\n#[cfg(test)]\nmod tests {\n    const B: &str = \"b\";\n}\n\nconst C: &str = \"c\";\n";
        let text = RustText::new(source);
        assert_eq!(texts(source), ["a", "c"]);
        assert_eq!(text.lines_outside_tests(), 5);
        let source = "//! doc\n#[cfg(test)]\nmod tests;\nconst A: &str = \"a\";\nimpl X {\n    #[cfg(test)]\n    fn b() {\n        \"b\";\n    }\n\n    fn c() {}\n}\n";
        assert_eq!(texts(source), ["a"]);
        assert_eq!(RustText::new(source).lines_outside_tests(), 6);
    }

    #[test]
    fn identifiers_are_whole_words_of_the_code() {
        let text = RustText::new("use serde_json::Value; // tokio\nlet a = \"bytes\"; let b = r#\"ring\"#; my_uuid::x();\n");
        assert!(text.names("serde_json") && text.names("Value"));
        for absent in ["serde", "tokio", "bytes", "ring", "uuid"] {
            assert!(!text.names(absent), "{absent}");
        }
    }
}
