//! CEL clauses: the first whose `when` is true decides.

use bellwether_expr::{Absence, CompileError, Fuel, Program, Scope, Val};
use bellwether_model::{Object, State};

use super::{
    input::{ObjectInput, Outcome, evaluate},
    source::{Clause, RuleFieldError, bool_program},
};
use crate::{read::Reader, reasons, verdict::Verdict};

#[derive(Debug)]
pub(super) struct Clauses(Vec<CompiledClause>);

#[derive(Debug)]
struct CompiledClause {
    when: Program,
    /// The text of `when`: the default message.
    source: String,
    state: State,
    reason: Option<String>,
    message: Option<Program>,
}

impl Clauses {
    pub(super) fn compile(clauses: Vec<Clause>) -> Result<Self, Vec<RuleFieldError>> {
        let mut compiled = Vec::new();
        let mut errors = Vec::new();
        for (index, clause) in clauses.into_iter().enumerate() {
            match CompiledClause::compile(clause, index) {
                Ok(clause) => compiled.push(clause),
                Err(more) => errors.extend(more),
            }
        }
        if errors.is_empty() { Ok(Self(compiled)) } else { Err(errors) }
    }

    pub(super) fn programs(&self) -> Vec<&Program> {
        self.0.iter().flat_map(|clause| [Some(&clause.when), clause.message.as_ref()]).flatten().collect()
    }

    pub(super) fn states(&self) -> impl Iterator<Item = State> {
        self.0.iter().map(|clause| clause.state)
    }

    pub(super) fn evaluate(&self, object: &Object<'_>, reader: &Reader<'_>) -> Verdict {
        let input = ObjectInput { object, reader };
        let mut fuel = Fuel::USUAL;
        let mut missing = None;
        for clause in &self.0 {
            match evaluate(&clause.when, &input, &mut fuel) {
                Outcome::True => return clause.verdict(&input, &mut fuel),
                Outcome::False => {}
                Outcome::Missing(what) => {
                    missing.get_or_insert(what);
                }
                Outcome::Error(verdict) if verdict.reason == reasons::RULE_ERROR => {
                    return Verdict::unknown(
                        reasons::RULE_ERROR,
                        format!("`{}`: {}", clause.source, verdict.message),
                    );
                }
                Outcome::Error(verdict) => return *verdict,
                Outcome::Other(value) => {
                    let message = format!("`{}`: expected bool, got {}", clause.source, value.type_of());
                    return Verdict::unknown(reasons::RULE_ERROR, message);
                }
            }
        }
        let missing = missing.map(|what| format!(" ({what})")).unwrap_or_default();
        Verdict::in_progress(reasons::NO_CLAUSE_TRUE, format!("no clause matched{missing}"))
    }
}

impl CompiledClause {
    fn compile(clause: Clause, index: usize) -> Result<Self, Vec<RuleFieldError>> {
        let field = |name: &str| format!("spec.cel[{index}].{name}");
        let when = bool_program(&clause.when, &field("when"), Absence::NotYet);
        let message = clause.message.as_deref().map(|text| {
            Program::cel(text, &Scope::object(Absence::NotYet)).map_err(|compile_error| RuleFieldError {
                field: field("message"),
                source: text.to_owned(),
                compile_error: with_quotes_hint(compile_error, text),
            })
        });
        match (when, message.transpose()) {
            (Ok(when), Ok(message)) => {
                Ok(Self { when, source: clause.when, state: clause.state, reason: clause.reason, message })
            }
            (when, message) => Err([when.err(), message.err()].into_iter().flatten().collect()),
        }
    }

    fn verdict(&self, input: &ObjectInput<'_, '_>, fuel: &mut Fuel) -> Verdict {
        let reason = self.reason.clone().unwrap_or_else(|| self.state.name().to_owned());
        let message = match &self.message {
            None => format!("clause matched: {}", self.source),
            Some(message) => match message.evaluate(input, fuel) {
                Ok(Val::Text(text)) => text.to_string(),
                Ok(other) => match other.to_value() {
                    Some(value) => value.to_string(),
                    None => format!("message: expected string, got {}", other.type_of()),
                },
                // An error in the message does not change the state.
                Err(stop) => {
                    format!(
                        "clause matched: {} (message not evaluated: {})",
                        self.source,
                        message.describe(&stop)
                    )
                }
            },
        };
        Verdict::new(self.state, reason, message)
    }
}

/// Adds a hint if the message looks like plain text instead of CEL.
fn with_quotes_hint(mut compile_error: CompileError, text: &str) -> CompileError {
    let is_prose = !text.contains(['\'', '"', '(', '+']) && text.contains(' ');
    if is_prose && compile_error.hint.is_none() {
        compile_error.hint = Some(format!("plain text needs inner quotes: \"'{text}'\""));
    }
    compile_error
}
