//! Errors in a StatusCollector, and the corrected form of what a reader understands and an API server does not.

use bellwether_model::{Object, Plan};
use serde_json::Value as Json;

use crate::{
    collectors::{Written, check},
    rules::Finding,
    schema::{KindSchema, error_in_head},
};

/// What was found in a StatusCollector.
pub(super) struct Linted {
    pub(super) name: String,
    pub(super) findings: Vec<Finding>,
    /// Whether the fields of the spec are at the top of the document.
    pub(super) is_bare: bool,
    /// The object to write instead, if all errors are known to be slips.
    pub(super) corrected: Option<Json>,
}

pub(super) fn lint(object: &Object<'_>, schema: &KindSchema) -> Linted {
    let written = Written::of(object);
    let mut findings: Vec<_> = written.slips.iter().cloned().map(Finding::in_field).collect();
    let others = errors(&written, schema);
    let corrected = (others.is_empty() && !findings.is_empty()).then(|| written.manifest.clone());
    findings.extend(others);
    Linted { name: written.name, findings, is_bare: written.is_bare, corrected }
}

fn errors(written: &Written, schema: &KindSchema) -> Vec<Finding> {
    let json = written.manifest.to_string();
    let errors = match Object::from_json(json.as_bytes(), &Plan::whole()) {
        Ok(object) => schema.check(object.fields()).into_iter().chain(error_in_head(&object)).collect(),
        Err(error) => vec![super::application::error("spec", error.to_string())],
    };
    if errors.is_empty() {
        check(written.spec()).err().unwrap_or_default()
    } else {
        errors.into_iter().map(Finding::in_field).collect()
    }
}
