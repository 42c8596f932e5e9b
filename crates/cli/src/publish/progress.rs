//! A progress bar on a terminal, once publishing takes long.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tokio::time::Instant;

use crate::session::Session;

/// What is over sooner than this needs no bar.
const LONG: Duration = Duration::from_millis(700);

/// A bar that appears when it is worth it.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    wanted: bool,
    shown: bool,
}

impl Progress {
    /// A bar up to `total`, or a count when that is not known.
    pub(crate) fn new(session: &Session, total: Option<usize>) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden())
                .with_style(style("{bar:30} {human_pos}/{human_len} events, {rate}, {eta} left")),
            None => {
                ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style("{spinner} {human_pos} events, {rate}"))
            }
        };
        Self { bar, begun: Instant::now(), wanted: session.terminal.interactive_err, shown: false }
    }

    /// So many more are done.
    pub(crate) fn advance(&mut self, count: usize) {
        if self.wanted && !self.shown && self.begun.elapsed() >= LONG {
            self.shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(count as u64);
    }

    /// Does something while the bar is out of the way.
    pub(crate) fn suspended<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.shown { self.bar.suspend(work) } else { work() }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:.0} a second", state.per_sec());
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("rate", rate)
}
