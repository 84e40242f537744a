//! libfaketime gives a program a clock of its own, which a test can set.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::run::{root, say};

/// Tells the tests where it is.
pub(crate) const VARIABLE: &str = "BELLWETHER_FAKETIME";

/// Finds it where somebody says that it is, where a distribution puts it, or in Debian's package, which is unpacked below
/// `target` and not installed. Says so if there is none.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(file) = env::var_os(VARIABLE) {
        return Some(file.into());
    }
    if let Some(installed) = below(Path::new("/usr/lib")) {
        return Some(installed);
    }
    let fetched = fetch(&root().join("target/faketime"));
    fetched.inspect_err(|error| say(&format!("clocks do not jump in this run: {error:#}"))).ok()
}

fn fetch(directory: &Path) -> Result<PathBuf> {
    let libraries = directory.join("usr/lib");
    if let Some(fetched) = below(&libraries) {
        return Ok(fetched);
    }
    fs::create_dir_all(directory)?;
    run(Command::new("apt-get").args(["download", "libfaketime"]).current_dir(directory))
        .context("libfaketime is not installed, and cannot be fetched")?;
    for file in fs::read_dir(directory)? {
        let package = file?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(directory))?;
        }
    }
    below(&libraries).context("Debian's package has no libfaketime where it used to be")
}

/// The form of it that is for programs with many threads.
fn below(libraries: &Path) -> Option<PathBuf> {
    let places = fs::read_dir(libraries).into_iter().flatten().filter_map(io::Result::ok);
    places.map(|place| place.path().join("faketime/libfaketimeMT.so.1")).find(|file| file.exists())
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{program} cannot be run"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
