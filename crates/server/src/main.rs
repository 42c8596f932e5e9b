//! The `doorstep` binary.
fn main() {}
