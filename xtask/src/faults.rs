//! `cargo xtask faults`: repeats the tests of faults and prints the recovery times.

use std::{collections::BTreeMap, env, fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::{
    faketime,
    run::{cargo, log, print, step},
};

/// The file to which the tests write their recovery times.
const RECOVERIES: &str = "BELLWETHER_RECOVERIES";

#[derive(Debug, Args)]
pub(crate) struct Faults {
    /// Number of rounds
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Run only tests with this in their names
    #[arg(default_value = "controller::faults")]
    name: String,
}

impl Faults {
    pub(crate) fn run(&self) -> Result<()> {
        let file = env::temp_dir().join(format!("bellwether-recoveries-{}", std::process::id()));
        let faketime = faketime::find();
        for round in 1..=self.rounds {
            log(&format!("\nround {round} of {}", self.rounds));
            let result = step(self.tests(faketime.as_deref()).env(RECOVERIES, &file));
            result.with_context(|| format!("round {round} failed"))?;
        }
        let recorded = fs::read_to_string(&file).context("the tests recorded no recovery times")?;
        print(&table(&times(&recorded)?));
        Ok(fs::remove_file(file)?)
    }

    fn tests(&self, faketime: Option<&Path>) -> Command {
        let mut command = cargo(&["test", "--package", "bellwether", "--test", "it", "--", &self.name]);
        if let Some(library) = faketime {
            command.arg("--include-ignored").env(faketime::VARIABLE, library);
        }
        command
    }
}

/// The times of every fault in milliseconds, sorted.
fn times(recorded: &str) -> Result<BTreeMap<&str, Vec<u64>>> {
    let mut times: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in recorded.lines() {
        let (fault, time) = line.split_once('\t').with_context(|| format!("missing time in {line:?}"))?;
        times.entry(fault).or_default().push(time.parse()?);
    }
    for times in times.values_mut() {
        times.sort_unstable();
    }
    Ok(times)
}

fn table(times: &BTreeMap<&str, Vec<u64>>) -> String {
    let width = times.keys().map(|fault| fault.chars().count()).max().unwrap_or_default();
    let mut lines = vec![format!("{:<width$}  rounds      best    median     worst   ms", "fault")];
    for (fault, times) in times {
        let (best, worst) =
            (times.first().copied().unwrap_or_default(), times.last().copied().unwrap_or_default());
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        lines.push(format!("{fault:<width$}{:>8}{best:>10}{median:>10}{worst:>10}", times.len()));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_fault() {
        let recorded = "b\t30\na fault\t7\nb\t10\nb\t200\n";
        let expected = "fault    rounds      best    median     worst   ms\n\
                        a fault       1         7         7         7\n\
                        b             3        10        30       200";
        assert_eq!(table(&times(recorded).unwrap()), expected);
        assert!(times("nothing").is_err());
    }
}
