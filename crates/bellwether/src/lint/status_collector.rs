//! Errors in a StatusCollector, and the corrected form of what a reader understands and an API server does not.

use bellwether_model::Object;
use serde_json::Value as Json;

use crate::{
    collectors::{Written, check},
    rules::Finding,
};

/// What was found in an object.
pub(super) struct Linted {
    pub(super) name: String,
    pub(super) findings: Vec<Finding>,
    /// Whether the fields of the spec are at the top of the document.
    pub(super) is_bare: bool,
    /// The object to write instead, if all errors are known to be slips.
    pub(super) corrected: Option<Json>,
}

pub(super) fn lint(object: &Object<'_>) -> Linted {
    let written = Written::of(object);
    let mut findings: Vec<_> = written.slips.iter().cloned().map(Finding::in_field).collect();
    let others = check(&written).err().unwrap_or_default();
    let corrected = (others.is_empty() && !findings.is_empty()).then(|| written.manifest.clone());
    findings.extend(others);
    Linted { name: written.name, findings, is_bare: written.is_bare, corrected }
}
