//! `bellwether lint`: finds errors in objects of `bellwether.dev`, with line numbers, without a cluster.

mod application;
mod binding_policy;
mod rollup;
mod status_collector;
mod together;

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, stdin},
    path::PathBuf,
};

use anyhow::Result;
use bellwether_api::GROUP;
use bellwether_input::{DuplicateKey, ObjectLocation};
use bellwether_inspect::shell::program;
use bellwether_model::{Object, Plan, State};
use bellwether_terminal::{Screen, first_few, printable, sign, style};
use serde::Serialize;
use serde_json::Value as Json;

use crate::{
    assess::NO_OBJECTS,
    cli::Lint,
    collectors::{KIND, kind_of_bare, manifest, of_kubestellar},
    output::{BAD_INPUT, Outcome},
    rules::{self, Finding, or_unnamed, place, printed},
    schema::{self, FieldError, KindSchema},
};
use status_collector::Linted;
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
    errors: Vec<Finding>,
    /// The object to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    corrected: Option<Json>,
    #[serde(skip)]
    references: References,
}

pub(crate) fn run(command: &Lint, screen: Screen) -> Result<Outcome> {
    let inputs = match inputs(command) {
        Ok(inputs) => inputs,
        Err(error) => return Ok(Outcome::bad_input(error)),
    };
    let (mut checked, mut errors, mut others, mut foreign) = (Vec::new(), Vec::new(), 0, Vec::new());
    let check = |object: &Object<'_>, location: &ObjectLocation<'_>| {
        if object.group() == GROUP {
            return Ok(Ok(LintedObject::of(object, location)));
        }
        // One of ours may have disappeared in it.
        location.duplicate_key().map_or_else(|| Ok(Err(of_kubestellar(object, location))), Err)
    };
    for entry in bellwether_input::read_with_bare_documents(&inputs, &Plan::whole(), &check, &kind_of_bare) {
        match entry.flatten() {
            Ok(Ok(object)) => checked.push(object),
            Ok(Err(of_kubestellar)) => {
                others += 1;
                foreign.extend(of_kubestellar);
            }
            Err(problem) => errors.push(problem.to_string()),
        }
    }
    let mut notes = together::check(&mut checked);
    notes.extend(first_few(foreign));
    if checked.is_empty() && errors.is_empty() && others > 0 {
        let inputs: Vec<_> = inputs.iter().map(|input| input.display().to_string()).collect();
        errors.push(format!("no objects of {GROUP} in {}", inputs.join(", ")));
    }
    let text = printed(&checked, command.output, || {
        if checked.is_empty() && errors.is_empty() {
            NO_OBJECTS.to_owned()
        } else {
            page(&checked, others, screen)
        }
    })?;
    let is_invalid = checked.iter().any(|object| !object.valid);
    let code = if errors.is_empty() { u8::from(is_invalid) } else { BAD_INPUT };
    Ok(Outcome { text, errors, notes, code, ..Outcome::default() })
}

fn inputs(command: &Lint) -> Result<Vec<PathBuf>, String> {
    let inputs: Vec<_> = command.named.iter().chain(&command.files).cloned().collect();
    if inputs.is_empty() && stdin().is_terminal() {
        return Err(format!(
            "no input. Give files or directories, or pipe objects in: helm template chart/ | {} lint -",
            program()
        ));
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
                "BindingPolicy" if errors.is_empty() => binding_policy::errors(object),
                "Rollup" if errors.is_empty() => rollup::errors(object),
                _ => errors,
            }
        }
        None => vec![application::error("kind", schema::unknown_kind(object.kind()))],
    };
    errors.into_iter().map(Finding::in_field).collect()
}

impl LintedObject {
    fn of(object: &Object<'_>, location: &ObjectLocation<'_>) -> Self {
        let lines = location.lines();
        let Linted { name, findings, is_bare, corrected } = if object.kind() == KIND {
            status_collector::lint(object)
        } else {
            let (name, findings) = (object.name().to_owned(), findings(object));
            Linted { name, findings, is_bare: false, corrected: None }
        };
        let found = findings.into_iter().map(|finding| match finding.field() {
            Some(field) if is_bare => {
                let line = lines.of(field.strip_prefix("spec.").unwrap_or(field));
                finding.at(Some(line))
            }
            _ => finding.located(&lines),
        });
        let repeated = lines.repeated().into_iter().map(|DuplicateKey { field, key, line }| {
            let message = format!("duplicate key {key:?}");
            Finding::in_field(FieldError { field, message }).at(Some(line))
        });
        let mut errors: Vec<_> = found.chain(repeated).collect();
        errors.sort_by_key(|finding| finding.line);
        Self {
            file: location.file(),
            line: lines.first(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name,
            valid: errors.is_empty(),
            errors,
            corrected,
            references: References::of(object, &lines),
        }
    }
}

fn page(checked: &[LintedObject], others: usize, screen: Screen) -> String {
    let mut text = String::new();
    for object in checked {
        let state = Some(if object.valid { State::Ready } else { State::Failed });
        let sign = sign(state).to_string();
        let sign = screen.paint(&sign, style(state));
        let object_name = format!("{} {}", object.kind, or_unnamed(&object.name));
        let place = place(&object.file, Some(object.line));
        let _ = writeln!(text, "{sign} {} ({})", printable(&object_name), printable(&place));
        object.errors.iter().for_each(|finding| text.push_str(&finding.paragraph(&object.file)));
        if let Some(yaml) = object.corrected.as_ref().and_then(|corrected| manifest(corrected).ok()) {
            text.push_str("    Corrected:\n");
            for line in yaml.lines() {
                let _ = writeln!(text, "      {}", printable(line));
            }
        }
    }
    if !checked.is_empty() {
        let invalid = checked.iter().filter(|object| !object.valid).count();
        let _ = write!(text, "{}", rules::summary(checked.len(), invalid, "object"));
        if others > 0 {
            let kinds = if others == 1 { "another kind" } else { "other kinds" };
            let _ = write!(text, " Skipped {} of {kinds}.", rules::counted(others, "object"));
        }
        text.push('\n');
    }
    text
}
