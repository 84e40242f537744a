//! Builds all test executables with cargo, then runs several at a time.
//!
//! `cargo test` runs them one after the other, but tests on control planes mostly wait for API servers.

use std::{
    collections::VecDeque,
    env,
    fmt::Write as _,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::{
    faketime,
    run::{cargo, log, root},
};

/// The executables that need control planes, slowest first.
const ON_CONTROL_PLANES: [&str; 5] = [
    "crates/bellwether/tests",
    "crates/kube-io/tests",
    "crates/testkit/tests",
    "crates/api/tests",
    "xtask/tests",
];

/// How many executables on control planes run at a time. With four on two cores, API servers miss the
/// deadlines of tests.
const AT_A_TIME: usize = 2;

/// The executable whose ignored tests need libfaketime.
const WITH_CLOCKS: &str = "crates/bellwether/tests";

/// How many tests of one executable run at a time. The default, one for each core, would leave the cores
/// idle.
const THREADS: (&str, &str) = ("RUST_TEST_THREADS", "8");

#[derive(Debug, PartialEq)]
pub(crate) struct Executable {
    /// The root source file, relative to the root of the repository.
    source: String,
    path: PathBuf,
    /// The package directory, in which cargo runs the tests.
    directory: PathBuf,
}

#[derive(Debug, Default)]
pub(crate) struct Executables {
    pub(crate) on_control_planes: Vec<Executable>,
    /// They need no control plane.
    pub(crate) others: Vec<Executable>,
}

pub(crate) fn build() -> Result<Executables> {
    const LINE: &str = "cargo test --workspace --no-run";
    log(&format!("\n$ {LINE}"));
    let mut command = cargo(&["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {LINE}"))?;
    let messages = child.stdout.take().context("cargo has no standard output")?;
    let mut executables = Vec::new();
    for message in BufReader::new(messages).lines() {
        executables.extend(executable(&message?, &root())?);
    }
    ensure!(child.wait()?.success(), "{LINE} failed");
    executables.sort_by_key(Executable::rank);
    let (on_control_planes, others) =
        executables.into_iter().partition(|executable| executable.rank() < ON_CONTROL_PLANES.len());
    Ok(Executables { on_control_planes, others })
}

/// Parses a message of cargo. `None` if it is not about a test executable.
fn executable(message: &str, root: &Path) -> Result<Option<Executable>> {
    #[derive(Deserialize)]
    struct Message {
        manifest_path: Option<PathBuf>,
        target: Option<BuildTarget>,
        profile: Option<Profile>,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct BuildTarget {
        src_path: PathBuf,
    }
    #[derive(Deserialize)]
    struct Profile {
        test: bool,
    }
    let message: Message =
        serde_json::from_str(message).with_context(|| format!("unknown message of cargo: {message}"))?;
    let Message {
        manifest_path: Some(manifest),
        target: Some(target),
        profile: Some(Profile { test: true }),
        executable: Some(path),
    } = message
    else {
        return Ok(None);
    };
    let source = target.src_path.strip_prefix(root).unwrap_or(&target.src_path).display().to_string();
    let directory = manifest.parent().context("the manifest has no parent directory")?.to_owned();
    Ok(Some(Executable { source, path, directory }))
}

pub(crate) fn run_on_control_planes(executables: Vec<Executable>, arguments: &[String]) -> Result<()> {
    run(executables, arguments, faketime::find().as_deref(), AT_A_TIME)
}

/// Runs the CPU-bound executables one after the other: each has a thread for each core.
pub(crate) fn run_others(executables: Vec<Executable>, arguments: &[String]) -> Result<()> {
    run(executables, arguments, None, 1)
}

/// Runs executables and prints the output of each when it ends. The error repeats all failures.
fn run(
    executables: Vec<Executable>,
    arguments: &[String],
    faketime: Option<&Path>,
    at_a_time: usize,
) -> Result<()> {
    let failures = Mutex::new(Vec::new());
    side_by_side(executables, at_a_time, |executable| {
        let begin = Instant::now();
        let ended = captured(&mut executable.command(arguments, faketime));
        let (success, output) = ended.unwrap_or_else(|error| (false, format!("{error:#}")));
        let (source, result) = (&executable.source, if success { "ok" } else { "FAILED" });
        log(&format!("\n$ {source}: {result} after {} s\n{output}", begin.elapsed().as_secs()));
        if !success {
            lock(&failures).push(format!("\n{source}:\n{}", relevant(&output)));
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    ensure!(failures.is_empty(), "tests failed{}", failures.concat());
    Ok(())
}

/// Runs `work` for each item in order, `at_a_time` in parallel.
fn side_by_side<T: Send>(these: Vec<T>, at_a_time: usize, work: impl Fn(T) + Sync) {
    let queue = Mutex::new(VecDeque::from(these));
    // A closure, because `while let` would hold the lock while its body runs.
    let next = || lock(&queue).pop_front();
    let worker = || {
        while let Some(this) = next() {
            work(this);
        }
    };
    thread::scope(|scope| (0..at_a_time).for_each(|_| drop(scope.spawn(worker))));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Executable {
    /// Lower ranks start first. The last rank needs no control plane.
    fn rank(&self) -> usize {
        let on_control_plane = ON_CONTROL_PLANES.iter().position(|tests| self.source.starts_with(tests));
        on_control_plane.unwrap_or(ON_CONTROL_PLANES.len())
    }

    fn command(&self, arguments: &[String], faketime: Option<&Path>) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        if env::var_os(THREADS.0).is_none() {
            command.env(THREADS.0, THREADS.1);
        }
        if let Some(library) = faketime
            && self.source.starts_with(WITH_CLOCKS)
        {
            command.arg("--include-ignored").env(faketime::VARIABLE, library);
        }
        command
    }
}

/// No executable runs longer than a fraction of this. One that hangs must not hide the results of the others.
const DEADLINE: Duration = Duration::from_mins(50);

/// Waits for a process until the deadline, then kills it.
fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let begin = Instant::now();
    while begin.elapsed() < DEADLINE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(100));
    }
    child.kill()?;
    child.wait()
}

/// Runs a command. Returns whether it succeeded, and its standard output and standard error.
fn captured(command: &mut Command) -> Result<(bool, String)> {
    // A file: a process that a failed test leaves behind could keep a pipe open.
    let mut file = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    let mut child =
        command.spawn().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let status = wait(&mut child)?;
    let mut output = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut output)?;
    let mut output = String::from_utf8_lossy(&output).trim().to_owned();
    if status.code().is_none() {
        // A signal: the harness has not printed the reason.
        write!(output, "\n{status}")?;
    }
    Ok((status.success(), output))
}

/// The part of the output about failures. All of it if the executable ended without a list of failures.
fn relevant(output: &str) -> &str {
    output.find("\nfailures:\n").map_or(output, |start| &output[start..])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn messages_of_cargo_are_parsed() {
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///top/crates/api#0.1.0",
                "manifest_path":"/top/crates/api/Cargo.toml","target":{{"kind":["test"],"name":"it",
                "src_path":"/top/crates/api/tests/it/main.rs"}},"profile":{{"opt_level":"0","test":{test}}},
                "executable":{executable},"fresh":true}}"#
            )
        };
        let found = |message: &str| executable(message, Path::new("/top")).unwrap();
        let expected = Executable {
            source: "crates/api/tests/it/main.rs".to_owned(),
            path: "/top/target/debug/deps/it-1".into(),
            directory: "/top/crates/api".into(),
        };
        assert_eq!(found(&message(true, r#""/top/target/debug/deps/it-1""#)), Some(expected));
        assert_eq!(found(&message(false, r#""/top/target/debug/bellwether""#)), None);
        assert_eq!(found(&message(true, "null")), None);
        assert_eq!(found(r#"{"reason":"build-finished","success":true}"#), None);
        assert!(executable("nonsense", Path::new("/top")).is_err());
    }

    #[test]
    fn both_outputs_and_the_signal_are_captured() {
        let shell = |script: &str| captured(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(shell("echo one; echo two >&2"), (true, "one\ntwo".to_owned()));
        assert_eq!(shell("echo one; exit 101"), (false, "one".to_owned()));
        let (success, output) = shell("kill -9 $$");
        assert!(!success && output.contains("signal: 9"), "{output}");
    }

    #[test]
    fn two_of_three_run_at_a_time() {
        let [running, most, ended] = [(); 3].map(|()| AtomicUsize::new(0));
        side_by_side(vec![(); 3], 2, |()| {
            most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
            // Each waits until two run, then gives a third one time to start.
            let begun = Instant::now();
            while most.load(SeqCst) < 2 && begun.elapsed() < Duration::from_secs(10) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(100));
            running.fetch_sub(1, SeqCst);
            ended.fetch_add(1, SeqCst);
        });
        assert_eq!((most.into_inner(), ended.into_inner()), (2, 3));
    }

    #[test]
    fn only_failures_are_repeated() {
        assert_eq!(relevant("test a ... ok\n\nfailures:\n\n---- b"), "\nfailures:\n\n---- b");
        assert_eq!(relevant("test a ... ok\nsignal: 9"), "test a ... ok\nsignal: 9");
    }
}
