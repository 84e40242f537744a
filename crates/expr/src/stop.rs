//! Why an evaluation ends without a value, and the fuel that it runs on.

use std::fmt;

use crate::{
    path::Path,
    value::{Text, Val},
};

/// What an evaluation gives.
pub(crate) type Outcome<'v> = Result<Val<'v>, Stop<'v>>;

/// Why there is no value.
#[derive(Clone, Debug)]
pub enum Stop<'v> {
    /// A field is not there. What that means is for the caller to say: not yet, null, or an error.
    Missing(Missing<'v>),
    /// The fuel is used up.
    TooExpensive,
    /// The expression cannot be evaluated on these values.
    Error(Box<Error>),
}

/// What is not there.
#[derive(Clone, Debug)]
pub struct Missing<'v>(pub(crate) What<'v>);

#[derive(Clone, Debug)]
pub(crate) enum What<'v> {
    /// A variable, or a field of the object that stands for one: nothing of this path.
    Variable(&'v Path),
    /// A field.
    Key(Text<'v>),
    /// An entry of a list.
    Index(i64),
}

/// In the words of Kubernetes' own CEL.
impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Variable(path) => write!(f, "no such attribute(s): {path}"),
            What::Key(key) => write!(f, "no such key: {key}"),
            What::Index(index) => write!(f, "index out of bounds: {index}"),
        }
    }
}

/// An error, and where in the expression it arose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The place in the expression, as its program knows it.
    pub(crate) at: Option<u32>,
    /// What went wrong.
    pub(crate) text: String,
}

impl<'v> Stop<'v> {
    /// A field is not there.
    pub(crate) fn not_there(field: &'v str) -> Self {
        Self::Missing(Missing(What::Key(Text::Read(field))))
    }

    /// An error whose place is not known here; whoever calls knows it.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Error(Box::new(Error { at: None, text: text.into() }))
    }

    /// The same, at a place, if it had none.
    pub(crate) fn at(mut self, at: u32) -> Self {
        if let Self::Error(error) = &mut self {
            error.at.get_or_insert(at);
        }
        self
    }

    /// Of this and an earlier one, the one to tell: what is wrong before what is not there, and the first before the others.
    pub(crate) fn or_worse(self, earlier: Option<Self>) -> Self {
        match earlier {
            Some(Self::Missing(_)) if matches!(self, Self::Error(_)) => self,
            Some(earlier) => earlier,
            None => self,
        }
    }
}

/// What an evaluation may cost. Each step takes one; work that grows with the values takes more, so that neither time nor
/// memory grows beyond what was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuel(u64);

impl Fuel {
    /// What is given to an expression unless somebody says otherwise: some ten milliseconds of work at most.
    pub const USUAL: Self = Self(1_000_000);

    /// So many steps.
    pub const fn new(steps: u64) -> Self {
        Self(steps)
    }

    /// What is left.
    pub const fn left(self) -> u64 {
        self.0
    }

    /// Takes what so many steps cost.
    #[inline]
    pub(crate) fn burn<'v>(&mut self, steps: usize) -> Result<(), Stop<'v>> {
        let Some(left) = self.0.checked_sub(steps as u64) else {
            self.0 = 0;
            return Err(Stop::TooExpensive);
        };
        self.0 = left;
        Ok(())
    }

    /// Takes what it costs to look through or to make so many bytes.
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
