//! Compiles a StatusCollector, with the place of each error.

use std::collections::BTreeSet;

use bellwether_api::{Expression, StatusCollectorSpec};
use bellwether_expr::{CompileError, Place, Program, Scope};
use bellwether_health::user::RuleFieldError;
use bellwether_tables::Collector;
use serde_json::Value as Json;

use crate::{rules::Finding, schema::FieldError};

/// A StatusCollector without errors.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) spec: StatusCollectorSpec,
    pub(crate) collector: Collector,
}

/// Compiles a spec. Returns all errors.
pub(crate) fn check(spec: &Json) -> Result<Checked, Vec<Finding>> {
    let spec: StatusCollectorSpec = serde_json::from_value(spec.clone()).map_err(|error| {
        vec![Finding::in_field(FieldError { field: "spec".to_owned(), message: error.to_string() })]
    })?;
    let errors = match Collector::compile(&spec) {
        Ok(collector) => return Ok(Checked { spec, collector }),
        Err(errors) => errors,
    };
    let (mut findings, mut places) = (Vec::new(), BTreeSet::new());
    for (field, expression) in expressions(&spec) {
        let Err(error) = compile(expression) else { continue };
        let place = match &error.place {
            Place::Tree(path) if path.is_empty() => field.clone(),
            Place::Tree(path) => format!("{field}.{path}"),
            place => format!("{field}: {place}"),
        };
        let in_tree = matches!(error.place, Place::Tree(_));
        let source = expression.0.as_str().unwrap_or_default().to_owned();
        let field = if in_tree { place.clone() } else { field };
        places.insert(place);
        findings.push(Finding::in_source(RuleFieldError { field, source, compile_error: error }));
    }
    // What is wrong besides the expressions.
    let others = errors.into_iter().filter(|error| !places.contains(&error.place));
    findings.extend(others.map(|error| Finding::in_field(FieldError { field: error.place, message: error.text })));
    Err(findings)
}

fn compile(expression: &Expression) -> Result<Program, CompileError> {
    match &expression.0 {
        Json::String(text) => Program::cel(text, &Scope::row()),
        tree => Program::tree(tree, &Scope::row()),
    }
}

fn expressions(spec: &StatusCollectorSpec) -> Vec<(String, &Expression)> {
    let mut found = Vec::new();
    found.extend(spec.filter.as_ref().map(|filter| ("spec.filter".to_owned(), filter)));
    for (list, entries) in [("groupBy", &spec.group_by), ("select", &spec.select)] {
        for (index, entry) in entries.iter().enumerate() {
            found.extend(entry.def.as_ref().map(|def| (format!("spec.{list}[{index}].def"), def)));
        }
    }
    for (index, entry) in spec.combined_fields.iter().enumerate() {
        let place = format!("spec.combinedFields[{index}].subject");
        found.extend(entry.subject.as_ref().map(|subject| (place, subject)));
    }
    found
}
