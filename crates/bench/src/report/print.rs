//! The terminal and the file: figures on standard output, everything else on standard error.

use std::path::Path;

use serde_json::json;

use super::{Line, Report, table};
use crate::failure::Failure;
use crate::ground::PAYLOAD_BYTES;
use crate::rows::RowName;

/// Shows the tables.
#[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
pub(crate) fn show(report: &Report) {
    print!("{}{}", table::figures(&report.lines), table::legend(&report.lines));
    let growth = table::growth(&report.lines);
    if !growth.is_empty() {
        print!("\n{growth}");
    }
    if report.quick {
        println!("A smoke run: these figures show that it works, not how fast it is.");
    }
}

/// Writes the figures as JSON.
pub(crate) fn write(report: &Report, path: &Path) -> Result<(), Failure> {
    let document = json!({
        "machine": {
            "cores": std::thread::available_parallelism().map_or(0, usize::from),
            "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        },
        "load_before": report.load,
        "sqlite": rusqlite::version(),
        "payload_bytes": PAYLOAD_BYTES,
        "quick": report.quick,
        "rounds": report.rounds,
        "seconds": report.window.as_secs_f64(),
        "lines": report.lines.iter().map(Line::json).collect::<Vec<_>>(),
    });
    std::fs::write(path, format!("{document:#}\n")).map_err(Failure::io("write the figures"))?;
    note(&format!("figures: {}", path.display()));
    Ok(())
}

/// Says which measurement begins.
pub(crate) fn progress(row: RowName, factor: Option<usize>, round: usize, rounds: usize) {
    let factor = factor.map_or(String::new(), |factor| format!(" × {factor}"));
    note(&format!("{row}{factor}: round {round} of {rounds}"));
}

/// Says that the machine is not quiet, when it is not.
pub(crate) fn busy(load: Option<f64>) {
    if let Some(load) = load.filter(|load| *load > 0.5) {
        note(&format!("The machine is busy (load {load}): do not trust the values, and the ratios less than usual."));
    }
}

/// Says why the run broke.
pub(crate) fn failed(failure: &Failure) {
    note(&format!("error: {failure}"));
}

/// Says something that is no figure.
#[expect(clippy::print_stderr, reason = "progress and failures, beside the figures on standard output")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
