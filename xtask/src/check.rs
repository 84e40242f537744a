//! The checks that every change must pass.

use std::thread::{self, ScopedJoinHandle};

use anyhow::{Result, anyhow, ensure};
use bellwether_testkit::Binary;

use crate::{
    conformance, executables, generate, layers,
    run::{cargo, log, step, yield_cores},
    simulate, words,
};

/// All checks that need no cluster.
pub(crate) fn check() -> Result<()> {
    quick()?;
    thorough()
}

/// Checks that take seconds.
fn quick() -> Result<()> {
    step(&mut cargo(&["fmt", "--all", "--check"]))?;
    generate::check()?;
    words::check()?;
    layers::check()
}

/// Checks that compile the workspace.
fn thorough() -> Result<()> {
    step(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"]))?;
    conformance::check()?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
    step(doc.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Runs everything. Tests on control planes mostly wait, so CPU-bound checks run at the same time.
pub(crate) fn test(arguments: &[String]) -> Result<()> {
    quick()?;
    thread::scope(|scope| {
        let control_planes = scope.spawn(control_planes);
        let executables = executables::build()?;
        let on_control_planes = scope.spawn(move || {
            join(control_planes)?;
            executables::run_on_control_planes(executables.on_control_planes, arguments)
        });
        yield_cores()?;
        let simulation = scope.spawn(simulate::check);
        let others = executables::run_others(executables.others, arguments);
        let checks = thorough().and_then(|()| doc_tests(arguments));
        all_of([join(on_control_planes), join(simulation), others, checks])
    })
}

fn join(lane: ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    lane.join().unwrap_or_else(|_| Err(anyhow!("a check panicked")))
}

/// Fails with the errors of all failed checks.
fn all_of(results: [Result<()>; 4]) -> Result<()> {
    let errors: Vec<_> =
        results.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(errors.is_empty(), "{}", errors.join("\n\n"));
    Ok(())
}

/// Builds missing binaries of the control plane. Inside a test, the progress would be invisible.
fn control_planes() -> Result<()> {
    log("\n$ control plane");
    for binary in Binary::ALL {
        log(&format!("{} {}", binary.file_name(), binary.find()?.display()));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::cargo;

    /// If the features of a common dependency differ, cargo builds it and everything above it twice.
    #[test]
    fn xtask_rustdoc_and_tests_use_the_same_features() {
        let tests = crates_with_features(&["--workspace"]);
        assert!(tests.len() > 100, "{tests:?}");
        for of in [
            &["--package", "xtask", "--edges", "normal,build"][..],
            &["--workspace", "--edges", "normal,build"],
        ] {
            let others = crates_with_features(of);
            let built_twice: Vec<_> = others.difference(&tests).collect();
            assert!(
                built_twice.is_empty(),
                "cargo tree {of:?} has crates with other features than the tests, so they are built twice. Enable the \
                 missing features in xtask/Cargo.toml: {built_twice:#?}"
            );
        }
    }

    fn crates_with_features(of: &[&str]) -> BTreeSet<String> {
        let tree = cargo(&["tree", "--locked", "--prefix", "none", "--format", "{p} {f}"])
            .args(of)
            .output()
            .unwrap();
        assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
        // cargo tree marks repeated entries with a star.
        String::from_utf8(tree.stdout)
            .unwrap()
            .lines()
            .map(|line| line.trim_end_matches(" (*)").to_owned())
            .collect()
    }
}
