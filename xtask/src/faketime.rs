//! libfaketime: a library that lets a test set the clock of a process.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::run::{log, root};

/// The path of the library, for the tests.
pub(crate) const VARIABLE: &str = "BELLWETHER_FAKETIME";

/// Finds the library: by the variable, where Debian installs it, or in the Debian package, which is unpacked
/// below `target`. Prints the reason if it is not found.
pub(crate) fn find() -> Option<PathBuf> {
    let found = match env::var_os(VARIABLE) {
        // Tests run in other directories, and the dynamic linker ignores a missing preload library.
        Some(file) => {
            fs::canonicalize(&file).with_context(|| format!("invalid {VARIABLE}={}", file.display()))
        }
        None => below(Path::new("/usr/lib")).map_or_else(fetch, Ok),
    };
    found.inspect_err(|error| log(&format!("skipping tests that set the clock: {error:#}"))).ok()
}

fn fetch() -> Result<PathBuf> {
    let directory = root().join("target/faketime");
    if let Some(fetched) = below(&directory.join("usr/lib")) {
        return Ok(fetched);
    }
    // An interrupted download leaves only the temporary directory.
    let unfinished = directory.with_extension(process::id().to_string());
    fs::create_dir_all(&unfinished)?;
    let fetched = unpack(&unfinished).and_then(|()| Ok(fs::rename(&unfinished, &directory)?));
    if fetched.is_err() {
        fs::remove_dir_all(&unfinished)?;
    }
    fetched.context("libfaketime is not installed and cannot be downloaded")?;
    below(&directory.join("usr/lib")).context("the Debian package does not contain libfaketimeMT.so.1")
}

fn unpack(directory: &Path) -> Result<()> {
    let patience = ["-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10"];
    let mut download = Command::new("apt-get");
    run(download.args(patience).args(["download", "libfaketime"]).current_dir(directory))?;
    for file in fs::read_dir(directory)? {
        let file = file?.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg-deb").arg("--extract").arg(file).arg(directory))?;
        }
    }
    Ok(())
}

/// The multi-threaded variant for this architecture.
fn below(libraries: &Path) -> Option<PathBuf> {
    let places = fs::read_dir(libraries).into_iter().flatten().filter_map(io::Result::ok);
    let places = places.filter(|place| place.file_name().to_string_lossy().starts_with(env::consts::ARCH));
    places.map(|place| place.path().join("faketime/libfaketimeMT.so.1")).find(|file| file.exists())
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
