//! The functions of CEL and of Kubernetes' extensions, in one table of overloads.

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

/// One overload of a function.
#[derive(Debug)]
pub(crate) struct Function {
    /// The name, with its namespace: `math.greatest`.
    pub(crate) name: &'static str,
    pub(crate) style: Style,
    /// The types of the arguments. For a method, the receiver comes first.
    pub(crate) takes: &'static [Types],
    /// The types of the result.
    pub(crate) gives: Types,
    /// The implementation. It gets as many arguments as `takes` has, but must check their types.
    pub(crate) run: for<'v> fn(&mut Fuel, &[Val<'v>]) -> Outcome<'v>,
}

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

/// The most arguments of any function, the receiver included.
pub(crate) const MAX_ARGUMENTS: usize = 4;

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

/// The first overload that takes these arguments.
pub(crate) fn find_overload<'f>(candidates: &[&'f Function], arguments: &[Val<'_>]) -> Option<&'f Function> {
    let fits = |(takes, argument): (&Types, &Val<'_>)| takes.meets(Types::of(argument.type_of()));
    candidates.iter().copied().find(|function| function.takes.iter().zip(arguments).all(fits))
}

pub(crate) fn no_such_overload<'v>(name: &str, arguments: &[Val<'v>]) -> Stop<'v> {
    let types: Vec<_> = arguments.iter().map(|argument| argument.type_of().to_string()).collect();
    Stop::error(format!("no such overload: {name}({})", types.join(", ")))
}

/// The error for a string that does not parse. Long strings are truncated.
fn invalid_text<'v>(text: &str, wanted: &str) -> Stop<'v> {
    const SHOWN: usize = 40;
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    Stop::error(format!("'{shown}{more}' is not {wanted}"))
}
