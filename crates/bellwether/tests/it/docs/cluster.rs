//! Transcripts of commands on real control planes.
//!
//! All of them run one after the other in one test, on one cluster, page by page. `namespace=NAME` creates a
//! namespace and makes it the one of the context until the end of the page. `bellwether controller … &` runs
//! until the end of the page.
//!
//! Those with the option `fleet` run in another test, on control planes as `cargo xtask cluster up --clusters 4` starts
//! them. Before a block, `pause NAME` and `resume NAME` stop and continue the API server of a cluster.
//!
//! What varies from run to run is replaced: the column AGE is `1m`, the time at the beginning of a line is
//! `12:00:00`, and `after 3s` is `after 4s`. A command that only reads is repeated until it prints what the
//! page has. In the end, the metrics that the pages name must be among those of the controllers.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Binary, Cluster, Part, Program, TIMEOUT, eventually};
use futures::future::try_join_all;
use regex::Regex;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    Outcome,
    page::{Block, Page, agrees, pages},
    shell::Shell,
    updates,
};

/// An output that differs from the page's and stays the same for so long is the final one.
const FINAL: Duration = Duration::from_mins(1);

/// The same while pages are updated: there is nothing to wait for but that it stays the same.
const FINAL_IN_UPDATES: Duration = Duration::from_secs(4);

/// Of a controller.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

const PAUSE: Duration = Duration::from_millis(500);

/// A person at work on clusters, of which the first one is that of the current context.
struct Session<'c> {
    home: TempDir,
    clusters: &'c [Cluster],
    controllers: Vec<Running>,
}

/// A controller that was started, and where it serves.
struct Running {
    program: Program,
    address: String,
}

impl<'c> Session<'c> {
    fn new(clusters: &'c [Cluster]) -> Result<Self> {
        let session = Self { home: tempfile::tempdir()?, clusters, controllers: Vec::new() };
        for (cluster, file) in clusters.iter().zip(session.files()) {
            fs::write(file, cluster.admin().kubeconfig())?;
        }
        Ok(session)
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.clusters.iter().map(|cluster| self.home.path().join(cluster.name()))
    }

    fn kubeconfig(&self) -> Result<OsString> {
        Ok(env::join_paths(self.files())?)
    }

    fn shell(&self, page: &Page, block: &Block) -> Result<Shell> {
        Ok(Shell::new(page.directory(), block.options.columns)
            .source(block.options.source.clone())
            .environment("HOME", self.home.path())
            .environment("KUBECONFIG", self.kubeconfig()?)
            .environment("KUBECTL", Binary::Kubectl.find()?))
    }

    /// Whether it was `pause NAME` or `resume NAME`.
    fn stops_or_continues(&self, command: &str) -> Result<bool> {
        let Some((word @ ("pause" | "resume"), name)) = command.split_once(' ') else { return Ok(false) };
        let cluster = self.clusters.iter().find(|cluster| cluster.name() == name);
        let cluster = cluster.with_context(|| format!("no cluster {name}"))?;
        let act = if word == "pause" { Cluster::pause_part } else { Cluster::resume_part };
        act(cluster, Part::ApiServer).map(|()| true)
    }

    /// Starts `bellwether controller … &`, and waits until it is ready.
    async fn start(&mut self, command: &str) -> Result<()> {
        let arguments = command.trim_end_matches('&').split_whitespace().skip(1);
        let program = Program::new(env!("CARGO_BIN_EXE_bellwether"))?
            .arguments(arguments)
            .arguments(["--listen", "127.0.0.1:0"])
            .environment("KUBECONFIG", self.kubeconfig()?);
        program.start()?;
        let pattern = Regex::new(r"http://(127\.0\.0\.1:\d+)")?;
        let mut address = String::new();
        eventually(TIMEOUT, "the controller is ready", async || {
            let log = program.log();
            ensure!(program.is_running(), "{log}");
            pattern.captures(&log).context("no address yet")?[1].clone_into(&mut address);
            Ok(get(&address, "/readyz")?.starts_with("HTTP/1.1 200"))
        })
        .await
        .with_context(|| program.log())?;
        self.controllers.push(Running { program, address });
        Ok(())
    }

    fn metrics(&self) -> Result<String> {
        self.controllers.iter().map(|controller| get(&controller.address, "/metrics")).collect()
    }

    /// Ends the controllers, so that those of the next page can lead at once.
    async fn end(self) -> Result<()> {
        for controller in &self.controllers {
            controller.program.stop().await?;
        }
        Ok(())
    }

    /// The command, with the address of the controller instead of the default one.
    fn addressed(&self, command: &str) -> String {
        let address = self.controllers.last().map_or(DEFAULT_ADDRESS, |controller| &controller.address);
        command.replace(DEFAULT_ADDRESS, address)
    }

    async fn run(&mut self, page: &Page, block: &Block) -> Result<()> {
        let shell = self.shell(page, block)?;
        let place = format!("{}:{}", page.name, block.line);
        if let Some(namespace) = &block.options.namespace {
            shell.succeed(&format!("kubectl create namespace {namespace}"), &place)?;
            // Pods are refused until the controller manager has created the service account.
            shell.succeed(
                &format!("kubectl wait --for=create sa/default -n {namespace} --timeout=5m"),
                &place,
            )?;
            shell
                .succeed(&format!("kubectl config set-context --current --namespace={namespace}"), &place)?;
        }
        for command in &block.options.before {
            if is_controller(command) {
                self.start(command).await?;
            } else if !self.stops_or_continues(command)? {
                shell.succeed(command, &place)?;
            }
        }
        let mut outcome = Outcome::default();
        let mut code = Some(0);
        for step in block.steps()? {
            let output = if step.command == "echo $?" {
                vec![code.map_or_else(|| "none".to_owned(), |code| code.to_string())]
            } else if is_controller(&step.command) {
                self.start(&step.command).await?;
                Vec::new()
            } else {
                let (output, ended) = output(&shell, &self.addressed(&step.command), &step.output).await?;
                code = ended;
                output
            };
            outcome.add(page, block, &step, output);
        }
        outcome.settle(page, block)
    }
}

/// The answer of a controller, with its head.
fn get(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn is_controller(command: &str) -> bool {
    command.starts_with("bellwether controller") && command.ends_with('&')
}

/// What a command prints in the end, and its exit code.
async fn output(shell: &Shell, command: &str, expected: &[String]) -> Result<(Vec<String>, Option<i32>)> {
    let begin = Instant::now();
    let final_after = if updates() { FINAL_IN_UPDATES } else { FINAL };
    let mut last: Option<(Vec<String>, Instant)> = None;
    loop {
        let ran = shell.run(command)?;
        let output = constant(ran.lines())?;
        let first = last.as_ref().filter(|(before, _)| *before == output).map(|(_, since)| *since);
        let since = first.unwrap_or_else(Instant::now);
        let is_final = since.elapsed() >= final_after || begin.elapsed() >= TIMEOUT;
        if agrees(expected, &output) || !only_reads(command) || is_final {
            return Ok((output, ran.code));
        }
        last = Some((output, since));
        sleep(PAUSE).await;
    }
}

/// Whether a command can be repeated.
fn only_reads(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let reads: &[&str] = match words.next() {
        Some("kubectl") => &["get", "wait"],
        // Of a CombinedStatus, in examples/fleet.
        Some("result") => return true,
        Some("bellwether") => &["query", "status", "tree", "wait", "whose", "explain"],
        _ => &[],
    };
    words.next().is_some_and(|word| reads.contains(&word))
}

/// Replaces what varies from run to run.
fn constant(lines: Vec<String>) -> Result<Vec<String>> {
    let time = Regex::new(r"^\d\d:\d\d:\d\d ")?;
    let after = Regex::new(r"\bafter \d+s\b")?;
    let age = Regex::new(r"\S+$")?;
    let has_age = lines.first().is_some_and(|header| header.ends_with(" AGE"));
    let replaced = lines.into_iter().enumerate().map(|(index, line)| {
        let line = time.replace(&line, "12:00:00 ");
        let line = after.replace_all(&line, "after 4s");
        if has_age && index > 0 { age.replace(&line, "1m").into_owned() } else { line.into_owned() }
    });
    Ok(replaced.collect())
}

#[tokio::test]
async fn transcripts_on_a_cluster() -> Result<()> {
    let cluster = [Cluster::builder().name("docs").nodes(1).start().await?];
    cluster[0].install(&bellwether_api::crds()).await?;
    let mut failures = Vec::new();
    let mut metrics = String::new();
    for page in pages()? {
        let blocks: Vec<_> =
            page.blocks()?.into_iter().filter(|it| it.is_transcript() && it.options.cluster).collect();
        let mut session = Session::new(&cluster)?;
        for block in blocks {
            let ran = session.run(&page, &block).await;
            failures.extend(ran.err().map(|error| format!("{error:#}")));
        }
        metrics += &session.metrics()?;
        session.end().await?;
    }
    let metric = Regex::new(r"[`(](bellwether_[a-z_]+)")?;
    for page in pages()? {
        let text = page.text()?;
        let absent = metric.captures_iter(&text).find(|name| !metrics.contains(&name[1]));
        failures.extend(absent.map(|name| format!("{}: there is no metric {}", page.name, &name[1])));
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

#[tokio::test]
async fn transcripts_on_a_fleet() -> Result<()> {
    let names = ["hub", "cluster-1", "cluster-2", "cluster-3"];
    let clusters = try_join_all(names.map(|name| Cluster::builder().name(name).start())).await?;
    clusters[0].install(&bellwether_api::crds()).await?;
    for page in pages()? {
        let mut session = Session::new(&clusters)?;
        for block in page.blocks()?.iter().filter(|it| it.is_transcript() && it.options.fleet) {
            session.run(&page, block).await?;
        }
        session.end().await?;
    }
    Ok(())
}

#[test]
fn ages_and_times_are_constant() -> Result<()> {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let table = "NAME   READY   AGE\na      1/2     2d4h\nb      0/1     3s";
    assert_eq!(constant(lines(table))?, lines("NAME   READY   AGE\na      1/2     1m\nb      0/1     1m"));
    assert_eq!(
        constant(lines("02:01:29 a is Ready\nready after 12s"))?,
        lines("12:00:00 a is Ready\nready after 4s")
    );
    Ok(())
}
