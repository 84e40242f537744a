//! `cargo xtask fuzz`: runs cargo-fuzz.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

use crate::run::{log, root, step};

/// Longer inputs are slow to generate and find nothing new.
const MAX_LENGTH: &str = "-max_len=8192";

/// An input that takes longer, in seconds, is a failure.
const TIMEOUT: &str = "-timeout=5";

#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// Fuzz target
    #[arg(value_enum, default_value_t = Target::Object)]
    target: Target,
    /// Duration in minutes
    #[arg(long, default_value_t = 20)]
    minutes: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    /// Decoder and rules, with objects
    Object,
    /// CEL parser and evaluator, with expressions
    Cel,
    /// Compiler of expression trees, with trees
    Tree,
    /// Lua sandbox, with scripts
    Lua,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Cel => "cel",
            Self::Tree => "tree",
            Self::Lua => "lua",
        }
    }

    /// The initial corpus: recorded objects, expressions, scripts of the examples.
    fn seeds(self, root: &Path) -> Result<Vec<Vec<u8>>> {
        match self {
            Self::Object => contents(&files_below(&root.join("bench/objects"))?),
            Self::Lua => {
                let mut files = files_below(&root.join("examples/rules/from-argo-cd"))?;
                files.retain(|file| file.extension().is_some_and(|extension| extension == "lua"));
                contents(&files)
            }
            Self::Cel | Self::Tree => {
                let path = root.join("fuzz/seeds").join(self.name());
                let lines =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                Ok(lines.lines().map(|line| line.as_bytes().to_vec()).collect())
            }
        }
    }
}

impl Fuzz {
    pub(crate) fn run(&self) -> Result<()> {
        let root = root();
        let target = self.target.name();
        let corpus = root.join("fuzz/corpus").join(target);
        fs::create_dir_all(&corpus).with_context(|| format!("cannot create {}", corpus.display()))?;
        for (index, seed) in self.target.seeds(&root)?.iter().enumerate() {
            let path = corpus.join(format!("seed-{index}"));
            fs::write(&path, seed).with_context(|| format!("cannot write {}", path.display()))?;
        }
        log("requires: `rustup toolchain install nightly`, `cargo install cargo-fuzz`");
        let seconds = format!("-max_total_time={}", u64::from(self.minutes) * 60);
        let dictionary = format!("-dict={}", root.join("fuzz/dictionaries").join(target).display());
        // `$CARGO` belongs to one toolchain. Only the rustup proxy understands `+nightly`.
        let mut command = Command::new("cargo");
        command.current_dir(&root).env_remove("RUSTUP_TOOLCHAIN");
        command.args(["+nightly", "fuzz", "run", "--sanitizer", "none", target, "--"]);
        command.args([&seconds, &dictionary, MAX_LENGTH, TIMEOUT]);
        step(&mut command)
    }
}

fn contents(files: &[PathBuf]) -> Result<Vec<Vec<u8>>> {
    files
        .iter()
        .map(|file| fs::read(file).with_context(|| format!("cannot read {}", file.display())))
        .collect()
}

fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}
