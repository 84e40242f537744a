//! Files that are written from the code, so that they never disagree with it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::run::{root, say};

const HEADER: &str = "# Written by `cargo xtask generate` from the types in crates/api; edit those.\n";

/// Writes every generated file, and removes those that are no longer generated.
pub(crate) fn write() -> Result<()> {
    let crds = crds()?;
    for stale in stale(&crds)? {
        fs::remove_file(&stale).with_context(|| format!("cannot remove {}", stale.display()))?;
    }
    for (path, text) in &crds {
        let directory = path.parent().context("a file without a directory")?;
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    say(&format!("{} files written", crds.len()));
    Ok(())
}

/// Fails if a generated file is not as `write` would leave it.
pub(crate) fn check() -> Result<()> {
    say("\n$ generated files");
    let crds = crds()?;
    let mut differing = stale(&crds)?;
    for (path, text) in &crds {
        if fs::read_to_string(path).ok().as_ref() != Some(text) {
            differing.push(path.clone());
        }
    }
    if differing.is_empty() {
        say(&format!("{} files up to date", crds.len()));
        return Ok(());
    }
    let root = root();
    let names: Vec<_> =
        differing.iter().map(|path| path.strip_prefix(&root).unwrap_or(path).display().to_string()).collect();
    bail!("not up to date: {}; run `cargo xtask generate` and commit the result", names.join(", "))
}

fn crd_directory() -> PathBuf {
    root().join("deploy").join("crds")
}

fn crds() -> Result<BTreeMap<PathBuf, String>> {
    let directory = crd_directory();
    let manifests = bellwether::crds::manifests()?;
    Ok(manifests
        .into_iter()
        .map(|manifest| (directory.join(manifest.file_name), format!("{HEADER}{}", manifest.yaml)))
        .collect())
}

/// Files in the generated directory that nothing generates.
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
