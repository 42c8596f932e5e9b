//! What test runners say about the tests they ran, added up, so that nothing passes by not running.

use crate::failure::Failure;

/// Counts over every runner, and the closing lines that they came from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Tests that ran and passed.
    passed: usize,
    /// Tests that were left out: ignored, skipped, or documentation that is not compiled.
    left_out: usize,
    /// The closing lines of runners that ran anything.
    closing: Vec<String>,
}

impl Tally {
    /// Notes `line` when it is a runner's closing line.
    pub(crate) fn note(&mut self, line: &str) {
        let Some(counts) = counts(line) else { return };
        let of = |what: &str| counts.iter().find(|(_, word)| word == what).map_or(0, |(count, _)| *count);
        self.passed += of("passed");
        self.left_out += of("ignored") + of("skipped");
        if counts.iter().any(|(count, word)| *count > 0 && word != "filtered") {
            self.closing.push(line.trim().to_owned());
        }
    }

    /// The closing lines, in the order in which they came.
    pub(crate) fn closing(&self) -> &[String] {
        &self.closing
    }

    /// Fails unless something ran and nothing was left out.
    pub(crate) fn judge(&self) -> Result<(), Failure> {
        match self {
            Self { passed: 0, .. } => Err(Failure::new("no test ran")),
            Self { left_out: 0, .. } => Ok(()),
            Self { left_out, .. } => Err(Failure::new(format!("{left_out} tests were ignored or skipped; every test must run"))),
        }
    }
}

/// The counts of a closing line: `test result: ok. 3 passed; …` of cargo test, `Summary [ 0.1s] 3 tests run: 3 passed, …` of nextest.
fn counts(line: &str) -> Option<Vec<(usize, String)>> {
    let line = line.trim();
    let listed = match line.strip_prefix("test result: ") {
        Some(result) => result.split_once(". ")?.1,
        None => line.strip_prefix("Summary [")?.split_once("run: ")?.1,
    };
    let count = |part: &str| {
        let mut words = part.split_whitespace();
        Some((words.next()?.parse().ok()?, words.next()?.to_owned()))
    };
    Some(listed.split([';', ',']).filter_map(count).collect())
}

#[cfg(test)]
mod tests {
    use super::Tally;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.note(line);
        }
        tally
    }

    #[test]
    fn runners_of_both_kinds_are_added_up() {
        let nextest = "     Summary [   2.345s] 12 tests run: 12 passed (1 slow), 0 skipped";
        let cargo = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let empty = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        let tally = tally(&["running 3 tests", nextest, cargo, empty, "test a ... ok"]);
        assert_eq!(tally.passed, 15);
        assert_eq!(tally.closing(), [nextest.trim(), cargo]);
        assert!(tally.judge().is_ok());
    }

    #[test]
    fn a_run_without_tests_is_not_a_success() {
        let empty = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(tally(&[empty]).judge().unwrap_err().to_string(), "no test ran");
        assert_eq!(tally(&[]).judge().unwrap_err().to_string(), "no test ran");
    }

    #[test]
    fn tests_that_are_left_out_are_not_a_success() {
        let ignored = "test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert!(tally(&[ignored]).judge().unwrap_err().to_string().starts_with("2 tests"));
        let skipped = "Summary [   2.345s] 11 tests run: 11 passed, 1 skipped";
        assert!(tally(&[skipped]).judge().unwrap_err().to_string().starts_with("1 tests"));
    }
}
