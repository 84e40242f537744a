//! `cargo xtask conformance cel`: CEL's own conformance suite, case by case, through our evaluator.
//!
//! The suite is a Go module, which Go reads for us. The files that show whether an expression means here what it means
//! elsewhere have a bar; the others are told.

mod bridge;
mod case;
mod suite;
mod value;

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Result, bail, ensure};
use clap::Args;

use self::case::{Case, LeftOut, Verdict};
use crate::run::print;

#[derive(Debug, Args)]
pub(super) struct Cel {
    /// Print the cases of one file that fail, instead of the table
    #[arg(long, value_name = "FILE")]
    list: Option<String>,
}

/// The files that must reach the bar.
const BARRED: [&str; 12] = [
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

/// The least part of the cases that apply, in percent.
const BAR: usize = 95;

/// How many of a file's cases pass.
#[derive(Debug, Default)]
struct Score {
    passed: usize,
    failed: usize,
    left_out: BTreeMap<LeftOut, usize>,
}

impl Cel {
    pub(super) fn run(self) -> Result<()> {
        match self.list {
            Some(file) => list(&file),
            None => table(print),
        }
    }
}

/// Tells how many of each file's cases pass, and fails if too few do.
pub(super) fn table(tell: fn(&str)) -> Result<()> {
    let Some(cases) = suite::read()? else { return Ok(()) };
    let mut scores = BTreeMap::<&str, Score>::new();
    let mut total = Score::default();
    for case in &cases {
        let verdict = case.judge(bridge::evaluate);
        scores.entry(&case.file).or_default().count(&verdict);
        total.count(&verdict);
    }
    tell(&format!(
        "{:<15} {:>5} {:>6} {:>6} {:>8} {:>8}  bar",
        "CEL", "cases", "passed", "failed", "left out", "percent"
    ));
    for (file, score) in &scores {
        tell(&score.line(file));
    }
    tell(&total.line("all"));
    let low: Vec<_> = BARRED.into_iter().filter(|file| !scores.get(file).is_some_and(Score::holds)).collect();
    if low.is_empty() {
        return Ok(());
    }
    bail!("below the bar: {}; `cargo xtask conformance cel --list FILE` shows the cases", low.join(", "))
}

fn list(file: &str) -> Result<()> {
    let Some(cases) = suite::read()? else { return Ok(()) };
    let cases: Vec<&Case> = cases.iter().filter(|case| case.file == file).collect();
    ensure!(!cases.is_empty(), "the suite has no file {file}");
    for case in cases {
        if let Verdict::Failed { expected, got } = case.judge(bridge::evaluate) {
            print(&format!(
                "{}/{}  {}\n    expected {expected}\n    got      {got}",
                case.section, case.name, case.expr
            ));
        }
    }
    Ok(())
}

impl Score {
    fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed { .. } => self.failed += 1,
            Verdict::LeftOut(why) => *self.left_out.entry(*why).or_default() += 1,
        }
    }

    /// The cases that mean something here.
    fn applies(&self) -> usize {
        self.passed + self.failed
    }

    /// Whether enough of them pass. If there are none, the suite was misread.
    fn holds(&self) -> bool {
        self.applies() > 0 && self.passed * 100 >= self.applies() * BAR
    }

    fn line(&self, file: &str) -> String {
        let left_out: usize = self.left_out.values().sum();
        let percent = match (self.passed * 1000).checked_div(self.applies()) {
            Some(per_mille) => format!("{}.{}", per_mille / 10, per_mille % 10),
            None => "-".to_owned(),
        };
        let barred = BARRED.contains(&file);
        let bar = if barred { format!("{BAR} %") } else { String::new() };
        let mut line = format!(
            "{file:<15} {:>5} {:>6} {:>6} {left_out:>8} {percent:>8}  {bar:<4}",
            self.applies() + left_out,
            self.passed,
            self.failed,
        );
        if barred && !self.holds() {
            line.push_str("  BELOW");
        }
        for (index, (why, count)) in self.left_out.iter().enumerate() {
            let _ =
                write!(line, "{}{count} for {}", if index == 0 { "  left out: " } else { ", " }, why.name());
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_must_reach_the_bar_with_what_applies() {
        for (passed, failed, left_out, expected) in
            [(95, 5, 0, true), (94, 6, 0, false), (94, 5, 100, false), (19, 1, 0, true), (0, 0, 3, false)]
        {
            let left_out = BTreeMap::from([(LeftOut::Messages, left_out)]);
            let score = Score { passed, failed, left_out };
            assert_eq!(score.holds(), expected, "{}", score.line("basic"));
            assert_eq!(score.line("basic").contains("BELOW"), !expected, "{}", score.line("basic"));
            assert!(!score.line("dynamic").contains("BELOW"));
        }
    }

    #[test]
    fn a_line_tells_what_was_left_out_and_why() {
        let mut score = Score::default();
        for verdict in [
            Verdict::Passed,
            Verdict::Passed,
            Verdict::Failed { expected: "1".into(), got: "2".into() },
            Verdict::LeftOut(LeftOut::Messages),
            Verdict::LeftOut(LeftOut::Packages),
            Verdict::LeftOut(LeftOut::Messages),
        ] {
            score.count(&verdict);
        }
        assert_eq!(
            score.line("optionals"),
            "optionals           6      2      1        3     66.6        left out: 2 for protobuf messages, 1 for variables in \
             packages"
        );
    }
}
