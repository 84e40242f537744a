//! `cargo xtask conformance cel`: runs the CEL conformance suite.
//!
//! The suite is a Go module, and a Go program converts it. The files about the semantics of expressions have
//! a threshold; the others are only reported.

mod bridge;
mod case;
mod suite;
mod value;

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Result, bail, ensure};
use clap::Args;

use self::case::{CelCase, CelOutcome, SkipReason};
use crate::run::print;

#[derive(Debug, Args)]
pub(super) struct Cel {
    /// Print the cases of one file that fail, instead of the table
    #[arg(long, value_name = "FILE")]
    list: Option<String>,
}

/// The files with a threshold.
const REQUIRED: [&str; 12] = [
    "basic",
    "comparisons",
    "conversions",
    "fields",
    "fp_math",
    "integer_math",
    "lists",
    "logic",
    "macros",
    "string",
    "string_ext",
    "timestamps",
];

/// The minimum of passed cases, in percent of those that apply.
const THRESHOLD: usize = 95;

#[derive(Debug, Default)]
struct FileScore {
    passed: usize,
    failed: usize,
    skipped: BTreeMap<SkipReason, usize>,
}

impl Cel {
    pub(super) fn run(self) -> Result<()> {
        match self.list {
            Some(file) => list(&file),
            None => table(print),
        }
    }
}

/// Prints the number of passed cases for each file, and fails if a file is below its threshold.
pub(super) fn table(output: fn(&str)) -> Result<()> {
    let Some(cases) = suite::read()? else { return Ok(()) };
    let mut scores = BTreeMap::<&str, FileScore>::new();
    let mut total = FileScore::default();
    for case in &cases {
        let outcome = case.run(bridge::evaluate);
        scores.entry(&case.file).or_default().count(&outcome);
        total.count(&outcome);
    }
    output(&format!(
        "{:<15} {:>5} {:>6} {:>6} {:>8} {:>8}  threshold",
        "CEL", "cases", "passed", "failed", "skipped", "percent"
    ));
    for (file, score) in &scores {
        output(&score.line(file));
    }
    output(&total.line("all"));
    let low: Vec<_> =
        REQUIRED.into_iter().filter(|file| !scores.get(file).is_some_and(FileScore::holds)).collect();
    if low.is_empty() {
        return Ok(());
    }
    bail!(
        "below the threshold: {}. Run `cargo xtask conformance cel --list FILE` to see the cases.",
        low.join(", ")
    )
}

fn list(file: &str) -> Result<()> {
    let Some(cases) = suite::read()? else { return Ok(()) };
    let cases: Vec<&CelCase> = cases.iter().filter(|case| case.file == file).collect();
    ensure!(!cases.is_empty(), "the suite has no file {file}");
    for case in cases {
        if let CelOutcome::Failed { expected, got } = case.run(bridge::evaluate) {
            print(&format!(
                "{}/{}  {}\n    expected {expected}\n    got      {got}",
                case.section, case.name, case.expr
            ));
        }
    }
    Ok(())
}

impl FileScore {
    fn count(&mut self, outcome: &CelOutcome) {
        match outcome {
            CelOutcome::Passed => self.passed += 1,
            CelOutcome::Failed { .. } => self.failed += 1,
            CelOutcome::Skipped(why) => *self.skipped.entry(*why).or_default() += 1,
        }
    }

    /// The number of cases that were evaluated.
    fn applies(&self) -> usize {
        self.passed + self.failed
    }

    /// Whether enough cases pass. A file without cases was not read correctly.
    fn holds(&self) -> bool {
        self.applies() > 0 && self.passed * 100 >= self.applies() * THRESHOLD
    }

    fn line(&self, file: &str) -> String {
        let skipped: usize = self.skipped.values().sum();
        let percent = match (self.passed * 1000).checked_div(self.applies()) {
            Some(per_mille) => format!("{}.{}", per_mille / 10, per_mille % 10),
            None => "-".to_owned(),
        };
        let required = REQUIRED.contains(&file);
        let threshold = if required { format!("{THRESHOLD} %") } else { String::new() };
        let mut line = format!(
            "{file:<15} {:>5} {:>6} {:>6} {skipped:>8} {percent:>8}  {threshold:<4}",
            self.applies() + skipped,
            self.passed,
            self.failed,
        );
        if required && !self.holds() {
            line.push_str("  BELOW");
        }
        for (index, (why, count)) in self.skipped.iter().enumerate() {
            let _ =
                write!(line, "{}{count} for {}", if index == 0 { "  skipped: " } else { ", " }, why.name());
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_must_reach_the_threshold_with_the_cases_that_apply() {
        for (passed, failed, skipped, expected) in
            [(95, 5, 0, true), (94, 6, 0, false), (94, 5, 100, false), (19, 1, 0, true), (0, 0, 3, false)]
        {
            let skipped = BTreeMap::from([(SkipReason::Messages, skipped)]);
            let score = FileScore { passed, failed, skipped };
            assert_eq!(score.holds(), expected, "{}", score.line("basic"));
            assert_eq!(score.line("basic").contains("BELOW"), !expected, "{}", score.line("basic"));
            assert!(!score.line("dynamic").contains("BELOW"));
        }
    }

    #[test]
    fn a_line_has_the_reasons_of_skipped_cases() {
        let mut score = FileScore::default();
        for outcome in [
            CelOutcome::Passed,
            CelOutcome::Passed,
            CelOutcome::Failed { expected: "1".into(), got: "2".into() },
            CelOutcome::Skipped(SkipReason::Messages),
            CelOutcome::Skipped(SkipReason::Packages),
            CelOutcome::Skipped(SkipReason::Messages),
        ] {
            score.count(&outcome);
        }
        assert_eq!(
            score.line("optionals"),
            "optionals           6      2      1        3     66.6        skipped: 2 for protobuf messages, 1 for variables in \
             packages"
        );
    }
}
