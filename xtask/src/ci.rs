//! `ci`: everything that a change must pass, with the time that each step took. Later steps run although an earlier one failed,
//! so that one run says all there is to say.

use std::time::{Duration, Instant};

use crate::document::Mode;
use crate::failure::Failure;
use crate::workspace::{Selection, Workspace};
use crate::{api, arch, config_docs, output, process, test};

/// What became of a step.
struct Outcome {
    name: &'static str,
    took: Duration,
    result: Result<(), Failure>,
}

/// Runs every step; the runners' closing lines come last.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let cargo = |arguments: &[&str]| process::run(process::cargo(workspace.root()).args(arguments));
    let mut outcomes = vec![
        step("format", || cargo(&["fmt", "--all", "--check"])),
        step("lints", || cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])),
        step("architecture", || arch::check(workspace)),
        step("build", || workspace.build_binary(Selection::Everything).map(drop)),
        step("api documents", || api::run(workspace, Mode::Check, Selection::Everything)),
        step("configuration reference", || config_docs::run(workspace, Mode::Check, Selection::Everything)),
        step("crate graph", || cargo(&["deny", "check", "bans", "licenses", "sources"])),
    ];
    let mut tally = None;
    outcomes.push(step("test", || {
        let (noted, result) = test::run_quietly(workspace);
        tally = Some(noted);
        result
    }));
    output::section("steps");
    for outcome in &outcomes {
        output::line(&summary(outcome));
    }
    if let Some(tally) = tally {
        test::show(&tally);
    }
    let failed: Vec<&str> = outcomes.iter().filter(|outcome| outcome.result.is_err()).map(|outcome| outcome.name).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format!("failed: {}", failed.join(", ")))) }
}

fn step(name: &'static str, run: impl FnOnce() -> Result<(), Failure>) -> Outcome {
    output::section(name);
    let start = Instant::now();
    let result = run().inspect_err(|failure| output::error(&failure.to_string()));
    Outcome { name, took: start.elapsed(), result }
}

fn summary(outcome: &Outcome) -> String {
    let Outcome { name, took, result } = outcome;
    let word = if result.is_ok() { "ok" } else { "FAILED" };
    format!("{name:<24} {:>7.1} s  {word}", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{step, summary};
    use crate::failure::Failure;

    #[test]
    fn a_step_that_fails_is_timed_and_marked() {
        let mut outcome = step("lints", || Err(Failure::new("no")));
        outcome.took = Duration::from_millis(1250);
        assert_eq!(summary(&outcome), "lints                        1.2 s  FAILED");
        assert!(summary(&step("format", || Ok(()))).ends_with("s  ok"));
    }
}
