//! `bellwether rules lint`: what is wrong with rules, and where.

use std::{fmt::Write as _, sync::Arc};

use anyhow::Result;
use bellwether_expr::Place;
use bellwether_health::user::{Flaw, Overridden};
use bellwether_model::State;
use bellwether_terminal::{Screen, columns, printable, sign, style};
use serde::Serialize;

use super::{
    load::{Fault, Found, Loaded},
    printed,
};
use crate::{
    cli::RuleFiles,
    output::{BAD_INPUT, Outcome},
    schema,
};

/// What is said of a rule.
#[derive(Serialize)]
struct Checked {
    file: String,
    name: String,
    /// The kind that it is for, if that can be told.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    valid: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<Said>,
}

/// One thing that is wrong.
#[derive(Serialize)]
pub(crate) struct Said {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<usize>,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// The line of the field that it is about.
    #[serde(skip)]
    excerpt: Option<String>,
}

pub(super) fn run(command: &RuleFiles, screen: Screen) -> Result<Outcome> {
    let loaded = Loaded::from(&command.files);
    let mut checked: Vec<_> = loaded.rules.iter().map(Checked::of).collect();
    for overridden in loaded.in_force().overridden() {
        let why = format!(
            "it never decides, because the rule {} is for {} too and {}",
            overridden.by.name(),
            overridden.by.kind(),
            why_first(overridden),
        );
        let is_it = |found: &Found| found.rule.as_ref().is_ok_and(|rule| Arc::ptr_eq(rule, &overridden.rule));
        if let Some(index) = loaded.rules.iter().position(is_it) {
            checked[index].valid = false;
            checked[index].faults.push(Said::plain(why));
        }
    }
    mark_same_names(&loaded.rules, &mut checked);
    let text = printed(&checked, command.output, || page(&checked, screen))?;
    let mut errors = loaded.problems;
    if checked.is_empty() && errors.is_empty() {
        errors.push("there is no HealthRule and no health.lua here".to_owned());
    }
    let is_wrong = checked.iter().any(|checked| !checked.valid);
    let code = if errors.is_empty() { u8::from(is_wrong) } else { BAD_INPUT };
    Ok(Outcome { text, errors, code, ..Outcome::default() })
}

/// Why one of two rules for the same kind decides.
fn why_first(overridden: &Overridden) -> &'static str {
    let Overridden { rule, by } = overridden;
    match (by.created(), rule.created()) {
        (one, other) if one != other => "is older",
        _ if by.name() == rule.name() => "is read first",
        _ => "its name comes first",
    }
}

/// Of two rules with the same name, a cluster has only the one that was applied last.
fn mark_same_names(rules: &[Found], checked: &mut [Checked]) {
    for (index, rule) in rules.iter().enumerate() {
        let is_same = |other: &&Found| other.name == rule.name && !rule.name.is_empty();
        if let Some(other) = rules[..index].iter().find(is_same) {
            checked[index].valid = false;
            checked[index]
                .faults
                .push(Said::plain(format!("a rule of this name is in {} too", other.file.display())));
        }
    }
}

impl Checked {
    fn of(found: &Found) -> Self {
        let faults = found.rule.as_ref().err().into_iter().flatten();
        Self {
            file: found.file.display().to_string(),
            name: found.name.clone(),
            kind: found.rule.as_ref().ok().map(|rule| rule.kind().to_string()),
            valid: found.rule.is_ok(),
            faults: faults.map(Said::of).collect(),
        }
    }
}

impl Said {
    fn plain(text: String) -> Self {
        Self { field: None, line: None, column: None, text, hint: None, excerpt: None }
    }

    /// A field that is not as it should be.
    pub(crate) fn of_shape(fault: schema::Fault) -> Self {
        Self { field: Some(fault.field), ..Self::plain(fault.text) }
    }

    pub(super) fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Shape(fault) => Self::of_shape(fault.clone()),
            Fault::Flaw(flaw) => Self::of_flaw(flaw),
        }
    }

    fn of_flaw(flaw: &Flaw) -> Self {
        let (line, column) = match flaw.mistake.place {
            Place::Text { line, column } => (Some(line), Some(column)),
            Place::Line(line) => (Some(line), None),
            Place::Tree(_) => (None, None),
        };
        Self {
            field: Some(flaw.field.clone()),
            line,
            column,
            text: flaw.mistake.text.clone(),
            hint: flaw.mistake.hint.clone(),
            excerpt: line.and_then(|line| flaw.source.lines().nth(line - 1)).map(str::to_owned),
        }
    }
}

fn page(checked: &[Checked], screen: Screen) -> String {
    let mut text = String::new();
    for rule in checked {
        let state = Some(if rule.valid { State::Ready } else { State::Failed });
        let sign = sign(state).to_string();
        let sign = screen.paint(&sign, style(state));
        let kind = rule.kind.as_ref().map(|kind| format!(" for {kind}")).unwrap_or_default();
        let name = if rule.name.is_empty() { "a rule without a name" } else { &rule.name };
        let _ = writeln!(text, "{sign} {}{kind} ({})", printable(name), printable(&rule.file));
        rule.faults.iter().for_each(|said| text.push_str(&paragraph(said)));
    }
    if !checked.is_empty() {
        let wrong = checked.iter().filter(|rule| !rule.valid).count();
        let rules = if checked.len() == 1 { "rule" } else { "rules" };
        let _ = match wrong {
            0 => writeln!(text, "{} {rules}, nothing wrong.", checked.len()),
            wrong => writeln!(text, "{} {rules}, {wrong} wrong.", checked.len()),
        };
    }
    text
}

/// What is wrong, with the line that it is about and a mark at the place.
pub(crate) fn paragraph(said: &Said) -> String {
    let mut text = String::from("    ");
    if let Some(field) = &said.field {
        let _ = write!(text, "{field}");
        if let Some(line) = said.line {
            let _ = write!(text, ", line {line}");
        }
        if let Some(column) = said.column {
            let _ = write!(text, ", column {column}");
        }
        text.push_str(": ");
    }
    let _ = writeln!(text, "{}", printable(&said.text));
    if let Some(excerpt) = &said.excerpt {
        let excerpt: String =
            excerpt.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(text, "      {excerpt}");
        if let Some(column) = said.column {
            let before: String = excerpt.chars().take(column - 1).collect();
            let _ = writeln!(text, "      {:width$}^", "", width = columns(&before));
        }
    }
    if let Some(hint) = &said.hint {
        let _ = writeln!(text, "      {}", printable(hint));
    }
    text
}
