//! Flux's health expressions, with Flux's own meaning.
//!
//! Nothing is asked of an object whose controller has not seen its newest generation. Then `inProgress` is asked, then
//! `failed`, then `current`; if none is true, the object is on its way. A field that is not there is an error, as it is
//! in Flux: `has()` asks first.

use bellwether_expr::{Absence, Fuel, Program};
use bellwether_model::{Object, State};

use super::{
    input::{Answer, Looked, RULE_ERROR, ask},
    written::{Flaw, question},
};
use crate::{read::Reader, verdict::Verdict};

/// The expressions, in the order in which they are asked.
#[derive(Debug)]
pub(super) struct Flux(Vec<Expression>);

#[derive(Debug)]
struct Expression {
    name: &'static str,
    state: State,
    asked: String,
    program: Program,
}

impl Flux {
    pub(super) fn compile(
        current: &str,
        in_progress: Option<&str>,
        failed: Option<&str>,
    ) -> Result<Self, Vec<Flaw>> {
        let written = [
            ("inProgress", State::InProgress, in_progress),
            ("failed", State::Failed, failed),
            ("current", State::Ready, Some(current)),
        ];
        let mut expressions = Vec::new();
        let mut flaws = Vec::new();
        for (name, state, text) in written {
            let Some(text) = text else { continue };
            match question(text, &format!("spec.expressions.{name}"), Absence::AsInCel) {
                Ok(program) => expressions.push(Expression { name, state, asked: text.to_owned(), program }),
                Err(flaw) => flaws.push(flaw),
            }
        }
        if flaws.is_empty() { Ok(Self(expressions)) } else { Err(flaws) }
    }

    pub(super) fn programs(&self) -> Vec<&Program> {
        self.0.iter().map(|expression| &expression.program).collect()
    }

    pub(super) fn judge(&self, object: &Object<'_>, reader: &Reader<'_>) -> Verdict {
        if let Some(verdict) = not_observed(reader) {
            return verdict;
        }
        let input = Looked { object, reader };
        let mut fuel = Fuel::USUAL;
        for Expression { name, state, asked, program } in &self.0 {
            let error = |why: &str| {
                Verdict::unknown(
                    RULE_ERROR,
                    format!("failed to evaluate the CEL expression '{asked}': {why}"),
                )
            };
            match ask(program, &input, &mut fuel) {
                Answer::Yes => return Verdict::new(*state, state.name(), format!("{name}: {asked} is true")),
                Answer::No => {}
                Answer::Missing(what) => return error(&what),
                Answer::Failed(verdict) if verdict.reason == RULE_ERROR => return error(&verdict.message),
                Answer::Failed(verdict) => return *verdict,
                Answer::Other(value) => {
                    return error(&format!("it is {}, not true or false", value.type_of().one()));
                }
            }
        }
        Verdict::in_progress("NoExpressionTrue", "no expression of the rule is true yet")
    }
}

/// The verdict if the controller says which generation it has seen, and it is another one.
fn not_observed(reader: &Reader<'_>) -> Option<Verdict> {
    let observed = reader.int("status.observedGeneration")?;
    let generation = reader.int("metadata.generation")?;
    (observed != generation).then(|| {
        Verdict::in_progress(
            "LatestGenerationNotObserved",
            format!("the controller has seen generation {observed}, not {generation}"),
        )
    })
}
