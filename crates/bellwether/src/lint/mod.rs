//! `bellwether lint`: finds errors in objects of `bellwether.dev`, with line numbers, without a cluster.

mod application;
mod rollup;
mod together;

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, stdin},
    path::PathBuf,
};

use anyhow::Result;
use bellwether_api::GROUP;
use bellwether_input::{DuplicateKey, ObjectLocation};
use bellwether_model::{Object, Plan, State};
use bellwether_terminal::{Screen, printable, sign, style};
use serde::Serialize;

use crate::{
    cli::Lint,
    output::{BAD_INPUT, Outcome},
    rules::{self, Finding, paragraph, printed},
    schema::{self, KindSchema},
};
use together::References;

#[derive(Serialize)]
struct LintedObject {
    file: String,
    line: usize,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    valid: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<LocatedFinding>,
    #[serde(skip)]
    references: References,
}

#[derive(Serialize)]
struct LocatedFinding {
    /// The line in the file.
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The place in the text of the field, if it is an expression or a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<Within>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip)]
    paragraph: String,
}

#[derive(Serialize)]
struct Within {
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

pub(crate) fn run(command: &Lint, screen: Screen) -> Result<Outcome> {
    let inputs = match inputs(command) {
        Ok(inputs) => inputs,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let (mut checked, mut errors, mut others) = (Vec::new(), Vec::new(), 0);
    let check = |object: &Object<'_>, spot: &ObjectLocation<'_>| {
        (object.group() == GROUP).then(|| LintedObject::of(object, spot))
    };
    for entry in bellwether_input::read_with_spots(&inputs, &Plan::whole(), &check) {
        match entry {
            Ok(Some(object)) => checked.push(object),
            Ok(None) => others += 1,
            Err(problem) => errors.push(problem.to_string()),
        }
    }
    let notes = together::check(&mut checked);
    if checked.is_empty() && errors.is_empty() {
        let inputs: Vec<_> = inputs.iter().map(|input| input.display().to_string()).collect();
        errors.push(format!("no objects of {GROUP} in {}", inputs.join(", ")));
    }
    let text = printed(&checked, command.output, || page(&checked, others, screen))?;
    let is_invalid = checked.iter().any(|object| !object.valid);
    let code = if errors.is_empty() { u8::from(is_invalid) } else { BAD_INPUT };
    Ok(Outcome { text, errors, notes, code })
}

fn inputs(command: &Lint) -> Result<Vec<PathBuf>, String> {
    let inputs: Vec<_> = command.named.iter().chain(&command.files).cloned().collect();
    if inputs.is_empty() && stdin().is_terminal() {
        return Err("no input: name files or directories, or pipe objects in, for example \
                    bellwether lint - < application.yaml"
            .to_owned());
    }
    Ok(if inputs.is_empty() { vec![PathBuf::from("-")] } else { inputs })
}

fn findings(object: &Object<'_>) -> Vec<Finding> {
    if object.kind() == "HealthRule" {
        return rules::findings(object);
    }
    let errors = match KindSchema::of(object.kind()) {
        Some(schema) => {
            let errors = schema.check(object.fields()).into_iter().chain(schema::error_in_head(object));
            let errors: Vec<_> = errors.collect();
            match object.kind() {
                "Application" if errors.is_empty() => application::errors(object),
                "Rollup" if errors.is_empty() => rollup::errors(object),
                _ => errors,
            }
        }
        None => vec![application::error("kind", schema::unknown_kind(object.kind()))],
    };
    errors.into_iter().map(Finding::in_field).collect()
}

impl LintedObject {
    fn of(object: &Object<'_>, spot: &ObjectLocation<'_>) -> Self {
        let lines = spot.lines();
        let found = findings(object).into_iter().map(|finding| {
            let line = finding.field.as_deref().map_or_else(|| lines.first(), |field| lines.of(field));
            LocatedFinding::of(finding, line)
        });
        let repeated = lines.repeated().into_iter().map(|DuplicateKey { field, key, line }| {
            let text = format!("duplicate key {key:?}");
            LocatedFinding::of(Finding::in_field(schema::FieldError { field, text }), line)
        });
        let mut faults: Vec<_> = found.chain(repeated).collect();
        faults.sort_by_key(|finding| finding.line);
        Self {
            file: spot.file(),
            line: lines.first(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            valid: faults.is_empty(),
            faults,
            references: References::of(object, &lines),
        }
    }
}

impl LocatedFinding {
    fn of(finding: Finding, line: usize) -> Self {
        let paragraph = paragraph(&finding);
        let within = finding.line.map(|line| Within { line, column: finding.column });
        Self { line, field: finding.field, within, text: finding.text, hint: finding.hint, paragraph }
    }
}

fn page(checked: &[LintedObject], others: usize, screen: Screen) -> String {
    let mut text = String::new();
    for object in checked {
        let state = Some(if object.valid { State::Ready } else { State::Failed });
        let sign = sign(state).to_string();
        let sign = screen.paint(&sign, style(state));
        let name = if object.name.is_empty() { "without a name" } else { &object.name };
        let place = format!("{}:{}", object.file, object.line);
        let _ =
            writeln!(text, "{sign} {} {} ({})", printable(&object.kind), printable(name), printable(&place));
        for finding in &object.faults {
            let place = format!("{}:{}", object.file, finding.line);
            let _ = write!(text, "    {}: {}", printable(&place), finding.paragraph.trim_start());
        }
    }
    if !checked.is_empty() {
        let invalid = checked.iter().filter(|object| !object.valid).count();
        let _ = write!(text, "{}", rules::tally(checked.len(), invalid, "object"));
        if others > 0 {
            let _ = write!(text, " Skipped {} of other kinds.", rules::counted(others, "object"));
        }
        text.push('\n');
    }
    text
}
