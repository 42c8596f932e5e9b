//! Running other programs: shown before they run, judged by their exit status.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::failure::Failure;
use crate::output;

/// The cargo that runs this task, in `directory`.
pub(crate) fn cargo(directory: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(directory);
    command
}

/// Runs `command` with this task's own input and output.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = announce(command);
    let status = command.status().map_err(|error| Failure::because(format_args!("start `{shown}`"), error))?;
    judge(&shown, status)
}

/// Runs `command` and returns what it wrote to standard output.
pub(crate) fn capture(command: &mut Command) -> Result<Vec<u8>, Failure> {
    let shown = announce(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::because(format_args!("start `{shown}`"), error))?;
    judge(&shown, output.status)?;
    Ok(output.stdout)
}

/// Runs `command`, shows what it writes as it comes, and hands each line (without colour) to `note`.
pub(crate) fn run_noting(command: &mut Command, mut note: impl FnMut(&str)) -> Result<(), Failure> {
    if output::on_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let shown = announce(command);
    let start = |error: io::Error| Failure::because(format_args!("run `{shown}`"), error);
    // One pipe for both streams keeps their order.
    let (reader, writer) = io::pipe().map_err(start)?;
    let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(start)?).stderr(writer).spawn().map_err(start)?;
    // The command still owns the writing ends; without them closed the reader would never see the end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(start)? > 0 {
        output::raw(&line);
        note(&without_colour(&String::from_utf8_lossy(&line)));
        line.clear();
    }
    judge(&shown, child.wait().map_err(start)?)
}

/// The first line that `program arguments…` prints, when it can be run at all.
pub(crate) fn version_line(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

fn announce(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let shown = command.get_args().fold(program, |shown, argument| format!("{shown} {}", argument.to_string_lossy()));
    output::line(&format!("$ {shown}"));
    shown
}

fn judge(shown: &str, status: ExitStatus) -> Result<(), Failure> {
    if status.success() { Ok(()) } else { Err(Failure::new(format!("`{shown}` ended with {status}"))) }
}

/// `line` without the escape sequences that colour it.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.trim_end().chars();
    while let Some(character) = characters.next() {
        if character == '\x1b' {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{capture, run_noting, version_line, without_colour};

    #[test]
    fn both_streams_are_noted_in_the_order_in_which_they_were_written() {
        let mut lines = Vec::new();
        let script = "echo one; echo two >&2; printf 'three'";
        run_noting(Command::new("sh").args(["-c", script]), |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["one", "two", "three"]);
    }

    #[test]
    fn a_process_that_fails_is_a_failure_that_names_it() {
        let failure = run_noting(Command::new("sh").args(["-c", "exit 3"]), |_| ()).unwrap_err();
        assert!(failure.to_string().contains("sh -c exit 3"), "{failure}");
        assert!(capture(Command::new("sh").args(["-c", "exit 3"])).is_err());
        assert!(capture(&mut Command::new("no-such-program-anywhere")).is_err());
        assert_eq!(version_line(&mut Command::new("no-such-program-anywhere")), None);
    }

    #[test]
    fn colour_is_not_part_of_a_line() {
        assert_eq!(without_colour("\x1b[32;1m     Summary\x1b[0m [ 0.1s] 3 tests\r\n"), "     Summary [ 0.1s] 3 tests");
    }
}
