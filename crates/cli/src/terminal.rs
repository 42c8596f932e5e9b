//! Where a command reads from and writes to. The only place that knows the process's own streams.

use std::io::{self, IsTerminal as _, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::settings::Environment;

/// Something that is written to, also from another thread.
pub(crate) type Sink = Arc<Mutex<dyn Write + Send>>;

/// The streams and the environment of a command.
pub struct Terminal {
    pub(crate) out: Sink,
    pub(crate) err: Sink,
    input: Mutex<Option<Box<dyn Read + Send>>>,
    pub(crate) interactive_input: bool,
    pub(crate) interactive_out: bool,
    pub(crate) interactive_err: bool,
    pub(crate) environment: Environment,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("interactive_out", &self.interactive_out).finish_non_exhaustive()
    }
}

impl Terminal {
    /// The process's own.
    pub fn of_process() -> Self {
        Self {
            out: Arc::new(Mutex::new(io::stdout())),
            err: Arc::new(Mutex::new(io::stderr())),
            input: Mutex::new(Some(Box::new(io::stdin()))),
            interactive_input: io::stdin().is_terminal(),
            interactive_out: io::stdout().is_terminal(),
            interactive_err: io::stderr().is_terminal(),
            environment: Environment::of_process(),
        }
    }

    /// Other streams, none of them a terminal.
    pub fn of_streams(
        input: impl Read + Send + 'static,
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
        environment: Environment,
    ) -> Self {
        Self {
            out: Arc::new(Mutex::new(out)),
            err: Arc::new(Mutex::new(err)),
            input: Mutex::new(Some(Box::new(input))),
            interactive_input: false,
            interactive_out: false,
            interactive_err: false,
            environment,
        }
    }
}

impl Terminal {
    /// Standard input, for whoever asks first.
    pub(crate) fn take_input(&self) -> Option<Box<dyn Read + Send>> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Writes a line and flushes it.
pub(crate) fn write_line(sink: &Sink, line: &str) -> io::Result<()> {
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    sink.write_all(line.as_bytes())?;
    sink.write_all(b"\n")?;
    sink.flush()
}

/// Writes bytes and flushes them.
pub(crate) fn write_all(sink: &Sink, bytes: &[u8]) -> io::Result<()> {
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    sink.write_all(bytes)?;
    sink.flush()
}
