//! `bellwether`: one trustworthy status for many Kubernetes objects.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// It gives back what a long list took; the one of the C library keeps it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    bellwether::run()
}
