//! `bellwether`: one trustworthy status for many Kubernetes objects.

use std::process::ExitCode;

fn main() -> ExitCode {
    bellwether::run()
}
