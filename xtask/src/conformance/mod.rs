//! `cargo xtask conformance`: compares verdicts with the test cases of other projects, and runs the CEL
//! conformance suite.
//!
//! The cases are not part of this repository. Every row has a threshold.

mod blind;
mod case;
mod cel;
mod deviations;

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use bellwether_health::{
    Context, assess,
    dialect::{argo, kstatus},
};
use bellwether_model::{Object, Plan};
use clap::{Args, Subcommand, ValueEnum};

use self::case::{Case, Outcome};
use crate::run::{log, print, root};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Conformance {
    #[command(subcommand)]
    suite: Option<Suite>,
    /// Directory of the cases; the default is BELLWETHER_CONFORMANCE, then ../shared/conformance
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    /// Print the cases of one row that differ, instead of the table
    #[arg(long, value_name = "ROW")]
    list: Option<Row>,
    /// Print how the generic rules do on each API group, also without the words that only that group uses
    #[arg(long, conflicts_with = "list")]
    blind: bool,
}

#[derive(Debug, Subcommand)]
enum Suite {
    /// Run only the CEL conformance suite; needs Go
    Cel(cel::Cel),
}

/// A row of the table: a set of cases, and the rules to assess them with.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Row {
    /// The kstatus dialect on the cases of kstatus
    Kstatus,
    /// The kstatus dialect on the cases of kubectl-status, which include messages
    KubectlStatus,
    /// The argo dialect on the cases of Argo CD's built-in checks
    Gitops,
    /// Bellwether's rules on the cases of Argo CD
    Native,
    /// Bellwether's generic rules only, on the cases of Argo CD
    Generic,
    /// HealthRules with Flux expressions on the cases of Flux, including errors
    Flux,
}

struct Threshold {
    /// The minimum of matching cases, in percent. With 100, known deviations may still differ.
    agree: usize,
    /// The maximum of cases that are Ready here and failed there.
    false_green: usize,
}

impl Row {
    fn name(self) -> &'static str {
        match self {
            Self::Kstatus => "kstatus",
            Self::KubectlStatus => "kubectl-status",
            Self::Gitops => "gitops",
            Self::Native => "native",
            Self::Generic => "generic",
            Self::Flux => "flux",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Kstatus => "kstatus.jsonl",
            Self::KubectlStatus => "kubectlstatus.jsonl",
            Self::Gitops => "gitops.jsonl",
            Self::Native | Self::Generic => "argo.jsonl",
            Self::Flux => "fluxcel.jsonl",
        }
    }

    fn threshold(self) -> Threshold {
        match self {
            Self::Kstatus | Self::KubectlStatus | Self::Gitops | Self::Flux => {
                Threshold { agree: 100, false_green: 0 }
            }
            Self::Native => Threshold { agree: 98, false_green: 0 },
            Self::Generic => Threshold { agree: 84, false_green: 2 },
        }
    }

    fn assess(self, case: &Case, object: &Object<'_>) -> Outcome {
        match self {
            Self::Kstatus | Self::KubectlStatus => case::kstatus(case, &kstatus::assess(object, case.now)),
            Self::Gitops => case::argo(case, argo::assess(object).as_ref()),
            Self::Native => case::native(case, &assess(object, &Context::at(case.now))),
            Self::Generic => {
                case::native(case, &assess(object, &Context { builtin: false, ..Context::at(case.now) }))
            }
            Self::Flux => case::flux(case, object),
        }
    }
}

struct Score {
    row: Row,
    cases: usize,
    agree: usize,
    false_green: usize,
    /// Known deviations.
    listed: usize,
}

impl Conformance {
    pub(crate) fn run(self) -> Result<()> {
        if self.blind {
            return find_cases(self.cases).map_or(Ok(()), |cases| blind::table(&cases, print));
        }
        match (self.suite, self.list) {
            (Some(Suite::Cel(cel)), _) => cel.run(),
            (None, Some(row)) => find_cases(self.cases).map_or(Ok(()), |cases| list(&cases, row)),
            (None, None) => everything(self.cases, print),
        }
    }
}

/// Fails if a row is below its threshold.
pub(crate) fn check() -> Result<()> {
    log("\n$ conformance");
    everything(None, log)
}

/// Prints both tables, even if the first fails.
fn everything(cases: Option<PathBuf>, output: fn(&str)) -> Result<()> {
    let verdicts = find_cases(cases).map_or(Ok(()), |cases| table(&cases, output));
    verdicts.and(cel::table(output))
}

/// The directory of the cases. Prints a line if it does not exist.
fn find_cases(named: Option<PathBuf>) -> Option<PathBuf> {
    let directory = named
        .or_else(|| env::var_os("BELLWETHER_CONFORMANCE").map(PathBuf::from))
        .unwrap_or_else(|| root().join("../shared/conformance"));
    if directory.is_dir() {
        return Some(directory);
    }
    log(&format!("conformance skipped: directory {} not found", directory.display()));
    None
}

fn table(directory: &Path, output: fn(&str)) -> Result<()> {
    output(&format!(
        "{:<15} {:>5} {:>6} {:>8} {:>12}  {}",
        "row", "cases", "agree", "percent", "false green", "threshold"
    ));
    let mut low = Vec::new();
    for row in Row::value_variants() {
        let outcomes = assess_all(directory, *row)?;
        let score = Score {
            row: *row,
            cases: outcomes.len(),
            agree: outcomes.iter().filter(|(_, outcome)| outcome.agrees).count(),
            false_green: outcomes.iter().filter(|(_, outcome)| outcome.false_green).count(),
            listed: outcomes
                .iter()
                .filter(|(case, outcome)| !outcome.agrees && deviations::why(&case.id).is_some())
                .count(),
        };
        output(&score.line());
        if !score.holds() {
            low.push(row.name());
        }
    }
    if low.is_empty() {
        return Ok(());
    }
    bail!(
        "below the threshold: {}. Run `cargo xtask conformance --list ROW` to see the cases.",
        low.join(", ")
    )
}

impl Score {
    /// The minimum number of matching cases.
    fn minimum(&self) -> usize {
        match self.row.threshold().agree {
            100 => self.cases - self.listed,
            percent => (self.cases * percent).div_ceil(100),
        }
    }

    fn holds(&self) -> bool {
        self.agree >= self.minimum() && self.false_green <= self.row.threshold().false_green
    }

    fn line(&self) -> String {
        let threshold = self.row.threshold();
        let per_mille = (self.agree * 1000).checked_div(self.cases).unwrap_or(1000);
        let mut line = format!(
            "{:<15} {:>5} {:>6} {:>6}.{} {:>12}  {} cases ({} %), {} false green",
            self.row.name(),
            self.cases,
            self.agree,
            per_mille / 10,
            per_mille % 10,
            self.false_green,
            self.minimum(),
            threshold.agree,
            threshold.false_green,
        );
        if self.listed > 0 {
            let _ = write!(line, ", {} known deviations", self.listed);
        }
        if !self.holds() {
            line.push_str("  BELOW");
        }
        line
    }
}

fn list(directory: &Path, row: Row) -> Result<()> {
    for (case, outcome) in assess_all(directory, row)? {
        if outcome.agrees {
            continue;
        }
        let mut marks = String::new();
        if outcome.false_green {
            marks.push_str("  FALSE GREEN");
        }
        if let Some(why) = deviations::why(&case.id) {
            let _ = write!(marks, "  (known deviation: {why})");
        }
        print(&format!("{}  expected {}, got {}{marks}", case.id, outcome.expected, outcome.got));
    }
    Ok(())
}

fn assess_all(directory: &Path, row: Row) -> Result<Vec<(Case, Outcome)>> {
    let path = directory.join(row.file());
    let lines = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    // Flux's expressions may read anything.
    let plan = if row == Row::Flux { Plan::whole() } else { Plan::everything() };
    lines
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let place = || format!("{}, line {}", path.display(), index + 1);
            let case = Case::read(line).with_context(place)?;
            let object = Object::from_json(&case.object, &plan).with_context(place)?;
            let outcome = row.assess(&case, &object);
            Ok((case, outcome))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    /// Whether a case matches, and whether it is a false green.
    fn outcome(row: Row, kind: &str, mut expectation: Json) -> (bool, bool) {
        expectation["id"] = "it".into();
        expectation["object"] = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "it"}});
        let case = Case::read(&expectation.to_string()).unwrap();
        let object = Object::from_json(&case.object, &Plan::everything()).unwrap();
        let outcome = row.assess(&case, &object);
        (outcome.agrees, outcome.false_green)
    }

    #[test]
    fn a_case_matches_in_all_fields_that_it_names() {
        let claim = |reason| json!([{"type": "Reconciling", "status": "True", "reason": reason}]);
        for (row, kind, expectation, expected) in [
            (Row::Kstatus, "Service", json!({"status": "Current", "absent": ["Stalled"]}), (true, false)),
            (Row::Kstatus, "Service", json!({"status": "InProgress"}), (false, false)),
            (Row::Kstatus, "Service", json!({"status": "Failed"}), (false, true)),
            (
                Row::Kstatus,
                "PersistentVolumeClaim",
                json!({"status": "InProgress", "conditions": claim("NotBound")}),
                (true, false),
            ),
            (
                Row::Kstatus,
                "PersistentVolumeClaim",
                json!({"status": "InProgress", "conditions": claim("Lost")}),
                (false, false),
            ),
            (
                Row::Kstatus,
                "PersistentVolumeClaim",
                json!({"status": "InProgress", "absent": ["Reconciling"]}),
                (false, false),
            ),
            (
                Row::KubectlStatus,
                "Service",
                json!({"status": "Current", "message": "Service is ready"}),
                (true, false),
            ),
            (
                Row::KubectlStatus,
                "Service",
                json!({"status": "Current", "message": "Service is Ready"}),
                (false, false),
            ),
            (Row::Gitops, "Service", json!({"status": "Healthy"}), (true, false)),
            (Row::Gitops, "Service", json!({"status": "Degraded"}), (false, true)),
            (Row::Gitops, "Service", json!({"status": null}), (false, false)),
            (Row::Gitops, "ConfigMap", json!({"status": null}), (true, false)),
            (Row::Native, "Service", json!({"status": "Healthy", "message": "ignored"}), (true, false)),
            (Row::Native, "Service", json!({"status": "Degraded"}), (false, true)),
        ] {
            assert_eq!(outcome(row, kind, expectation.clone()), expected, "{row:?} {kind} {expectation}");
        }
    }

    #[test]
    fn a_row_must_reach_its_threshold() {
        for (row, cases, agree, false_green, listed, expected) in [
            (Row::Kstatus, 58, 58, 0, 0, true),
            (Row::Kstatus, 58, 57, 0, 0, false),
            (Row::KubectlStatus, 110, 109, 0, 1, true),
            (Row::KubectlStatus, 110, 108, 0, 1, false),
            (Row::Native, 674, 661, 0, 8, true),
            (Row::Native, 674, 660, 0, 8, false),
            (Row::Native, 674, 674, 1, 0, false),
            (Row::Generic, 674, 567, 2, 0, true),
            (Row::Generic, 674, 566, 2, 0, false),
            (Row::Generic, 674, 567, 3, 0, false),
            (Row::Generic, 0, 0, 0, 0, true),
        ] {
            let score = Score { row, cases, agree, false_green, listed };
            assert_eq!(score.holds(), expected, "{}", score.line());
        }
    }

    #[test]
    fn a_percentage_is_never_rounded_up_to_its_threshold() {
        let score = Score { row: Row::Native, cases: 1123, agree: 1100, false_green: 0, listed: 0 };
        assert!(!score.holds() && score.line().contains("97.9"), "{}", score.line());
    }
}
