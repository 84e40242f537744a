//! The checks that every change must pass.

use std::{sync::mpsc, thread};

use anyhow::{Result, anyhow, bail};
use bellwether_testkit::Binary;

use crate::{
    conformance, executables, floors, generate,
    run::{cargo, say, step, yield_cores},
    simulate,
};

/// Everything that needs no cluster.
pub(crate) fn check() -> Result<()> {
    quick()?;
    thorough()
}

/// What takes seconds.
fn quick() -> Result<()> {
    step(&mut cargo(&["fmt", "--all", "--check"]))?;
    generate::check()?;
    floors::check()
}

/// What compiles and computes.
fn thorough() -> Result<()> {
    step(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]))?;
    conformance::check()?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
    step(doc.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Everything. Tests wait for API servers most of the time; meanwhile the other checks have the cores.
pub(crate) fn test(arguments: &[String]) -> Result<()> {
    quick()?;
    let (send, built) = mpsc::channel();
    let (tests, others) = thread::scope(|scope| {
        let tests = scope.spawn(move || {
            control_planes()?;
            // If they could not be built, the other thread says so.
            built.recv().map_or(Ok(()), |executables| executables::run(executables, arguments))
        });
        let others = || {
            send.send(executables::build()?)?;
            yield_cores()?;
            thorough()?;
            doc_tests(arguments)?;
            simulate::check()
        };
        let others = others();
        drop(send);
        (tests.join().unwrap_or_else(|_| Err(anyhow!("the tests could not be run"))), others)
    });
    let errors: Vec<_> =
        [tests, others].into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if !errors.is_empty() {
        bail!("{}", errors.join("\n\n"));
    }
    Ok(())
}

/// Builds what is missing of the control planes here, where the developer sees the progress, rather than inside a test.
fn control_planes() -> Result<()> {
    say("\n$ control plane");
    for binary in Binary::ALL {
        say(&format!("{} {}", binary.file_name(), binary.find()?.display()));
    }
    Ok(())
}

fn doc_tests(arguments: &[String]) -> Result<()> {
    let mut command = cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]);
    if !arguments.is_empty() {
        command.arg("--").args(arguments);
    }
    step(&mut command)
}
