//! The pages hold what the program prints: README.md, CONTRIBUTING.md, `docs/` and the READMEs of
//! `examples/`.
//!
//! A block with the info string `console` is a transcript: lines that begin with `$ ` are commands, and the
//! lines below each are its output. The commands run in a shell in the root of the repository, or, for a page
//! of `examples/`, in its own directory. A comment before the block has options:
//!
//! ```text
//! <!-- transcript: columns=100 cluster
//! kubectl create namespace shop
//! -->
//! ```
//!
//! | option | meaning |
//! |---|---|
//! | `columns=N` | run on a terminal of this width, without colours; the default is a pipe |
//! | `cluster` | run on a control plane with nodes and Bellwether's CRDs, see [`cluster`] |
//! | `namespace=NAME` | with `cluster`: create this namespace and use it until the end of the page |
//! | `fleet` | run on a hub with Bellwether's CRDs and three clusters, all without nodes, see [`cluster`] |
//! | `source=FILE` | read the shell functions in this file first |
//! | further lines | commands that run before the block and must succeed; their output is not shown |
//!
//! `bellwether` is this build. Its clock is [`crate::NOW`] where it has the flag `--now`. `echo $?` prints
//! the exit code of the command above it. A line `…` stands for any number of lines.
//!
//! `UPDATE_DOCS=1 cargo test -p bellwether --test it docs` rewrites the outputs in place.

mod cluster;
mod page;
mod picture;
mod reference;
mod shell;

use std::{env, fs, io::Write as _, process::Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use regex::Regex;

use crate::{Run, bellwether};

use page::{Block, Page, Step, abbreviated, agrees, pages, root};
use shell::Shell;

/// Whether to rewrite the pages instead of comparing them.
fn updates() -> bool {
    env::var_os("UPDATE_DOCS").is_some()
}

/// The outputs of a block's commands as they should be in the page, and how those in the page differ.
#[derive(Default)]
struct Outcome {
    outputs: Vec<Vec<String>>,
    differences: Vec<String>,
}

impl Outcome {
    fn add(&mut self, page: &Page, block: &Block, step: &Step, output: Vec<String>) {
        if agrees(&step.output, &output) {
            self.outputs.push(step.output.clone());
            return;
        }
        let place = format!("{}:{}", page.name, block.line);
        let text = |lines: &[String]| lines.join("\n");
        self.differences.push(format!(
            "{place}: $ {}\n--- in the page\n{}\n--- printed\n{}\n",
            step.command,
            text(&step.output),
            text(&output)
        ));
        self.outputs.push(abbreviated(&step.output, output));
    }

    /// Writes the outputs into the page if the pages are being updated, and otherwise fails if they differ.
    fn settle(self, page: &Page, block: &Block) -> Result<()> {
        if self.differences.is_empty() {
            return Ok(());
        }
        if updates() {
            return page.replace(block.index, &self.outputs);
        }
        bail!(
            "{}\nTo update the pages: UPDATE_DOCS=1 cargo test -p bellwether --test it docs",
            self.differences.join("\n")
        )
    }
}

fn transcribe(page: &Page, block: &Block) -> Result<()> {
    let shell = Shell::new(page.directory(), block.options.columns);
    let place = format!("{}:{}", page.name, block.line);
    for command in &block.options.before {
        shell.succeed(command, &place)?;
    }
    let mut outcome = Outcome::default();
    let mut code = Some(0);
    for step in block.steps().with_context(|| place)? {
        let output = if step.command == "echo $?" {
            vec![code.map_or_else(|| "none".to_owned(), |code| code.to_string())]
        } else {
            let ran = shell.run(&step.command)?;
            code = ran.code;
            ran.lines()
        };
        outcome.add(page, block, &step, output);
    }
    outcome.settle(page, block)
}

#[test]
fn transcripts_without_a_cluster() -> Result<()> {
    let mut failures = Vec::new();
    for page in pages()? {
        let needs_cluster = |block: &Block| block.options.cluster || block.options.fleet;
        for block in page.blocks()?.iter().filter(|block| block.is_transcript() && !needs_cluster(block)) {
            failures.extend(transcribe(&page, block).err().map(|error| format!("{error:#}")));
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// A prompt in another kind of block would be a transcript that no test makes.
#[test]
fn every_prompt_is_in_a_transcript() -> Result<()> {
    for page in pages()? {
        for block in page.blocks()?.iter().filter(|block| !block.is_transcript()) {
            let prompt = block.lines.iter().find(|line| line.starts_with("$ "));
            ensure!(prompt.is_none(), "{}:{}: {prompt:?}: use console", page.name, block.line);
        }
    }
    Ok(())
}

/// Objects of our kinds in the pages are valid.
#[test]
fn objects_are_valid() -> Result<()> {
    for page in pages()? {
        let blocks = page.blocks()?;
        let is_ours = |block: &&Block| {
            block.language == "yaml"
                && block.lines.iter().any(|line| line.starts_with("apiVersion: bellwether.dev/"))
        };
        for block in blocks.iter().filter(is_ours) {
            let linted = lint(&block.lines.join("\n"))?;
            ensure!(linted.code == Some(0), "{}:{}: {linted}", page.name, block.line);
        }
    }
    Ok(())
}

fn lint(objects: &str) -> Result<Run> {
    let mut command = bellwether(&["lint", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("a pipe")?.write_all(objects.as_bytes())?;
    Ok(child.wait_with_output()?.into())
}

/// In many clusters `applications` means those of Argo CD.
#[test]
fn kubectl_commands_name_the_group() -> Result<()> {
    let ambiguous = Regex::new(r"kubectl [^`|]*\b(applications?|rollups?|healthrules?)(/| |$|`)")?;
    for page in pages()? {
        for (index, line) in page.text()?.lines().enumerate() {
            let found = ambiguous.find(line);
            ensure!(
                found.is_none(),
                "{}:{}: {}: write bwapp, bwru, bwhr or the full resource name",
                page.name,
                index + 1,
                line.trim()
            );
        }
    }
    Ok(())
}

/// Files and headings that the pages link to exist.
#[test]
fn links_lead_somewhere() -> Result<()> {
    let link = Regex::new(r"\]\(([^)\s]+)\)")?;
    for page in pages()? {
        let text = page.text()?;
        for target in link.captures_iter(&text).map(|found| found[1].to_owned()) {
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').map_or((&*target, None), |(a, b)| (a, Some(b)));
            let path = if file.is_empty() { page.path() } else { page.path().with_file_name("").join(file) };
            ensure!(path.exists(), "{}: there is no {target}", page.name);
            if let Some(heading) = heading {
                let headings = page::anchors(&fs::read_to_string(&path)?);
                ensure!(headings.iter().any(|it| it == heading), "{}: there is no {target}", page.name);
            }
        }
    }
    Ok(())
}

#[test]
fn pages_are_found() -> Result<()> {
    let names: Vec<_> = pages()?.into_iter().map(|page| page.name).collect();
    for name in ["README.md", "docs/terminal.md", "examples/wordpress/README.md"] {
        ensure!(names.iter().any(|it| it == name), "{name} is not in {names:?}");
    }
    ensure!(root().join("Cargo.toml").exists());
    Ok(())
}
