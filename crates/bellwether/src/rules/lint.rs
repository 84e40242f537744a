//! `bellwether rules lint`: finds errors in rules.

use std::{fmt::Write as _, sync::Arc};

use anyhow::Result;
use bellwether_expr::Place;
use bellwether_health::user::{Overridden, RuleFieldError};
use bellwether_model::State;
use bellwether_terminal::{Screen, columns, printable, sign, style};
use serde::Serialize;

use super::{
    load::{Found, Loaded, RuleError},
    printed, tally,
};
use crate::{
    cli::RuleFiles,
    output::{BAD_INPUT, Outcome},
    schema,
};

#[derive(Serialize)]
struct LintedRule {
    file: String,
    name: String,
    /// The kind that the rule is for. Absent for an invalid rule.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    valid: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<Finding>,
}

/// An error in a rule or in another object.
#[derive(Serialize)]
pub(crate) struct Finding {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<usize>,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// The line of the source with the error.
    #[serde(skip)]
    excerpt: Option<String>,
}

pub(super) fn run(command: &RuleFiles, screen: Screen) -> Result<Outcome> {
    let loaded = Loaded::from(&command.files);
    let mut checked: Vec<_> = loaded.rules.iter().map(LintedRule::of).collect();
    for overridden in loaded.in_force().overridden() {
        let why = format!(
            "never used: rule {:?} is also for {} and {}",
            overridden.by.name(),
            overridden.by.kind(),
            why_first(overridden),
        );
        let is_it = |found: &Found| found.rule.as_ref().is_ok_and(|rule| Arc::ptr_eq(rule, &overridden.rule));
        if let Some(index) = loaded.rules.iter().position(is_it) {
            checked[index].valid = false;
            checked[index].faults.push(Finding::plain(why));
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
        (one, other) if one != other => "is older",
        _ if by.name() == rule.name() => "comes first in the input",
        _ => "comes first by name",
    }
}

/// Rules with the same name: in a cluster, the last one applied wins.
fn mark_duplicates(rules: &[Found], checked: &mut [LintedRule]) {
    for (index, rule) in rules.iter().enumerate() {
        let is_same = |other: &&Found| other.name == rule.name && !rule.name.is_empty();
        if let Some(other) = rules[..index].iter().find(is_same) {
            checked[index].valid = false;
            let text = format!("duplicate rule {:?}: also in {}", rule.name, other.file.display());
            checked[index].faults.push(Finding::plain(text));
        }
    }
}

impl LintedRule {
    fn of(found: &Found) -> Self {
        let errors = found.rule.as_ref().err().into_iter().flatten();
        Self {
            file: found.file.display().to_string(),
            name: found.name.clone(),
            kind: found.rule.as_ref().ok().map(|rule| rule.kind().to_string()),
            valid: found.rule.is_ok(),
            faults: errors.map(Finding::of).collect(),
        }
    }
}

impl Finding {
    fn plain(text: String) -> Self {
        Self { field: None, line: None, column: None, text, hint: None, excerpt: None }
    }

    pub(crate) fn in_field(error: schema::FieldError) -> Self {
        Self { field: Some(error.field), ..Self::plain(error.text) }
    }

    pub(super) fn of(error: &RuleError) -> Self {
        match error {
            RuleError::Field(error) => Self::in_field(error.clone()),
            RuleError::Source(flaw) => Self::in_source(flaw),
        }
    }

    fn in_source(flaw: &RuleFieldError) -> Self {
        let (line, column) = match flaw.compile_error.place {
            Place::Text { line, column } => (Some(line), Some(column)),
            Place::Line(line) => (Some(line), None),
            Place::Tree(_) => (None, None),
        };
        Self {
            field: Some(flaw.field.clone()),
            line,
            column,
            text: flaw.compile_error.text.clone(),
            hint: flaw.compile_error.hint.clone(),
            excerpt: line.and_then(|line| flaw.source.lines().nth(line - 1)).map(str::to_owned),
        }
    }
}

fn page(checked: &[LintedRule], screen: Screen) -> String {
    let mut text = String::new();
    for rule in checked {
        let state = Some(if rule.valid { State::Ready } else { State::Failed });
        let sign = sign(state).to_string();
        let sign = screen.paint(&sign, style(state));
        let kind = rule.kind.as_ref().map(|kind| format!(" for {kind}")).unwrap_or_default();
        let name = if rule.name.is_empty() { "rule without a name" } else { &rule.name };
        let _ = writeln!(text, "{sign} {}{kind} ({})", printable(name), printable(&rule.file));
        rule.faults.iter().for_each(|finding| text.push_str(&paragraph(finding)));
    }
    if !checked.is_empty() {
        let invalid = checked.iter().filter(|rule| !rule.valid).count();
        let _ = writeln!(text, "{}", tally(checked.len(), invalid, "rule"));
    }
    text
}

/// The error, with the line of the source and a mark at the column.
pub(crate) fn paragraph(finding: &Finding) -> String {
    let mut text = String::from("    ");
    if let Some(field) = &finding.field {
        let _ = write!(text, "{field}");
        if let Some(line) = finding.line {
            let _ = write!(text, ", line {line}");
        }
        if let Some(column) = finding.column {
            let _ = write!(text, ", column {column}");
        }
        text.push_str(": ");
    }
    let _ = writeln!(text, "{}", printable(&finding.text));
    if let Some(excerpt) = &finding.excerpt {
        let excerpt: String =
            excerpt.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(text, "      {excerpt}");
        if let Some(column) = finding.column {
            let before: String = excerpt.chars().take(column - 1).collect();
            let _ = writeln!(text, "      {:width$}^", "", width = columns(&before));
        }
    }
    if let Some(hint) = &finding.hint {
        let _ = writeln!(text, "      {}", printable(hint));
    }
    text
}
