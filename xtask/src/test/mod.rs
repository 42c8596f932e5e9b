//! `test`: the one command that prepares what the tests need and runs every one of them. No retries, nothing skipped.

mod database;
mod packages;
mod published;
mod tally;
mod tools;

use crate::failure::Failure;
use crate::workspace::{Selection, Workspace};
use crate::{output, process};
use database::Database;
use tally::Tally;

/// Runs everything and shows the runners' closing lines last.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let (tally, result) = run_quietly(workspace);
    show(&tally);
    result
}

/// Runs everything; the caller shows the tally when it has said what else it has to say.
pub(crate) fn run_quietly(workspace: &Workspace) -> (Tally, Result<(), Failure>) {
    let mut tally = Tally::default();
    let result = prepare(workspace).and_then(|(runner, database)| {
        let tests = run_tests(workspace, runner, database.as_ref(), &mut tally);
        let examples = run_examples(workspace, &mut tally);
        tests.and(examples).and_then(|()| tally.judge())
    });
    (tally, result)
}

/// The closing lines of the runners.
pub(crate) fn show(tally: &Tally) {
    output::section("test results");
    for line in tally.closing() {
        output::line(line);
    }
}

/// Tools first, then what the tests are made of, with the binary that they start and kill, then the database that they share.
fn prepare(workspace: &Workspace) -> Result<(tools::Runner, Option<Database>), Failure> {
    output::section("tools");
    let runner = tools::check(workspace.root())?;
    published::prepare(workspace.root(), workspace.metadata().target_directory.as_std_path())?;
    output::section("build");
    let binary = workspace.build_binary(Selection::Everything)?;
    output::section("database");
    let database = Database::start(&binary.with_file_name("throwaway-postgres"))?;
    Ok((runner, database))
}

fn run_tests(workspace: &Workspace, runner: tools::Runner, database: Option<&Database>, tally: &mut Tally) -> Result<(), Failure> {
    output::section("tests");
    let mut command = process::cargo(workspace.root());
    match runner {
        tools::Runner::Nextest => command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--retries", "0"]),
        tools::Runner::Cargo => command.args(["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]),
    };
    if let Some(database) = database {
        command.env(database::VARIABLE, database.url());
    }
    process::run_noting(&mut command, |line| tally.note(line))
}

fn run_examples(workspace: &Workspace, tally: &mut Tally) -> Result<(), Failure> {
    output::section("examples in the documentation");
    let mut command = process::cargo(workspace.root());
    process::run_noting(command.args(["test", "--workspace", "--doc", "--no-fail-fast"]), |line| tally.note(line))
}
