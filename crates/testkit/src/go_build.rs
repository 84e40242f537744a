//! Building a control plane's programs from their Go modules, with visible progress.

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

/// A Go module of ours that pins other people's, and what is built from it.
#[derive(Debug)]
pub(crate) struct Module {
    /// Its directory below `control-plane/`, and its name in the cache.
    pub(crate) name: &'static str,
    pub(crate) go_mod: &'static str,
    pub(crate) go_sum: &'static str,
    /// The packages to build, each with the name of the program that it becomes.
    pub(crate) programs: &'static [(&'static str, &'static str)],
    /// Sets the version that the programs report; clients cannot read the one of an unstamped build.
    pub(crate) linker_flags: &'static str,
    /// Files of a required module which are put together into one file beside the programs.
    pub(crate) files: Option<ModuleFiles>,
}

/// Files that ship inside a Go module.
#[derive(Debug)]
pub(crate) struct ModuleFiles {
    pub(crate) module: &'static str,
    pub(crate) paths: &'static [&'static str],
    /// The name of the one file that they become.
    pub(crate) into: &'static str,
}

impl Module {
    /// Changes with everything that decides what is built, so that a cache never serves another version.
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

/// Of a failed build, this many of the last lines are shown.
const LINES_SHOWN: usize = 20;

pub(crate) fn is_installed(go: &OsStr) -> bool {
    Command::new(go).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Builds every program of a module into a new directory.
///
/// The go.mod is written out first: the build then depends on nothing in the source tree, which may change meanwhile.
pub(crate) fn build(go: &OsStr, module: &Module, into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    let source = tempfile::tempdir().context("cannot make a directory to build in")?;
    fs::write(source.path().join("go.mod"), module.go_mod)?;
    fs::write(source.path().join("go.sum"), module.go_sum)?;

    let names: Vec<_> = module.programs.iter().map(|(_, program)| *program).collect();
    let mut progress = Progress::new(names.join(", "));
    for (package, program) in module.programs {
        // A build takes minutes: it must not go on when nobody waits for it any more.
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

/// Tells a person about slow work. Standard error, because standard output is data; the test harness shows neither
/// until a test fails, so what takes minutes is done by `cargo xtask test` before it runs the tests.
#[expect(clippy::print_stderr, reason = "the one place of this crate that talks to a person")]
pub(crate) fn say(text: &str) {
    eprintln!("control plane: {text}");
}

/// Sets what every use of Go here has in common.
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
            // The rest is about downloads.
            if !line.starts_with("go: ") {
                progress.step();
            }
            last_lines.push_back(line);
        }
    }
    // Its output has ended, and so has it, but for a moment: nobody else can have its id yet.
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

/// One line that counts on a terminal; now and then a line elsewhere.
struct Progress {
    what: String,
    started: Instant,
    shown: Instant,
    packages: usize,
}

impl Progress {
    fn new(what: String) -> Self {
        say(&format!("building {what} from source, once; this takes a few minutes"));
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
            // Progress is a courtesy: a closed standard error must not stop the build.
            let _ = write!(stderr(), "\rcontrol plane: {text}\x1b[K");
        } else {
            say(&text);
        }
    }

    fn done(&self) {
        if stderr().is_terminal() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
        say(&format!("built {} in {} s", self.what, self.started.elapsed().as_secs()));
    }
}
