//! The variables of an expression, and what a missing field means.

/// The declared variables of an expression, and what a missing field means.
#[derive(Clone, Debug)]
pub struct Scope {
    pub(crate) variables: Vec<Box<str>>,
    /// The variable whose fields are names of their own: `status` is `self.status`.
    pub(crate) open: Option<usize>,
    pub(crate) absence: Absence,
}

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

/// The top-level fields of most objects, used for hints. Any other field is in scope, too.
pub(crate) const USUAL_FIELDS: &[&str] =
    &["apiVersion", "kind", "metadata", "spec", "status", "data", "self"];

impl Scope {
    /// One object: `self`, and its top-level fields such as `status`.
    pub fn object(absence: Absence) -> Self {
        Self { variables: vec![SELF.into()], open: Some(0), absence }
    }

    /// One row: an object in one of many clusters. Declares `inventory`, `obj`, `returned` and `propagation`.
    /// A missing field is SQL's null.
    pub fn row() -> Self {
        Self::variables(ROW, Absence::Null)
    }

    /// Named variables.
    pub fn variables<'a>(names: impl IntoIterator<Item = &'a str>, absence: Absence) -> Self {
        Self { variables: names.into_iter().map(Into::into).collect(), open: None, absence }
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|own| **own == *name)
    }
}
