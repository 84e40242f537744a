//! Regular expressions.

use std::fmt::Display;

use regex::{Regex, RegexBuilder};

use super::{
    Function, no_such_overload,
    patterns::{Translated, translate},
    strings::cut,
};
use crate::{
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

const T: Types = Types::TEXT;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("matches", &[T, T], Types::BOOL, matches),
    Function::method("matches", &[T, T], Types::BOOL, matches),
    Function::method("find", &[T, T], T, find),
    Function::method("findAll", &[T, T], Types::LIST, find_all),
    Function::method("findAll", &[T, T, Types::INT], Types::LIST, find_all),
];

/// The limit for a compiled pattern, and again for its lazy DFA, in bytes.
const LARGEST: usize = 1 << 20;

/// The limit for the weight. A heavier pattern takes long even to be rejected by the engine.
const HEAVIEST: usize = 20_000;

const TOO_LARGE: &str = "the regular expression is too large";

/// A compiled pattern and its cost.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    weight: usize,
}

impl Pattern {
    /// Compiles a pattern, or describes the error in one sentence.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        translate(text).map_err(invalid).and_then(Self::compile)
    }

    fn compile(translated: Translated) -> Result<Self, String> {
        let Translated { text, weight } = translated;
        if weight > HEAVIEST {
            return Err(TOO_LARGE.to_owned());
        }
        let built = RegexBuilder::new(&text).size_limit(LARGEST).dfa_size_limit(LARGEST).build();
        built.map(|regex| Self { regex, weight }).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => TOO_LARGE.to_owned(),
            // The engine points into the translated pattern, which the user did not write. Only its last
            // line, the cause, is of use.
            other => {
                let drawing = other.to_string();
                let last = drawing.lines().last().unwrap_or_default();
                invalid(last.strip_prefix("error: ").unwrap_or(last))
            }
        })
    }

    /// Whether any part of the string matches.
    pub(crate) fn is_match<'v>(&self, fuel: &mut Fuel, text: &str) -> Result<bool, Stop<'v>> {
        self.charge(fuel, text)?;
        Ok(self.regex.is_match(text))
    }

    /// Pays for a match. At worst, the engine tries every state of the pattern for each byte.
    fn charge<'v>(&self, fuel: &mut Fuel, text: &str) -> Result<(), Stop<'v>> {
        fuel.burn(1 + text.len().saturating_mul(self.weight.max(1)) / 8)
    }
}

fn invalid(why: impl Display) -> String {
    format!("invalid regular expression: {why}")
}

fn matches<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text), Val::Text(wanted)] = arguments else {
        return Err(no_such_overload("matches", arguments));
    };
    compiled(fuel, wanted)?.is_match(fuel, text).map(Val::Bool)
}

/// The first match; an empty string if there is none.
fn find<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text), Val::Text(wanted)] = arguments else {
        return Err(no_such_overload("find", arguments));
    };
    let pattern = compiled(fuel, wanted)?;
    pattern.charge(fuel, text)?;
    Ok(cut(text, pattern.regex.find(text).map_or(0..0, |found| found.range())))
}

/// All matches, or as many as the limit allows.
fn find_all<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let (text, wanted, limit) = match arguments {
        [Val::Text(text), Val::Text(wanted)] => (text, wanted, -1),
        [Val::Text(text), Val::Text(wanted), Val::Int(limit)] => (text, wanted, *limit),
        _ => return Err(no_such_overload("findAll", arguments)),
    };
    let pattern = compiled(fuel, wanted)?;
    pattern.charge(fuel, text)?;
    let mut parts = Vec::new();
    for found in pattern.regex.find_iter(text).take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        // The search continues behind each match, and may read the rest again.
        pattern.charge(fuel, &text[found.start()..])?;
        parts.push(cut(text, found.range()));
    }
    Ok(Val::list(parts))
}

/// Compiles a pattern that is not constant. This costs more than most matches.
fn compiled<'v>(fuel: &mut Fuel, text: &str) -> Result<Pattern, Stop<'v>> {
    fuel.burn_bytes(text.len().saturating_mul(64))?;
    let translated = translate(text).map_err(|why| Stop::error(invalid(why)))?;
    fuel.burn(1000_usize.saturating_add(translated.weight.saturating_mul(64)))?;
    Pattern::compile(translated).map_err(Stop::error)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Pattern;
    use crate::{functions::testing::evaluated, stop::Fuel};

    #[rstest]
    #[case("'hello'.matches('l+')", "true")]
    #[case("'hello'.matches('^l+$')", "false")]
    #[case("matches('hello', '')", "true")]
    #[case("'hello'.matches(dyn('^h.*o$'))", "true")]
    #[case("'a\\nb'.matches('a.b')", "false")]
    #[case("'ABC'.matches(dyn('(?i)abc'))", "true")]
    #[case("'abc'.matches(dyn('(?=a)'))", "error: invalid regular expression: unsupported Perl syntax '(?='")]
    #[case("'abc'.matches(dyn('('))", "error: invalid regular expression: unclosed group")]
    #[case("'abc 123'.find('[0-9]+')", "'123'")]
    #[case("'abc'.find('[0-9]+')", "''")]
    #[case("'123 abc 456'.findAll('[0-9]+')", "['123', '456']")]
    #[case("'123 abc 456'.findAll('[0-9]+', 1)", "['123']")]
    #[case("'123 abc 456'.findAll('[0-9]+', 0)", "[]")]
    #[case("'123 abc 456'.findAll('[0-9]+', -1)", "['123', '456']")]
    #[case("'日本'.findAll('')", "['', '', '']")]
    #[case("'abc'.find('(')", "error: invalid regular expression: unclosed group")]
    #[case(
        "'abc'.findAll('x{1001}')",
        "error: invalid regular expression: invalid repeat count {1001}, the limit is 1000"
    )]
    #[case("'abc'.find('((a{100}){100}){100}')", "too expensive")]
    fn functions(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    /// The cost grows with the length of the string and with the size of the pattern.
    #[rstest]
    #[case("[a-z]+", 10_000, true)]
    #[case("(.{1,30}){1,30}z", 50, true)]
    #[case("(.{1,30}){1,30}z", 10_000, false)]
    fn cost_of_a_match(#[case] text: &str, #[case] length: usize, #[case] affordable: bool) {
        let pattern = Pattern::new(text).unwrap();
        let outcome = pattern.is_match(&mut Fuel::default(), &"a".repeat(length));
        assert_eq!(outcome.is_ok(), affordable);
    }

    #[rstest]
    #[case("[", "invalid regular expression: missing closing ]")]
    #[case("a)", "invalid regular expression: unopened group")]
    #[case("*", "invalid regular expression: repetition operator missing expression")]
    #[case(r"\p{Nowhere}", "invalid regular expression: Unicode property not found")]
    #[case("((a{100}){100}){100}", "the regular expression is too large")]
    fn mistakes(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(Pattern::new(text).map(|_| ()).unwrap_err(), expected);
    }
}
