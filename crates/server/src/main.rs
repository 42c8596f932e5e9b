//! The `doorstep` binary: parses its arguments and hands over to the library.

use std::process::ExitCode;

/// A request makes some fifty small allocations on one thread and frees many of them on another, which the allocators of the C libraries are slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    doorstep_server::main()
}
