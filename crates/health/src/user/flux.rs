//! Flux health expressions, with the semantics of Flux.
//!
//! An object with another `observedGeneration` is `InProgress` before any evaluation. Then `inProgress`,
//! `failed` and `current` are evaluated in this order; if none is true, the object is `InProgress`. An absent
//! field is an error, as in Flux: guard it with `has()`.

use bellwether_expr::{Absence, Fuel, Program};
use bellwether_model::{Object, State};

use super::{
    input::{ObjectInput, Outcome, evaluate},
    source::{RuleFieldError, bool_program},
};
use crate::{read::Reader, reasons, verdict::Verdict};

/// In order of evaluation.
#[derive(Debug)]
pub(super) struct Flux(Vec<Expression>);

#[derive(Debug)]
struct Expression {
    name: &'static str,
    state: State,
    source: String,
    program: Program,
}

impl Flux {
    pub(super) fn compile(
        current: &str,
        in_progress: Option<&str>,
        failed: Option<&str>,
    ) -> Result<Self, Vec<RuleFieldError>> {
        let fields = [
            ("inProgress", State::InProgress, in_progress),
            ("failed", State::Failed, failed),
            ("current", State::Ready, Some(current)),
        ];
        let mut expressions = Vec::new();
        let mut errors = Vec::new();
        for (name, state, text) in fields {
            let Some(text) = text else { continue };
            match bool_program(text, &format!("spec.expressions.{name}"), Absence::AsInCel) {
                Ok(program) => expressions.push(Expression { name, state, source: text.to_owned(), program }),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(Self(expressions)) } else { Err(errors) }
    }

    pub(super) fn programs(&self) -> Vec<&Program> {
        self.0.iter().map(|expression| &expression.program).collect()
    }

    pub(super) fn evaluate(&self, object: &Object<'_>, reader: &Reader<'_>) -> Verdict {
        if let Some(verdict) = not_observed(reader) {
            return verdict;
        }
        let input = ObjectInput { object, reader };
        let mut fuel = Fuel::USUAL;
        for Expression { name, state, source, program } in &self.0 {
            // The error messages are those of Flux.
            let error = |why: &str| {
                Verdict::unknown(
                    reasons::RULE_ERROR,
                    format!("failed to evaluate the CEL expression '{source}': {why}"),
                )
            };
            match evaluate(program, &input, &mut fuel) {
                Outcome::True => {
                    return Verdict::new(*state, state.name(), format!("{name}: {source}"));
                }
                Outcome::False => {}
                Outcome::Missing(what) => return error(&what),
                Outcome::Error(verdict) if verdict.reason == reasons::RULE_ERROR => {
                    return error(&verdict.message);
                }
                Outcome::Error(verdict) => return *verdict,
                Outcome::Other(_) => {
                    let message = format!("failed to evaluate CEL expression as boolean: '{source}'");
                    return Verdict::unknown(reasons::RULE_ERROR, message);
                }
            }
        }
        Verdict::in_progress(reasons::NO_EXPRESSION_TRUE, "no expression matched")
    }
}

/// The verdict if `observedGeneration` is set and differs. Flux compares for equality.
fn not_observed(reader: &Reader<'_>) -> Option<Verdict> {
    let observed = reader.int("status.observedGeneration")?;
    let generation = reader.int("metadata.generation")?;
    (observed != generation).then(|| {
        Verdict::in_progress(
            reasons::LATEST_GENERATION_NOT_OBSERVED,
            format!("observed generation {observed}, want {generation}"),
        )
    })
}
