//! Plans that failed once, as regression tests. A file has the shrunk plan itself, so it stays valid when the
//! code that draws plans from seeds changes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::{plan::Plan, search::run_plan};

/// The stored histories of this repository.
pub const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/histories");

/// Number of seeds that each history runs with. The seed decides durations, and a change to the simulation
/// changes what a seed means.
const SEEDS: u64 = 32;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct History {
    /// What the plan does and what failed, for readers.
    pub shows: String,
    pub plan: Plan,
}

impl History {
    pub fn read(file: &Path) -> Result<Self> {
        let name = file.display();
        let text = fs::read(file).with_context(|| format!("cannot read the history {name}"))?;
        let history: Self =
            serde_json::from_slice(&text).with_context(|| format!("invalid history {name}"))?;
        history.plan.validate().with_context(|| format!("invalid history {name}"))?;
        Ok(history)
    }

    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(file, text).with_context(|| format!("cannot write the history {}", file.display()))
    }

    /// Runs the plan with its own seed and with others. An error is the first failing plan and its violation.
    pub fn run(&self) -> Result<(), Box<(Plan, String)>> {
        for seed in (0..SEEDS).map(|number| self.plan.seed ^ number) {
            let plan = Plan { seed, ..self.plan.clone() };
            if let Err(violation) = run_plan(&plan) {
                return Err(Box::new((plan, violation)));
            }
        }
        Ok(())
    }
}

/// All histories of a directory, by file name.
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
    /// Checks a plan that was read from a file.
    fn validate(&self) -> Result<()> {
        ensure!(self.processes > 0, "plan.processes is 0, want at least 1");
        for (number, (moment, action)) in self.actions.iter().enumerate() {
            if let Some(process) = action.process() {
                ensure!(
                    process < self.processes,
                    "plan.actions[{number}] names controller {process} of {}, counted from 0",
                    self.processes
                );
            }
            let before = number.checked_sub(1).map_or(0, |before| self.actions[before].0);
            ensure!(before <= *moment, "plan.actions[{number}] is at {moment} ms, after one at {before} ms");
        }
        Ok(())
    }
}
