//! One run of a command: its client, its output, its complaints.

use std::io::ErrorKind;

use anstyle::{AnsiColor, Style};
use client::Client;
use serde::Serialize;

use crate::failure::Failure;
use crate::options::{ColorChoice, GlobalOptions};
use crate::settings::Settings;
use crate::subject::Subject;
use crate::table;
use crate::terminal::{Sink, Terminal, write_line};

/// One run of a command.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) terminal: Terminal,
    pub(crate) options: GlobalOptions,
}

impl Session {
    pub(crate) fn new(options: GlobalOptions, terminal: Terminal) -> Self {
        Self { terminal, options }
    }

    /// The client of the configured server, with the configured token.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let client = self.settings()?.client()?;
        if client.is_exposed() {
            self.note(&format!("the token is sent unencrypted to {}: use https", client.address()));
        }
        Ok(client)
    }

    /// The client of the configured server, for what needs no token.
    pub(crate) fn client_without_token(&self) -> Result<Client, Failure> {
        self.settings()?.client_without_token()
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let settings = Settings::find(&self.options, &self.terminal.environment)?;
        settings.warnings.iter().for_each(|warning| self.note(warning));
        Ok(settings)
    }

    /// Prints a list: a table, or one JSON object a line.
    pub(crate) fn list<T: Serialize>(&self, headers: &[&str], items: &[T], row: impl Fn(&T) -> Vec<String>) -> Result<(), Failure> {
        if self.options.json {
            return items.iter().try_for_each(|item| self.json(item));
        }
        let rows: Vec<_> = items.iter().map(row).collect();
        let lines = table::render(headers, &rows);
        let mut lines = lines.iter();
        if let Some(header) = lines.next() {
            self.line(&self.paint(header, Style::new().bold()))?;
        }
        lines.try_for_each(|line| self.line(line))
    }

    /// Prints one thing: its members one a line, or one JSON object.
    pub(crate) fn item<T: Serialize>(&self, item: &T, members: &[(&str, String)]) -> Result<(), Failure> {
        if self.options.json {
            return self.json(item);
        }
        let width = members.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        members.iter().filter(|(_, value)| !value.is_empty()).try_for_each(|(name, value)| {
            let name = format!("{name:<width$}");
            self.line(&format!("{}  {}", self.paint(&name, Style::new().bold()), table::printable(value)))
        })
    }

    /// Prints a JSON object on a line.
    pub(crate) fn json(&self, item: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(item).map_err(|error| Failure::Failed(format!("the answer cannot be written: {error}")))?;
        self.record(&text)
    }

    /// Prints a line of JSON as it is, except that a terminal is not made to obey it.
    pub(crate) fn record(&self, text: &str) -> Result<(), Failure> {
        if self.terminal.interactive_out { self.line(&table::terminal_json(text)) } else { self.line(text) }
    }

    /// Prints a line.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        write_line(&self.terminal.out, text).map_err(output_failure)
    }

    /// Says something on standard error. That it cannot be said stops nothing.
    pub(crate) fn note(&self, text: &str) {
        let _ = write_line(&self.terminal.err, &format!("doorstep: {text}"));
    }

    /// The same for whoever outlives a borrow.
    pub(crate) fn notes(&self) -> Notes {
        Notes(std::sync::Arc::clone(&self.terminal.err))
    }

    /// Says that something was done to something: on standard error, or as a JSON object.
    pub(crate) fn done(&self, done: &'static str, to: &impl ToString) -> Result<(), Failure> {
        let to = to.to_string();
        if self.options.json {
            return self.json(&std::collections::BTreeMap::from([(done, to)]));
        }
        self.note(&format!("{done} {to}"));
        Ok(())
    }

    /// Says why the command failed.
    pub(crate) fn complain(&self, failure: &Failure, subject: &Subject) {
        // Whoever closed the output knows; and that nothing is to do is no complaint, which cron would mail.
        if matches!(failure, Failure::OutputClosed | Failure::NothingToDo) {
            return;
        }
        let red = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
        let name = if self.colours(self.terminal.interactive_err) { format!("{red}doorstep:{red:#}") } else { "doorstep:".to_owned() };
        let text = table::printable(&failure.tell(subject));
        let _ = write_line(&self.terminal.err, &format!("{name} {text}"));
        if let Some(hint) = failure.hint(subject) {
            self.note(&hint);
        }
    }

    /// `text` in a style, where output is coloured.
    pub(crate) fn paint(&self, text: &str, style: Style) -> String {
        if self.colours(self.terminal.interactive_out) { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn colours(&self, is_terminal: bool) -> bool {
        match self.options.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let environment = &self.terminal.environment;
                is_terminal && environment.get("NO_COLOR").is_none() && environment.get("TERM") != Some("dumb")
            }
        }
    }
}

/// Says things on standard error, from anywhere.
#[derive(Clone)]
pub(crate) struct Notes(Sink);

impl Notes {
    /// Says something, made safe to print. That it cannot be said stops nothing.
    pub(crate) fn note(&self, text: &str) {
        let _ = write_line(&self.0, &format!("doorstep: {}", table::printable(text)));
    }
}

/// What a failed write of the output means.
pub(crate) fn output_failure(error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::io("the output cannot be written", &error),
    }
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::Session;
    use crate::options::{ColorChoice, GlobalOptions};
    use crate::settings::Environment;
    use crate::terminal::Terminal;

    /// Whether output is coloured.
    fn is_coloured(color: ColorChoice, interactive: bool, variables: &[(&'static str, &str)]) -> bool {
        let environment = Environment::of(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let mut terminal = Terminal::of_streams(std::io::empty(), std::io::sink(), std::io::sink(), environment);
        terminal.interactive_out = interactive;
        let session = Session::new(GlobalOptions { color, ..GlobalOptions::default() }, terminal);
        session.paint("x", Style::new().bold()) != "x"
    }

    #[test]
    fn colour_is_for_terminals_and_respects_no_color() {
        assert!(is_coloured(ColorChoice::Auto, true, &[]));
        assert!(!is_coloured(ColorChoice::Auto, false, &[]));
        assert!(!is_coloured(ColorChoice::Auto, true, &[("NO_COLOR", "1")]));
        assert!(!is_coloured(ColorChoice::Auto, true, &[("TERM", "dumb")]));
        assert!(is_coloured(ColorChoice::Auto, true, &[("NO_COLOR", "")]), "an empty variable says nothing");
        assert!(is_coloured(ColorChoice::Always, false, &[("NO_COLOR", "1")]));
        assert!(!is_coloured(ColorChoice::Never, true, &[]));
    }
}
