//! The checks that every change must pass.

use std::thread::{self, ScopedJoinHandle};

use anyhow::{Result, anyhow, ensure};
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

/// Everything. Tests on control planes wait most of the time; meanwhile all that computes has the cores.
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
    lane.join().unwrap_or_else(|_| Err(anyhow!("a check could not be run")))
}

/// Fails if one of them did, with the errors of all.
fn all_of(results: [Result<()>; 4]) -> Result<()> {
    let errors: Vec<_> =
        results.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(errors.is_empty(), "{}", errors.join("\n\n"));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::cargo;

    /// One feature more or less in a crate that all others need, and a newcomer builds everything twice, or three times.
    #[test]
    fn xtask_and_rustdoc_need_nothing_that_is_built_differently_for_the_tests() {
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
                "cargo tree {of:?} has crates with features that the tests do not have, so they are built twice: turn on \
                 what is missing in xtask/Cargo.toml: {built_twice:#?}"
            );
        }
    }

    fn crates_with_features(of: &[&str]) -> BTreeSet<String> {
        let tree = cargo(&["tree", "--locked", "--prefix", "none", "--format", "{p} {f}"])
            .args(of)
            .output()
            .unwrap();
        assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
        // What it has shown before ends in a star.
        String::from_utf8(tree.stdout)
            .unwrap()
            .lines()
            .map(|line| line.trim_end_matches(" (*)").to_owned())
            .collect()
    }
}
