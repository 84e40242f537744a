//! Histories that went wrong once. Each is a file with the shrunk plan itself, so that it stays the same history when plans are
//! drawn from seeds in another way.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::{plan::Plan, search::try_out};

/// Where the histories of this repository are.
pub const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/histories");

/// The seed of a plan decides how long requests take. A change to the simulation makes other times of it, so a history is run
/// with so many seeds.
const SEEDS: u64 = 32;

/// A plan that went wrong once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct History {
    /// What went wrong.
    pub shows: String,
    /// What has to happen for that.
    pub plan: Plan,
}

impl History {
    /// Reads one from a file.
    pub fn read(file: &Path) -> Result<Self> {
        let name = file.display();
        let text = fs::read(file).with_context(|| format!("cannot read the history {name}"))?;
        let history: Self =
            serde_json::from_slice(&text).with_context(|| format!("invalid history {name}"))?;
        history.plan.validate().with_context(|| format!("invalid history {name}"))?;
        Ok(history)
    }

    /// Writes it to a file.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(file, text).with_context(|| format!("cannot write the history {}", file.display()))
    }

    /// Runs it with its own seed and with others. Gives the first plan that goes wrong, and how.
    pub fn run(&self) -> Result<(), Box<(Plan, String)>> {
        for seed in (0..SEEDS).map(|number| self.plan.seed ^ number) {
            let plan = Plan { seed, ..self.plan.clone() };
            if let Err(wrong) = try_out(&plan) {
                return Err(Box::new((plan, wrong)));
            }
        }
        Ok(())
    }
}

/// All histories of a directory, in the order of their names.
pub fn stored(directory: &Path) -> Result<Vec<(PathBuf, History)>> {
    let context = || format!("cannot read the directory {}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(context)? {
        files.push(entry.with_context(context)?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files.into_iter().map(|file| Ok((file.clone(), History::read(&file)?))).collect()
}

impl Plan {
    /// Whether a plan that somebody has written can be run.
    fn validate(&self) -> Result<()> {
        ensure!(self.processes > 0, "plan.processes is 0, want at least 1");
        for (number, (moment, deed)) in self.deeds.iter().enumerate() {
            if let Some(process) = deed.process() {
                ensure!(
                    process < self.processes,
                    "plan.deeds[{number}] names controller {process} of {}, counted from 0",
                    self.processes
                );
            }
            let before = number.checked_sub(1).map_or(0, |before| self.deeds[before].0);
            ensure!(before <= *moment, "plan.deeds[{number}] is at {moment} ms, after one at {before} ms");
        }
        Ok(())
    }
}
