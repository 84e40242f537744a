//! `bellwether rules lint`: finds errors in rules.

use std::{fmt::Write as _, sync::Arc};

use anyhow::Result;
use bellwether_health::user::Overridden;
use bellwether_model::State;
use bellwether_terminal::{Screen, printable, sign, style};
use serde::Serialize;

use super::{
    finding::{Finding, or_unnamed, place},
    load::{Found, Loaded},
    printed, summary,
};
use crate::{
    cli::RuleFiles,
    output::{BAD_INPUT, Outcome},
};

#[derive(Serialize)]
struct LintedRule {
    file: String,
    /// The first line of the rule. Absent for a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    name: String,
    /// The kind that the rule is for. Absent for an invalid rule.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    valid: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Finding>,
}

pub(super) fn run(command: &RuleFiles, screen: Screen) -> Result<Outcome> {
    let loaded = Loaded::from(&command.files);
    let mut checked: Vec<_> = loaded.rules.iter().map(LintedRule::of).collect();
    for overridden in loaded.in_force().overridden() {
        let by = &overridden.by;
        let message =
            format!("overridden by rule {:?} for {} ({})", by.name(), by.kind(), why_first(overridden));
        let is_it = |found: &Found| found.rule.as_ref().is_ok_and(|rule| Arc::ptr_eq(rule, &overridden.rule));
        if let Some(index) = loaded.rules.iter().position(is_it) {
            checked[index].add(message);
        }
    }
    mark_duplicates(&loaded.rules, &mut checked);
    let text = printed(&checked, command.output, || page(&checked, screen))?;
    let mut errors = loaded.problems;
    if checked.is_empty() && errors.is_empty() {
        let inputs: Vec<_> = command.files.iter().map(|input| input.display().to_string()).collect();
        errors.push(format!("no HealthRule and no health.lua in {}", inputs.join(", ")));
    }
    let is_invalid = checked.iter().any(|checked| !checked.valid);
    let code = if errors.is_empty() { u8::from(is_invalid) } else { BAD_INPUT };
    Ok(Outcome { text, errors, code, ..Outcome::default() })
}

/// Why one of two rules for the same kind has precedence.
fn why_first(overridden: &Overridden) -> &'static str {
    let Overridden { rule, by } = overridden;
    match (by.created(), rule.created()) {
        (one, other) if one != other => "older",
        _ if by.name() == rule.name() => "first in the input",
        _ => "first by name",
    }
}

/// Rules with the same name: in a cluster, the last one applied wins.
fn mark_duplicates(rules: &[Found], checked: &mut [LintedRule]) {
    for (index, rule) in rules.iter().enumerate() {
        let is_same = |other: &&Found| other.name == rule.name && !rule.name.is_empty();
        if let Some(other) = rules[..index].iter().find(is_same) {
            let first = place(&other.file.display().to_string(), other.line);
            checked[index].add(format!("duplicate rule {:?}: also in {first}", rule.name));
        }
    }
}

impl LintedRule {
    fn of(found: &Found) -> Self {
        Self {
            file: found.file.display().to_string(),
            line: found.line,
            name: found.name.clone(),
            kind: found.rule.as_ref().ok().map(|rule| rule.kind().to_string()),
            valid: found.rule.is_ok(),
            errors: found.rule.as_ref().err().cloned().unwrap_or_default(),
        }
    }

    fn add(&mut self, message: String) {
        self.valid = false;
        self.errors.push(Finding::plain(message).at(self.line));
    }
}

fn page(checked: &[LintedRule], screen: Screen) -> String {
    let mut text = String::new();
    for rule in checked {
        let state = Some(if rule.valid { State::Ready } else { State::Failed });
        let sign = sign(state).to_string();
        let sign = screen.paint(&sign, style(state));
        let kind = rule.kind.as_ref().map(|kind| format!(" for {kind}")).unwrap_or_default();
        let place = place(&rule.file, rule.line);
        let _ = writeln!(text, "{sign} {}{kind} ({})", printable(or_unnamed(&rule.name)), printable(&place));
        rule.errors.iter().for_each(|finding| text.push_str(&finding.paragraph(&rule.file)));
    }
    if !checked.is_empty() {
        let invalid = checked.iter().filter(|rule| !rule.valid).count();
        let _ = writeln!(text, "{}", summary(checked.len(), invalid, "rule"));
    }
    text
}
