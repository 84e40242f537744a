//! `bellwether`: shows one status for many Kubernetes objects.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Unlike the allocator of the C library, it returns the memory of a long list to the system.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    bellwether::run()
}
