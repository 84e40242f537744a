//! The checks that every change must pass.

use anyhow::Result;
use bellwether_testkit::Binary;

use crate::{
    conformance, faults, floors, generate,
    run::{cargo, say, step},
    simulate,
};

/// Everything that needs no cluster.
pub(crate) fn check() -> Result<()> {
    step(&mut cargo(&["fmt", "--all", "--check"]))?;
    generate::check()?;
    floors::check()?;
    step(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]))?;
    conformance::check()?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
    step(doc.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Everything.
pub(crate) fn test(arguments: &[String]) -> Result<()> {
    check()?;
    // Here, where the developer sees the progress, rather than inside a test.
    say("\n$ control plane");
    for binary in Binary::ALL {
        say(&format!("{} {}", binary.file_name(), binary.find()?.display()));
    }
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    if !arguments.is_empty() {
        command.arg("--").args(arguments);
    }
    step(&mut command)?;
    faults::clocks()?;
    simulate::check()
}
