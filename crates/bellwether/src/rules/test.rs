//! `bellwether rules test`: runs rules on objects and compares the verdicts with the expected ones.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Result;
use bellwether_health::{
    Context, Source, assess,
    user::{CompiledRule, UserRules},
};
use bellwether_input::files_in;
use bellwether_model::{Object, State};
use bellwether_terminal::{Screen, printable, sign, style};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    counted,
    load::{Loaded, is_suite_file},
    printed,
    suite::{Case, Expected, Suite},
};
use crate::{
    cli::RuleTests,
    evidence::rule,
    output::{BAD_INPUT, Outcome},
};

/// The result of a suite.
#[derive(Serialize)]
struct Ran {
    suite: String,
    cases: usize,
    passed: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Failure>,
}

#[derive(Serialize)]
struct Failure {
    case: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<Difference>,
}

#[derive(Serialize)]
struct Difference {
    what: &'static str,
    expected: String,
    got: String,
}

pub(super) fn run(command: &RuleTests, screen: Screen) -> Result<Outcome> {
    // If the input is a suite, use the rules in its directory.
    let beside = |input: &PathBuf| match input.parent() {
        Some(parent) if input.is_file() && parent != Path::new("") => parent.to_owned(),
        _ if input.is_file() => PathBuf::from("."),
        _ => input.clone(),
    };
    let places: Vec<_> = command.directories.iter().map(beside).collect();
    let loaded = Loaded::from(&places);
    let mut errors = loaded.errors();
    let runner =
        Runner { rules: loaded.in_force(), loaded: &loaded, now: command.now.unwrap_or_else(Timestamp::now) };
    let mut ran = Vec::new();
    for (input, place) in command.directories.iter().zip(&places) {
        let before = (ran.len(), errors.len());
        let suites = suites_in(input, &mut errors);
        ran.extend(suites.iter().map(|suite| runner.run(suite, place)));
        if before == (ran.len(), errors.len()) && input.exists() {
            errors.push(format!("no test suites (files ending in _test.yaml) in {}", input.display()));
        }
    }
    let text = printed(&ran, command.output, || page(&ran, screen))?;
    let fails = ran.iter().any(|ran| !ran.failures.is_empty());
    let code = if errors.is_empty() { u8::from(fails) } else { BAD_INPUT };
    Ok(Outcome { text, errors, code, ..Outcome::default() })
}

fn suites_in(directory: &Path, errors: &mut Vec<String>) -> Vec<Suite> {
    // Loading the rules has already reported an unreadable directory.
    let files = if directory.is_file() {
        vec![directory.to_owned()]
    } else {
        files_in(directory, &is_suite_file).unwrap_or_default()
    };
    let mut suites = Vec::new();
    for file in files {
        match Suite::read(&file) {
            Ok(suite) => suites.extend(suite),
            Err(error) => errors.push(error),
        }
    }
    suites
}

struct Runner<'l> {
    rules: UserRules,
    loaded: &'l Loaded,
    now: Timestamp,
}

impl Runner<'_> {
    fn run(&self, suite: &Suite, root: &Path) -> Ran {
        let failures: Vec<_> = suite
            .cases
            .iter()
            .filter_map(|case| {
                let case_failed =
                    |error, differences| Failure { case: case.name.clone(), error, differences };
                match self.differences(suite, case) {
                    Ok(differences) if differences.is_empty() => None,
                    Ok(differences) => Some(case_failed(None, differences)),
                    Err(error) => Some(case_failed(Some(error), Vec::new())),
                }
            })
            .collect();
        let path = suite.file.strip_prefix(root).unwrap_or(&suite.file);
        let is_argo = path.file_name().is_some_and(|name| name == "health_test.yaml");
        let label = path.parent().filter(|parent| is_argo && *parent != Path::new("")).unwrap_or(path);
        let cases = suite.cases.len();
        Ran { suite: label.display().to_string(), cases, passed: cases - failures.len(), failures }
    }

    fn differences(&self, suite: &Suite, case: &Case) -> Result<Vec<Difference>, String> {
        let object = case.object.as_ref().map_err(Clone::clone)?;
        let now = case.now.unwrap_or(self.now);
        let context = Context { rules: Some(&self.rules), ..Context::at(now) };
        match &case.expected {
            Expected::Ours { state, reason, message, progress } => {
                let verdict = assess(object, &context);
                // A rule that does not match, for example because of a misspelt kind, must not pass.
                if verdict.rule.source != Source::User && verdict.state != State::Terminating {
                    let kind = format!("{} ({})", object.kind(), object.api_version());
                    return Err(format!("no user rule for {kind}; {} was applied", rule(&verdict)));
                }
                let progress = progress.map(|progress| progress.to_string());
                Ok(compared([
                    ("state", state.map(State::name), verdict.state.name()),
                    ("reason", reason.as_deref(), &verdict.reason),
                    ("message", message.as_deref(), &verdict.message),
                    ("progress", progress.as_deref(), &verdict.progress.to_string()),
                ]))
            }
            Expected::Argo { status, message } => {
                let rule = self.rule_for(object, suite)?;
                if let Some(ran) = rule.run_script(object, now) {
                    let (got_status, got_message) = ran?;
                    return Ok(compared([
                        ("status", Some(status), &got_status),
                        ("message", Some(message), &got_message),
                    ]));
                }
                let verdict = assess(object, &context);
                Ok(compared([
                    ("status", Some(status), in_argo_words(verdict.state)),
                    (
                        "message",
                        Some(message.as_str()).filter(|message| !message.is_empty()),
                        &verdict.message,
                    ),
                ]))
            }
        }
    }

    /// The rule for the kind of the object, as in Argo CD. If there is none, the rule beside the suite.
    fn rule_for(&self, object: &Object<'_>, suite: &Suite) -> Result<&CompiledRule, String> {
        if let Some(rule) = self.rules.rule_for(object) {
            return Ok(rule);
        }
        let own = self.loaded.rules.iter().find(|found| found.file.parent() == suite.file.parent());
        match own.map(|found| &found.rule) {
            Some(Ok(rule)) => Ok(rule),
            Some(Err(_)) => Err("the rule is invalid: see the errors".to_owned()),
            None => Err(format!("no rule for {} ({})", object.kind(), object.api_version())),
        }
    }
}

fn compared<const N: usize>(pairs: [(&'static str, Option<&str>, &str); N]) -> Vec<Difference> {
    pairs
        .into_iter()
        .filter_map(|(what, expected, got)| {
            let expected = expected.filter(|expected| *expected != got)?;
            Some(Difference { what, expected: expected.to_owned(), got: got.to_owned() })
        })
        .collect()
}

fn in_argo_words(state: State) -> &'static str {
    match state {
        State::Ready => "Healthy",
        State::InProgress | State::Terminating => "Progressing",
        State::Failed => "Degraded",
        State::Suspended => "Suspended",
        State::Unknown => "Unknown",
        State::Missing => "Missing",
    }
}

fn page(ran: &[Ran], screen: Screen) -> String {
    let mut text = String::new();
    for suite in ran {
        let state = Some(if suite.failures.is_empty() { State::Ready } else { State::Failed });
        let sign = sign(state).to_string();
        let sign = screen.paint(&sign, style(state));
        let cases = counted(suite.cases, "case");
        let _ = match suite.failures.len() {
            0 => writeln!(text, "{sign} {} ({cases})", printable(&suite.suite)),
            failed => writeln!(text, "{sign} {} ({failed} of {cases} failed)", printable(&suite.suite)),
        };
        suite.failures.iter().for_each(|failure| text.push_str(&paragraph(failure)));
    }
    if !ran.is_empty() {
        let cases: usize = ran.iter().map(|suite| suite.cases).sum();
        let passed: usize = ran.iter().map(|suite| suite.passed).sum();
        let suites = counted(ran.len(), "suite");
        let _ = writeln!(
            text,
            "{} in {suites}: {passed} passed, {} failed.",
            counted(cases, "case"),
            cases - passed
        );
    }
    text
}

fn paragraph(failure: &Failure) -> String {
    let mut text = format!("    {}\n", printable(&failure.case));
    if let Some(error) = &failure.error {
        let _ = writeln!(text, "      {}", printable(error));
    }
    for Difference { what, expected, got } in &failure.differences {
        let _ = writeln!(text, "      {what:<8}  expected {}", quoted(expected));
        let _ = writeln!(text, "      {:<8}  got      {}", "", quoted(got));
    }
    text
}

/// The text in quotes, so that spaces at its ends are visible.
fn quoted(text: &str) -> String {
    format!("{text:?}")
}
