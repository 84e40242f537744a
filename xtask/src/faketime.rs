//! libfaketime gives a program a clock of its own, which a test can set.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::run::{root, say};

/// Tells the tests where it is.
pub(crate) const VARIABLE: &str = "BELLWETHER_FAKETIME";

/// Finds it where somebody says that it is, where Debian puts it, or in Debian's package, which is unpacked below `target` and
/// not installed. Says so if there is none.
pub(crate) fn find() -> Option<PathBuf> {
    let found = match env::var_os(VARIABLE) {
        // Tests run in directories of their own, and a library that is not there is left out without a word.
        Some(file) => fs::canonicalize(&file).with_context(|| format!("{VARIABLE} is {}", file.display())),
        None => below(Path::new("/usr/lib")).map_or_else(fetch, Ok),
    };
    found.inspect_err(|error| say(&format!("clocks do not jump in this run: {error:#}"))).ok()
}

fn fetch() -> Result<PathBuf> {
    let directory = root().join("target/faketime");
    if let Some(fetched) = below(&directory.join("usr/lib")) {
        return Ok(fetched);
    }
    // What was interrupted is under another name than what is complete.
    let unfinished = directory.with_extension(process::id().to_string());
    fs::create_dir_all(&unfinished)?;
    let fetched = unpack(&unfinished).and_then(|()| Ok(fs::rename(&unfinished, &directory)?));
    if fetched.is_err() {
        fs::remove_dir_all(&unfinished)?;
    }
    fetched.context("libfaketime is not installed, and cannot be fetched")?;
    below(&directory.join("usr/lib")).context("Debian's package has no libfaketime where it used to be")
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

/// The form of it that is for programs with many threads, and for this machine.
fn below(libraries: &Path) -> Option<PathBuf> {
    let places = fs::read_dir(libraries).into_iter().flatten().filter_map(io::Result::ok);
    let places = places.filter(|place| place.file_name().to_string_lossy().starts_with(env::consts::ARCH));
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
