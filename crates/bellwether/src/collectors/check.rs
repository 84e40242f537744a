//! Compiles a StatusCollector, with the place of each error.

use std::collections::BTreeSet;

use bellwether_api::{Expression, StatusCollectorSpec};
use bellwether_expr::{CompileError, Place, Program, Scope};
use bellwether_health::user::RuleFieldError;
use bellwether_model::{Object, Plan};
use bellwether_tables::{Collector, CollectorError};
use serde_json::Value as Json;

use super::{KIND, Written};
use crate::{
    rules::Finding,
    schema::{FieldError, KindSchema, error_in_head},
};

/// A StatusCollector without errors.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) spec: StatusCollectorSpec,
    pub(crate) collector: Collector,
}

/// Checks what the API server and the controller check. Returns all errors, besides the slips.
pub(crate) fn check(written: &Written) -> Result<Checked, Vec<Finding>> {
    let by_schema = schema_errors(written);
    let spec = match serde_json::from_value::<StatusCollectorSpec>(written.spec().clone()) {
        Ok(spec) => spec,
        Err(error) if by_schema.is_empty() => {
            let error = FieldError { field: "spec".to_owned(), message: error.to_string() };
            return Err(vec![Finding::in_field(error)]);
        }
        Err(_) => return Err(by_schema.into_iter().map(Finding::in_field).collect()),
    };
    let errors = match Collector::compile(&spec) {
        Ok(collector) if by_schema.is_empty() => return Ok(Checked { spec, collector }),
        Ok(_) => Vec::new(),
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
    // What the schema reports of a field is not repeated for what is below it.
    let is_at_or_below = |place: &str, field: &str| {
        place.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let is_reported = |error: &CollectorError| {
        places.contains(&error.place)
            || by_schema.iter().any(|reported| is_at_or_below(&error.place, &reported.field))
    };
    let others: Vec<_> = errors.into_iter().filter(|error| !is_reported(error)).collect();
    findings.extend(by_schema.into_iter().map(Finding::in_field));
    findings.extend(
        others
            .into_iter()
            .map(|error| Finding::in_field(FieldError { field: error.place, message: error.text })),
    );
    Err(findings)
}

fn schema_errors(written: &Written) -> Vec<FieldError> {
    let json = written.manifest.to_string();
    let object = match Object::from_json(json.as_bytes(), &Plan::whole()) {
        Ok(object) => object,
        Err(error) => return vec![FieldError { field: "spec".to_owned(), message: error.to_string() }],
    };
    let errors = KindSchema::of(KIND).map(|schema| schema.check(object.fields())).unwrap_or_default();
    errors.into_iter().chain(error_in_head(&object)).collect()
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
