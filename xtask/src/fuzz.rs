//! `cargo xtask fuzz`: bytes that nobody thought of.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use crate::run::{root, say, step};

/// Longer objects are slower to make and find nothing new.
const LONGEST: &str = "-max_len=8192";

/// An object that takes this long, in seconds, breaks a promise too.
const SLOWEST: &str = "-timeout=5";

/// Runs the fuzzer from the recorded objects of the benchmark on.
pub(crate) fn run(minutes: u32) -> Result<()> {
    let root = root();
    let corpus = root.join("fuzz/corpus/object");
    seed(&root.join("bench/objects"), &corpus)?;
    say("it takes `rustup toolchain install nightly` and `cargo install cargo-fuzz`, once");
    let seconds = format!("-max_total_time={}", u64::from(minutes) * 60);
    let dictionary = format!("-dict={}", root.join("fuzz/dictionary").display());
    // The cargo that runs this program belongs to one toolchain; only the one that chooses among them knows `+nightly`.
    let mut command = Command::new("cargo");
    command.current_dir(&root).env_remove("RUSTUP_TOOLCHAIN");
    command.args(["+nightly", "fuzz", "run", "--sanitizer", "none", "object", "--"]);
    command.args([&seconds, &dictionary, LONGEST, SLOWEST]);
    step(&mut command)
}

fn seed(objects: &Path, corpus: &Path) -> Result<()> {
    fs::create_dir_all(corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
    for entry in fs::read_dir(objects).with_context(|| format!("cannot read {}", objects.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        fs::copy(&path, corpus.join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    Ok(())
}
