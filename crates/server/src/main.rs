//! The `doorstep` binary: parses its arguments and hands over to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    doorstep_server::main()
}
