//! What a task says: section headings and lines on standard output, errors on standard error.
//!
//! Nothing here fails: when nobody listens any more, there is nothing to report it to.

use std::io::{self, IsTerminal, Write};

/// Opens a section.
pub(crate) fn section(title: &str) {
    let text = if io::stdout().is_terminal() { format!("\n\x1b[1m== {title}\x1b[0m\n") } else { format!("\n== {title}\n") };
    write(&mut io::stdout().lock(), text.as_bytes());
}

/// One line.
pub(crate) fn line(text: &str) {
    write(&mut io::stdout().lock(), format!("{text}\n").as_bytes());
}

/// Bytes as they are, from a process that writes its own lines.
pub(crate) fn raw(bytes: &[u8]) {
    write(&mut io::stdout().lock(), bytes);
}

/// What went wrong, on standard error.
pub(crate) fn error(text: &str) {
    let text = if io::stderr().is_terminal() { format!("\x1b[1;31merror\x1b[0m: {text}\n") } else { format!("error: {text}\n") };
    write(&mut io::stderr().lock(), text.as_bytes());
}

/// Whether the person reads this on a terminal, so that children may use colour.
pub(crate) fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

fn write(to: &mut impl Write, bytes: &[u8]) {
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}
