//! The variables of an expression, and what a missing field means.

use crate::types::Types;

/// The declared variables of an expression, and what a missing field means.
#[derive(Clone, Debug)]
pub struct Scope {
    pub(crate) variables: Vec<Variable>,
    /// The variable whose fields are names of their own: `status` is `self.status`.
    pub(crate) open: Option<usize>,
    pub(crate) absence: Absence,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: Box<str>,
    /// All fields that the value can have; `None` if it can have any.
    pub(crate) fields: Option<Fields>,
}

/// Names of fields, and the types of their values besides null.
type Fields = &'static [(&'static str, Types)];

/// What a missing field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// As in CEL: an error, except that `has()` tests the last field of its path.
    AsInCel,
    /// Not there yet: an error, but `has()` is false wherever its path ends.
    NotYet,
    /// SQL's `null`, and so is a `null` in the data: nothing equals it. Only `has()` and a comparison with
    /// the literal `null` test for it.
    Null,
}

pub(crate) const SELF: &str = "self";

/// The variables of a row, in their order.
pub(crate) const ROW: [&str; 4] = ["inventory", "obj", "returned", "propagation"];

const FIELDS_IN_ROW: [Option<Fields>; 4] = [
    Some(&[("name", Types::TEXT), ("labels", Types::MAP), ("annotations", Types::MAP), ("uid", Types::TEXT)]),
    None,
    Some(&[("metadata", Types::MAP), ("spec", Types::ANY), ("status", Types::ANY)]),
    Some(&[
        ("found", Types::BOOL),
        ("stale", Types::BOOL),
        ("health", Types::TEXT),
        ("progress", Types::INT),
        ("observedGeneration", Types::INT),
        ("lastReturnedUpdateTimestamp", Types::TEXT),
    ]),
];

/// The top-level fields of most objects, used for hints. Any other field is in scope, too.
pub(crate) const USUAL_FIELDS: &[&str] =
    &["apiVersion", "kind", "metadata", "spec", "status", "data", "self"];

impl Scope {
    /// One object: `self`, and its top-level fields such as `status`.
    pub fn object(absence: Absence) -> Self {
        Self { open: Some(0), ..Self::variables([SELF], absence) }
    }

    /// One row: an object in one of many clusters. Declares `inventory`, `obj`, `returned` and `propagation`.
    /// A missing field is SQL's null.
    pub fn row() -> Self {
        let mut scope = Self::variables(ROW, Absence::Null);
        for (variable, fields) in scope.variables.iter_mut().zip(FIELDS_IN_ROW) {
            variable.fields = fields;
        }
        scope
    }

    /// Named variables.
    pub fn variables<'a>(names: impl IntoIterator<Item = &'a str>, absence: Absence) -> Self {
        let variables = names.into_iter().map(|name| Variable { name: name.into(), fields: None });
        Self { variables: variables.collect(), open: None, absence }
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|own| *own.name == *name)
    }
}
