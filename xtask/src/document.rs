//! Documents that are generated, committed and checked.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::failure::Failure;
use crate::output;

/// What to do with a generated document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Put it where it is committed.
    Write,
    /// Fail unless the committed one is the same.
    Check,
}

impl Mode {
    /// `--check` or not.
    pub(crate) fn from_check(check: bool) -> Self {
        if check { Self::Check } else { Self::Write }
    }
}

/// Writes `generated` to `root/path`, or compares it with what is there; `renew` is the command that writes it.
pub(crate) fn settle(root: &Path, path: &str, generated: &[u8], mode: Mode, renew: &str) -> Result<(), Failure> {
    let file = root.join(path);
    let committed = match fs::read(&file) {
        Ok(committed) => Some(committed),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::because(format_args!("read {path}"), error)),
    };
    if committed.as_deref() == Some(generated) {
        output::line(&format!("{path} is current"));
        return Ok(());
    }
    match mode {
        Mode::Check => Err(Failure::new(format!("{path} {}; `{renew}` renews it", difference(committed.as_deref(), generated)))),
        Mode::Write => {
            let write = |error| Failure::because(format_args!("write {path}"), error);
            fs::create_dir_all(file.parent().unwrap_or(root)).map_err(write)?;
            fs::write(&file, generated).map_err(write)?;
            output::line(&format!("{path} written"));
            Ok(())
        }
    }
}

/// Where `committed` first differs from `generated`, in words.
pub(crate) fn difference(committed: Option<&[u8]>, generated: &[u8]) -> String {
    let Some(committed) = committed else { return "is missing".to_owned() };
    let (committed, generated) = (String::from_utf8_lossy(committed), String::from_utf8_lossy(generated));
    let (mut old, mut new) = (committed.lines(), generated.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => break,
            (old, new) if old == new => {}
            (old, new) => {
                let (old, new) = (old.unwrap_or("nothing").trim(), new.unwrap_or("nothing").trim());
                return format!("is out of date from line {number} on (committed: {old}; now: {new})");
            }
        }
    }
    "differs in its line ends".to_owned()
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_names_the_first_line_that_differs() {
        assert_eq!(difference(None, b"a"), "is missing");
        assert_eq!(difference(Some(b"a\nb\n"), b"a\nc\n"), "is out of date from line 2 on (committed: b; now: c)");
        assert_eq!(difference(Some(b"a\n"), b"a\nc\n"), "is out of date from line 2 on (committed: nothing; now: c)");
        assert_eq!(difference(Some(b"a\nb"), b"a\n"), "is out of date from line 2 on (committed: b; now: nothing)");
        assert_eq!(difference(Some(b"a\r\n"), b"a\n"), "differs in its line ends");
    }
}
