//! Why an evaluation ends without a value, and its cost limit.

use std::fmt;

use crate::{
    path::Path,
    value::{Text, Val},
};

pub(crate) type Outcome<'v> = Result<Val<'v>, Stop<'v>>;

/// Why an evaluation has no value.
#[derive(Clone, Debug)]
pub enum Stop<'v> {
    /// A field or a variable is missing. The caller decides what that means: not yet, null, or an error.
    Missing(Missing<'v>),
    /// The evaluation reached its cost limit.
    TooExpensive,
    /// The expression has no value for these operands, for example `no such overload`.
    Error(Box<Error>),
}

/// The field, entry or variable that is missing.
#[derive(Clone, Debug)]
pub struct Missing<'v>(pub(crate) What<'v>);

#[derive(Clone, Debug)]
pub(crate) enum What<'v> {
    /// A variable, or a field at the top of the object. The path is shown in full.
    Variable(&'v Path),
    Key(Text<'v>),
    Index(i64),
}

/// The texts are those of Kubernetes' own CEL.
impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Variable(path) => write!(f, "no such attribute(s): {path}"),
            What::Key(key) => write!(f, "no such key: {key}"),
            What::Index(index) => write!(f, "index out of bounds: {index}"),
        }
    }
}

/// An evaluation error and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// A byte offset, or the number of a place in a tree.
    pub(crate) at: Option<u32>,
    pub(crate) text: String,
}

impl<'v> Stop<'v> {
    pub(crate) fn not_there(field: &'v str) -> Self {
        Self::Missing(Missing(What::Key(Text::Read(field))))
    }

    /// An error without a place. The evaluator adds that of the operation ([`at`](Self::at)).
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Error(Box::new(Error { at: None, text: text.into() }))
    }

    /// Adds a place, unless the error already has one.
    pub(crate) fn at(mut self, at: u32) -> Self {
        if let Self::Error(error) = &mut self {
            error.at.get_or_insert(at);
        }
        self
    }

    /// The one to report of two: errors win over missing fields, earlier ones over later ones.
    pub(crate) fn or_worse(self, earlier: Option<Self>) -> Self {
        match earlier {
            Some(Self::Missing(_)) if matches!(self, Self::Error(_)) => self,
            Some(earlier) => earlier,
            None => self,
        }
    }
}

/// The cost limit of an evaluation, in steps. Work that grows with the size of values costs more steps, so
/// that neither time nor memory exceeds what the fuel allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuel(u64);

impl Fuel {
    /// The default for one expression: about ten milliseconds of work at most.
    pub const USUAL: Self = Self(1_000_000);

    /// Fuel for this many steps.
    pub const fn new(steps: u64) -> Self {
        Self(steps)
    }

    /// The steps that are left.
    pub const fn left(self) -> u64 {
        self.0
    }

    /// Pays for steps before they are taken.
    #[inline]
    pub(crate) fn burn<'v>(&mut self, steps: usize) -> Result<(), Stop<'v>> {
        let Some(left) = self.0.checked_sub(steps as u64) else {
            self.0 = 0;
            return Err(Stop::TooExpensive);
        };
        self.0 = left;
        Ok(())
    }

    /// Pays for reading or allocating bytes.
    #[inline]
    pub(crate) fn burn_bytes<'v>(&mut self, bytes: usize) -> Result<(), Stop<'v>> {
        self.burn(bytes / 16)
    }
}

impl Default for Fuel {
    fn default() -> Self {
        Self::USUAL
    }
}
