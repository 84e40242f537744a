//! What is in scope of an expression, and what it means that something is not there.

/// The variables of an expression, and what a missing field means to it.
#[derive(Clone, Debug)]
pub struct Scope {
    pub(crate) variables: Vec<Box<str>>,
    /// The variable whose fields are in scope by themselves.
    pub(crate) open: Option<usize>,
    pub(crate) absence: Absence,
}

/// What a missing field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// What it means in CEL: an error, except that `has()` asks whether the last field of a path is there.
    AsInCel,
    /// It is not there yet: as an error, but `has()` is false wherever its path ends.
    NotYet,
    /// It is `null` as SQL knows it, and so is a `null` in the data: nothing equals it, and only `has()` and comparing with
    /// the word `null` ask for it.
    Null,
}

/// The name by which an object knows itself.
pub(crate) const SELF: &str = "self";

/// The variables of a row, in their order.
pub(crate) const ROW: [&str; 4] = ["inventory", "obj", "returned", "propagation"];

/// What most objects have at their top. Others are in scope too; these are for guessing what was meant.
pub(crate) const USUAL_FIELDS: &[&str] =
    &["apiVersion", "kind", "metadata", "spec", "status", "data", "self"];

impl Scope {
    /// One object: `self`, and its fields by themselves, such as `status`.
    pub fn object(absence: Absence) -> Self {
        Self { variables: vec![SELF.into()], open: Some(0), absence }
    }

    /// One row of the table of an object in many clusters: `inventory`, `obj`, `returned` and `propagation`. What is not
    /// there is null, as in SQL.
    pub fn row() -> Self {
        Self::variables(ROW, Absence::Null)
    }

    /// Named variables.
    pub fn variables<'a>(names: impl IntoIterator<Item = &'a str>, absence: Absence) -> Self {
        Self { variables: names.into_iter().map(Into::into).collect(), open: None, absence }
    }

    /// Which variable has this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|own| **own == *name)
    }
}
