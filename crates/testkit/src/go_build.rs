//! Builds the binaries of a control plane from their Go modules, and reports progress.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, IsTerminal as _, Write as _, stderr},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::guardian::Guardian;

/// A Go module in `control-plane/` that pins upstream modules, and what is built from it.
#[derive(Debug)]
pub(crate) struct Module {
    /// The directory below `control-plane/`, and the prefix of the cache directory.
    pub(crate) name: &'static str,
    pub(crate) go_mod: &'static str,
    pub(crate) go_sum: &'static str,
    /// Pairs of package and binary name.
    pub(crate) programs: &'static [(&'static str, &'static str)],
    /// They set the version that the binaries report: clients cannot parse that of an unstamped build.
    pub(crate) linker_flags: &'static str,
    /// Files of a required module that are concatenated into one file next to the binaries.
    pub(crate) files: Option<ModuleFiles>,
}

/// Files that ship inside a Go module.
#[derive(Debug)]
pub(crate) struct ModuleFiles {
    pub(crate) module: &'static str,
    pub(crate) paths: &'static [&'static str],
    pub(crate) into: &'static str,
}

impl Module {
    /// The cache key: a hash of everything that decides what is built.
    pub(crate) fn key(&self) -> String {
        let mut hash = Sha256::new();
        let programs = self.programs.iter().flat_map(|(package, program)| [*package, *program]);
        for text in
            [self.go_mod, self.go_sum, self.linker_flags].into_iter().chain(BUILD_FLAGS).chain(programs)
        {
            hash.update(text);
            hash.update([0]);
        }
        if let Some(files) = &self.files {
            hash.update(files.paths.join("\n"));
        }
        let digest = hash.finalize();
        format!("{}-{:02x}{:02x}{:02x}{:02x}", self.name, digest[0], digest[1], digest[2], digest[3])
    }
}

const BUILD_FLAGS: [&str; 3] = ["-trimpath", "-mod=readonly", "-buildvcs=false"];

/// How many of the last lines of a failed build are shown.
const LINES_SHOWN: usize = 20;

pub(crate) fn is_installed(go: &OsStr) -> bool {
    Command::new(go).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Builds every binary of a module into a new directory.
///
/// The build uses a copy of go.mod, because the source tree may change meanwhile.
pub(crate) fn build(go: &OsStr, module: &Module, into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    let source = tempfile::tempdir().context("cannot create a temporary directory")?;
    fs::write(source.path().join("go.mod"), module.go_mod)?;
    fs::write(source.path().join("go.sum"), module.go_sum)?;

    let names: Vec<_> = module.programs.iter().map(|(_, program)| *program).collect();
    let mut progress = Progress::new(names.join(", "));
    for (package, program) in module.programs {
        // A build takes minutes: the guardian ends it with this process.
        let mut command = in_module(Guardian::get()?.command(go)?, source.path());
        command
            .args(["build", "-v"])
            .args(BUILD_FLAGS)
            .args(["-ldflags", module.linker_flags, "-o"])
            .arg(into.join(program))
            .arg(package);
        run(command, &mut progress).with_context(|| format!("cannot build {program}"))?;
    }
    if let Some(files) = &module.files {
        fs::write(into.join(files.into), concatenate(go, source.path(), files)?)?;
    }
    progress.done();
    Ok(())
}

/// Reports slow work on standard error. The test harness hides it until a test fails, so `cargo xtask test`
/// builds everything before it runs the tests.
#[expect(clippy::print_stderr, reason = "the only place in this crate that prints")]
pub(crate) fn log(text: &str) {
    eprintln!("control plane: {text}");
}

fn in_module(mut command: Command, directory: &Path) -> Command {
    command.current_dir(directory).env("CGO_ENABLED", "0").env("GOWORK", "off");
    command
}

fn run(mut command: Command, progress: &mut Progress) -> Result<()> {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot run go")?;
    let mut last_lines = VecDeque::with_capacity(LINES_SHOWN);
    if let Some(output) = child.stderr.take() {
        for line in BufReader::new(output).lines() {
            if last_lines.len() == LINES_SHOWN {
                last_lines.pop_front();
            }
            let line = line?;
            // Lines that start with "go: " are about downloads.
            if !line.starts_with("go: ") {
                progress.step();
            }
            last_lines.push_back(line);
        }
    }
    // Before `wait`: until the child is reaped, its id cannot belong to another process.
    Guardian::get()?.forget(child.id());
    if child.wait()?.success() {
        return Ok(());
    }
    bail!("go build failed:\n{}", last_lines.make_contiguous().join("\n"))
}

fn concatenate(go: &OsStr, source: &Path, files: &ModuleFiles) -> Result<String> {
    let output = in_module(Command::new(go), source)
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", files.module])
        .output()?;
    if !output.status.success() {
        bail!("cannot find the module {}: {}", files.module, String::from_utf8_lossy(&output.stderr).trim());
    }
    let directory = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    let mut all = String::new();
    for path in files.paths {
        let path = directory.join(path);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        writeln!(all, "---\n{text}")?;
    }
    Ok(all)
}

/// A counter in one line on a terminal; otherwise a line every 15 seconds.
struct Progress {
    what: String,
    started: Instant,
    shown: Instant,
    packages: usize,
}

impl Progress {
    fn new(what: String) -> Self {
        log(&format!("building {what} from source; this takes a few minutes and happens once"));
        let now = Instant::now();
        Self { what, started: now, shown: now, packages: 0 }
    }

    fn step(&mut self) {
        self.packages += 1;
        let terminal = stderr().is_terminal();
        let pause = if terminal { Duration::from_millis(200) } else { Duration::from_secs(15) };
        if self.shown.elapsed() < pause {
            return;
        }
        self.shown = Instant::now();
        let text = format!("{} packages compiled, {} s", self.packages, self.started.elapsed().as_secs());
        if terminal {
            // A closed standard error must not stop the build.
            let _ = write!(stderr(), "\rcontrol plane: {text}\x1b[K");
        } else {
            log(&text);
        }
    }

    fn done(&self) {
        if stderr().is_terminal() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
        log(&format!("built {} in {} s", self.what, self.started.elapsed().as_secs()));
    }
}
