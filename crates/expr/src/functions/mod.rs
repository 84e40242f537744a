//! The functions of CEL, and those that Kubernetes adds: a table of names, the types that they take, and what they do.

mod clocks;
mod convert;
mod encoders;
mod format;
mod lists;
pub(crate) mod maths;
mod optionals;
mod patterns;
#[cfg(test)]
mod properties;
mod quantities;
mod regexes;
mod sets;
mod strings;
#[cfg(test)]
mod testing;
mod time;

pub(crate) use convert::text_of;
pub(crate) use lists::sort_by;
pub(crate) use regexes::Pattern;

use crate::{
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

/// A function for arguments of certain types. One name may have several.
#[derive(Debug)]
pub(crate) struct Function {
    /// Its name; with what is before the dot for the functions of a library: `math.greatest`.
    pub(crate) name: &'static str,
    /// How it is called.
    pub(crate) style: Style,
    /// The types of its arguments; what it is called on comes first.
    pub(crate) takes: &'static [Types],
    /// The types of what it gives.
    pub(crate) gives: Types,
    /// What it does. There are as many arguments as `takes` has; their types may be others.
    pub(crate) run: for<'v> fn(&mut Fuel, &[Val<'v>]) -> Outcome<'v>,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `size(x)`, `math.abs(x)`.
    Global,
    /// `x.size()`.
    Method,
}

impl Function {
    const fn global(
        name: &'static str,
        takes: &'static [Types],
        gives: Types,
        run: for<'v> fn(&mut Fuel, &[Val<'v>]) -> Outcome<'v>,
    ) -> Self {
        Self { name, style: Style::Global, takes, gives, run }
    }

    const fn method(
        name: &'static str,
        takes: &'static [Types],
        gives: Types,
        run: for<'v> fn(&mut Fuel, &[Val<'v>]) -> Outcome<'v>,
    ) -> Self {
        Self { name, style: Style::Method, takes, gives, run }
    }
}

/// The most arguments that a function takes, what it is called on included.
pub(crate) const MOST_ARGUMENTS: usize = 4;

/// All functions.
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    [
        clocks::FUNCTIONS,
        convert::FUNCTIONS,
        encoders::FUNCTIONS,
        format::FUNCTIONS,
        lists::FUNCTIONS,
        maths::FUNCTIONS,
        optionals::FUNCTIONS,
        quantities::FUNCTIONS,
        regexes::FUNCTIONS,
        sets::FUNCTIONS,
        strings::FUNCTIONS,
        time::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// The first of the functions that takes these arguments.
pub(crate) fn suited<'f>(candidates: &[&'f Function], arguments: &[Val<'_>]) -> Option<&'f Function> {
    let fits = |(takes, argument): (&Types, &Val<'_>)| takes.meets(Types::of(argument.type_of()));
    candidates.iter().copied().find(|function| function.takes.iter().zip(arguments).all(fits))
}

/// The arguments have types that the function does not take.
pub(crate) fn unsuited<'v>(name: &str, arguments: &[Val<'v>]) -> Stop<'v> {
    let types: Vec<_> = arguments.iter().map(|argument| argument.type_of().to_string()).collect();
    Stop::error(format!("no such overload: {name}({})", types.join(", ")))
}

/// The text cannot be read as what it should be. Long text is not repeated in full.
fn unreadable<'v>(text: &str, wanted: &str) -> Stop<'v> {
    const SHOWN: usize = 40;
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    Stop::error(format!("'{shown}{more}' is not {wanted}"))
}
