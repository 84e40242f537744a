//! Pages, and the fenced blocks in them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};

use anyhow::{Context as _, Result, bail, ensure};

/// A line that stands for any number of lines of output.
const ANYTHING: &str = "…";

const FENCE: &str = "```";
const OPTIONS: &str = "<!-- transcript:";

/// Held while a page is rewritten: the blocks of one page belong to several tests.
static WRITING: Mutex<()> = Mutex::new(());

/// A page of Markdown.
pub(super) struct Page {
    /// The path from the root of the repository.
    pub(super) name: String,
}

/// A fenced block.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// Counts the blocks of the page.
    pub(super) index: usize,
    /// The number of the line with the opening fence.
    pub(super) line: usize,
    /// The info string.
    pub(super) language: String,
    pub(super) options: Options,
    /// Without the indentation of the fence.
    pub(super) lines: Vec<String>,
    indentation: String,
}

/// What the comment before a block says.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) columns: Option<u16>,
    pub(super) cluster: bool,
    pub(super) fleet: bool,
    pub(super) namespace: Option<String>,
    pub(super) source: Option<String>,
    pub(super) before: Vec<String>,
}

/// A command of a transcript, and what it prints according to the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) command: String,
    pub(super) output: Vec<String>,
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All pages, in the order of their names.
pub(super) fn pages() -> Result<Vec<Page>> {
    let mut names = vec!["CONTRIBUTING.md".to_owned(), "README.md".to_owned()];
    for directory in ["docs", "examples"] {
        collect(directory, &mut names)?;
    }
    names.sort();
    Ok(names.into_iter().map(|name| Page { name }).collect())
}

fn collect(directory: &str, names: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root().join(directory)).with_context(|| format!("cannot read {directory}"))? {
        let entry = entry?;
        let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&name, names)?;
        } else if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
            names.push(name);
        }
    }
    Ok(())
}

impl Page {
    pub(super) fn path(&self) -> PathBuf {
        root().join(&self.name)
    }

    pub(super) fn text(&self) -> Result<String> {
        fs::read_to_string(self.path()).with_context(|| format!("cannot read {}", self.name))
    }

    /// Where the commands of the page run.
    pub(super) fn directory(&self) -> PathBuf {
        if self.name.starts_with("examples/") { self.path().with_file_name("") } else { root() }
    }

    pub(super) fn blocks(&self) -> Result<Vec<Block>> {
        blocks(&self.text()?).with_context(|| self.name.clone())
    }

    /// Replaces the outputs of one transcript.
    pub(super) fn replace(&self, index: usize, outputs: &[Vec<String>]) -> Result<()> {
        let _writing = WRITING.lock();
        let text = self.text()?;
        let block = blocks(&text)?.into_iter().nth(index).context("the page has changed")?;
        let steps = block.steps()?;
        ensure!(steps.len() == outputs.len(), "the page has changed");
        let shown = steps.iter().zip(outputs).flat_map(|(step, output)| {
            let command = format!("$ {}", step.command);
            command.lines().map(str::to_owned).chain(output.iter().cloned()).collect::<Vec<_>>()
        });
        let shown = shown.map(|line| format!("{}{line}", block.indentation).trim_end().to_owned());
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let (before, after) = (&lines[..block.line], &lines[block.line + block.lines.len()..]);
        let all: Vec<_> = before.iter().cloned().chain(shown).chain(after.iter().cloned()).collect();
        fs::write(self.path(), all.join("\n") + "\n").with_context(|| format!("cannot write {}", self.name))
    }
}

fn blocks(text: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut options = Options::default();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let trimmed = line.trim_start();
        if let Some(first) = trimmed.strip_prefix(OPTIONS) {
            let mut comment = vec![first];
            while !comment.last().is_some_and(|line| line.trim_end().ends_with("-->")) {
                comment.push(lines.next().context("a comment has no end")?.0);
            }
            options = read_options(&comment.join("\n")).with_context(|| format!("line {number}"))?;
        } else if let Some(language) = trimmed.strip_prefix(FENCE) {
            let indentation = line[..line.len() - trimmed.len()].to_owned();
            let mut block = Block {
                index: blocks.len(),
                line: number,
                language: language.trim().to_owned(),
                options: std::mem::take(&mut options),
                indentation,
                ..Block::default()
            };
            loop {
                let (line, _) = lines.next().with_context(|| format!("line {number}: no closing fence"))?;
                if line.trim() == FENCE {
                    break;
                }
                let line = line.strip_prefix(block.indentation.as_str()).unwrap_or(line.trim_start());
                block.lines.push(line.to_owned());
            }
            blocks.push(block);
        } else if !trimmed.is_empty() {
            options = Options::default();
        }
    }
    Ok(blocks)
}

fn read_options(comment: &str) -> Result<Options> {
    let comment = comment.trim_end().trim_end_matches("-->");
    let mut lines = comment.lines();
    let mut options = Options::default();
    for word in lines.next().unwrap_or_default().split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("cluster", "") => options.cluster = true,
            ("fleet", "") => options.fleet = true,
            ("source", file) => options.source = Some(file.to_owned()),
            ("namespace", name) => options.namespace = Some(name.to_owned()),
            ("columns", number) => options.columns = Some(number.parse()?),
            _ => bail!("unknown option {word:?}"),
        }
    }
    options.before = lines.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    Ok(options)
}

impl Block {
    pub(super) fn is_transcript(&self) -> bool {
        self.language == "console"
    }

    pub(super) fn steps(&self) -> Result<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        let mut lines = self.lines.iter();
        while let Some(line) = lines.next() {
            if let Some(command) = line.strip_prefix("$ ") {
                let mut command = command.to_owned();
                while command.ends_with('\\') {
                    command = format!("{command}\n{}", lines.next().context("a command has no end")?);
                }
                steps.push(Step { command, output: Vec::new() });
            } else {
                steps.last_mut().context("a transcript begins with a command")?.output.push(line.clone());
            }
        }
        Ok(steps)
    }
}

/// Whether this output is the one in the page.
pub(super) fn agrees(page: &[String], output: &[String]) -> bool {
    match page.iter().position(|line| line == ANYTHING) {
        None => page == output,
        Some(cut) => {
            let (head, tail) = (&page[..cut], &page[cut + 1..]);
            output.len() >= head.len() + tail.len() && output.starts_with(head) && output.ends_with(tail)
        }
    }
}

/// The output for the page, with as many lines at its beginning and its end as the page has.
pub(super) fn abbreviated(page: &[String], output: Vec<String>) -> Vec<String> {
    let Some(cut) = page.iter().position(|line| line == ANYTHING) else { return output };
    let (head, tail) = (cut, page.len() - cut - 1);
    if output.len() <= head + tail + 1 {
        return output;
    }
    let end = output.len() - tail;
    output[..head].iter().cloned().chain([ANYTHING.to_owned()]).chain(output[end..].iter().cloned()).collect()
}

/// The anchors of the headings of a page, as GitHub makes them.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
        kept.map(|it| if it == ' ' { '-' } else { it }).collect()
    };
    headings.map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_block_in_a_list_has_options_and_steps() -> Result<()> {
        let page = "1. Do it:\n\n   <!-- transcript: cluster columns=80\n   kubectl create ns a\n   -->\n   ```console\n   $ a \\\n     b\n   one\n     two\n   $ c\n   ```\n";
        let found = blocks(page)?;
        let [block] = &found[..] else { bail!("{found:?}") };
        assert_eq!((block.line, block.is_transcript()), (6, true));
        assert_eq!((block.options.columns, block.options.cluster), (Some(80), true));
        assert_eq!(block.options.before, ["kubectl create ns a"]);
        let expected = [
            Step { command: "a \\\n  b".to_owned(), output: lines("one\n  two") },
            Step { command: "c".to_owned(), output: Vec::new() },
        ];
        assert_eq!(block.steps()?, expected);
        Ok(())
    }

    #[test]
    fn options_are_for_the_next_block_only() -> Result<()> {
        let found = blocks("<!-- transcript: cluster -->\nText.\n```console\n$ a\n```\n")?;
        assert!(!found[0].options.cluster);
        assert!(blocks("<!-- transcript: colums=80 -->\n").is_err());
        Ok(())
    }

    #[test]
    fn a_cut_output() {
        let page = lines("a\n…\nz");
        assert!(agrees(&page, &lines("a\nb\nc\nz")) && agrees(&page, &lines("a\nz")));
        assert!(!agrees(&page, &lines("a\nb")) && !agrees(&page, &lines("a")));
        assert_eq!(abbreviated(&page, lines("1\n2\n3\n4")), lines("1\n…\n4"));
        assert_eq!(abbreviated(&page, lines("1\n2")), lines("1\n2"));
    }

    #[test]
    fn anchors_are_those_of_github() {
        assert_eq!(anchors("# A `b` of c.d!\n## Exit codes"), ["a-b-of-cd", "exit-codes"]);
    }
}
