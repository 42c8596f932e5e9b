//! The bench: what the server does per second, beside what a bare loop over the same library does on the same machine in the same
//! minutes. A row's figure is its ratio to that floor; absolute numbers say more about the machine than about the server.
//!
//! The client side shares the machine with the server, so it is cheap by construction: requests are rendered once, answers are read
//! as far as their status and length, frames as far as their sequence number, all on one thread.
//!
//! It knows the server from outside only: its binary, its command line, its sockets.

mod arguments;
mod bench;
mod failure;
mod floor;
mod ground;
mod report;
mod rows;
mod statistics;
mod system;
mod wire;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = arguments::read();
    match bench::run(&arguments) {
        Ok(report) => {
            let missed = report.lines.iter().any(report::Line::missed);
            if arguments.strict && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(failure) => {
            report::failed(&failure);
            ExitCode::FAILURE
        }
    }
}
