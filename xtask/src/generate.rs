//! Generates files from the code.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    picture,
    run::{log, root},
};

const HEADER: &str = "# Written by `cargo xtask generate` from the types in crates/api; edit those.\n";

/// Writes every generated file and removes stale ones.
pub(crate) fn write() -> Result<()> {
    let files = files()?;
    for stale in stale(&files)? {
        fs::remove_file(&stale).with_context(|| format!("cannot remove {}", stale.display()))?;
    }
    for (path, text) in &files {
        let directory = path.parent().context("the file has no parent directory")?;
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    log(&format!("{} files written", files.len()));
    Ok(())
}

/// Fails if a generated file is not as `write` would leave it.
pub(crate) fn check() -> Result<()> {
    log("\n$ generated files");
    let files = files()?;
    let mut differing = stale(&files)?;
    for (path, text) in &files {
        if fs::read_to_string(path).ok().as_ref() != Some(text) {
            differing.push(path.clone());
        }
    }
    if differing.is_empty() {
        log(&format!("{} files up to date", files.len()));
        return Ok(());
    }
    let root = root();
    let names: Vec<_> =
        differing.iter().map(|path| path.strip_prefix(&root).unwrap_or(path).display().to_string()).collect();
    bail!("not up to date: {}. Run `cargo xtask generate` and commit the result.", names.join(", "))
}

fn crd_directory() -> PathBuf {
    root().join("deploy").join("crds")
}

/// Every generated file with its text.
fn files() -> Result<BTreeMap<PathBuf, String>> {
    let directory = crd_directory();
    let manifests = bellwether::crds::manifests()?;
    let crds = manifests
        .into_iter()
        .map(|manifest| (directory.join(manifest.file_name), format!("{HEADER}{}", manifest.yaml)));
    let rules = (root().join("docs").join("health-rules.md"), bellwether_health::rules_page());
    let demo = (root().join("docs").join("demo.svg"), demo()?);
    Ok(crds.chain([rules, demo]).collect())
}

/// A picture of the demo, for the README.
fn demo() -> Result<String> {
    const COLUMNS: usize = 100;
    let still = bellwether::demo::still(COLUMNS)?;
    Ok(picture::terminal(
        &still,
        COLUMNS,
        "bellwether demo: an Application that fails, and why, down to the Pod",
    ))
}

/// Files in the directory of the CRDs that nothing generates.
fn stale(generated: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>> {
    let directory = crd_directory();
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let list = |directory: &Path| -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
    };
    let present = list(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    Ok(present.into_iter().filter(|path| !generated.contains_key(path)).collect())
}
