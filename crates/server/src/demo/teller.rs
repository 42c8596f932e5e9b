//! What is said: in colour on a terminal, plainly elsewhere.

use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use super::Unexpected;

/// Says what happens, and counts what was checked.
#[derive(Debug)]
pub(super) struct Teller {
    coloured: bool,
    checked: usize,
}

impl Teller {
    /// Colour on a terminal, unless `NO_COLOR` is set.
    pub(super) fn new() -> Self {
        let coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { coloured, checked: 0 }
    }

    /// A new step of the story.
    pub(super) fn step(&mut self, title: &str) {
        self.say(Style::new().bold().fg_color(Some(AnsiColor::Cyan.into())), "\n", title);
    }

    /// Something that is done.
    pub(super) fn note(&mut self, text: &str) {
        self.say(Style::new(), "  ", text);
    }

    /// Holds what was seen against what should be seen.
    ///
    /// # Errors
    /// When they differ.
    pub(super) fn check<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, seen: T, expected: T) -> Result<(), Unexpected> {
        if seen != expected {
            return Err(Unexpected(format!("{what}: saw {seen:?}, expected {expected:?}")));
        }
        self.checked += 1;
        self.say(Style::new().fg_color(Some(AnsiColor::Green.into())), "  ✓ ", &format!("{what}: {seen:?}"));
        Ok(())
    }

    /// The end of the story.
    pub(super) fn end(&mut self, outcome: Result<(), Unexpected>) -> ExitCode {
        match outcome {
            Ok(()) => {
                let text = format!("Everything was as it should be ({} checks).", self.checked);
                self.say(Style::new().bold().fg_color(Some(AnsiColor::Green.into())), "\n", &text);
                ExitCode::SUCCESS
            }
            Err(unexpected) => {
                self.say(Style::new().bold().fg_color(Some(AnsiColor::Red.into())), "  ✗ ", &unexpected.to_string());
                ExitCode::FAILURE
            }
        }
    }

    fn say(&self, style: Style, mark: &str, text: &str) {
        let mut out = std::io::stdout().lock();
        // Nobody listens any more: the story goes on, its exit code still tells.
        let _ = if self.coloured { writeln!(out, "{mark}{style}{text}{style:#}") } else { writeln!(out, "{mark}{text}") };
        let _ = out.flush();
    }
}
