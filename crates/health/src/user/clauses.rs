//! CEL clauses: the first whose question is answered with true decides.

use bellwether_expr::{Absence, Fuel, Mistake, Program, Scope, Stop, Val};
use bellwether_model::{Object, State};

use super::{
    input::{Answer, Looked, RULE_ERROR, ask},
    written::{Clause, Flaw, question},
};
use crate::{read::Reader, verdict::Verdict};

/// The clauses of a rule, in their order.
#[derive(Debug)]
pub(super) struct Clauses(Vec<CompiledClause>);

/// A clause that can be used.
#[derive(Debug)]
struct CompiledClause {
    when: Program,
    /// The question as it was written: why the object is in its state, if the rule does not say it otherwise.
    asked: String,
    state: State,
    reason: Option<String>,
    message: Option<Program>,
}

impl Clauses {
    pub(super) fn compile(clauses: Vec<Clause>) -> Result<Self, Vec<Flaw>> {
        let mut ready = Vec::new();
        let mut flaws = Vec::new();
        for (index, clause) in clauses.into_iter().enumerate() {
            match CompiledClause::compile(clause, index) {
                Ok(clause) => ready.push(clause),
                Err(more) => flaws.extend(more),
            }
        }
        if flaws.is_empty() { Ok(Self(ready)) } else { Err(flaws) }
    }

    pub(super) fn programs(&self) -> Vec<&Program> {
        self.0.iter().flat_map(|clause| [Some(&clause.when), clause.message.as_ref()]).flatten().collect()
    }

    pub(super) fn judge(&self, object: &Object<'_>, reader: &Reader<'_>) -> Verdict {
        let input = Looked { object, reader };
        let mut fuel = Fuel::USUAL;
        let mut waits_for = None;
        for clause in &self.0 {
            match ask(&clause.when, &input, &mut fuel) {
                Answer::Yes => return clause.verdict(&input, &mut fuel),
                Answer::No => {}
                Answer::Missing(what) => {
                    waits_for.get_or_insert(what);
                }
                Answer::Failed(verdict) if verdict.reason == RULE_ERROR => {
                    return Verdict::unknown(RULE_ERROR, format!("`{}`: {}", clause.asked, verdict.message));
                }
                Answer::Failed(verdict) => return *verdict,
                Answer::Other(value) => {
                    let what = value.type_of().one();
                    let message = format!("`{}` is {what}, not true or false", clause.asked);
                    return Verdict::unknown(RULE_ERROR, message);
                }
            }
        }
        let waits_for = waits_for.map(|what| format!(" ({what})")).unwrap_or_default();
        Verdict::in_progress("NoClauseTrue", format!("no clause of the rule is true yet{waits_for}"))
    }
}

impl CompiledClause {
    fn compile(clause: Clause, index: usize) -> Result<Self, Vec<Flaw>> {
        let field = |name: &str| format!("spec.cel[{index}].{name}");
        let when = question(&clause.when, &field("when"), Absence::NotYet);
        let message = clause.message.as_deref().map(|text| {
            Program::cel(text, &Scope::object(Absence::NotYet)).map_err(|mistake| Flaw {
                field: field("message"),
                source: text.to_owned(),
                mistake: quoted_or(mistake, text),
            })
        });
        match (when, message.transpose()) {
            (Ok(when), Ok(message)) => {
                Ok(Self { when, asked: clause.when, state: clause.state, reason: clause.reason, message })
            }
            (when, message) => Err([when.err(), message.err()].into_iter().flatten().collect()),
        }
    }

    fn verdict(&self, input: &Looked<'_, '_>, fuel: &mut Fuel) -> Verdict {
        let reason = self.reason.clone().unwrap_or_else(|| self.state.name().to_owned());
        let message = match &self.message {
            None => format!("{} is true", self.asked),
            Some(message) => match message.evaluate(input, fuel) {
                Ok(Val::Text(text)) => text.to_string(),
                Ok(other) => match other.to_value() {
                    Some(value) => value.to_string(),
                    None => format!("the message is {}", other.type_of().one()),
                },
                // The state is known; that its message cannot be told does not change it.
                Err(stop @ Stop::Missing(_)) => {
                    format!("{} is true ({})", self.asked, message.describe(&stop))
                }
                Err(stop) => {
                    format!("{} is true (the message failed: {})", self.asked, message.describe(&stop))
                }
            },
        };
        Verdict::new(self.state, reason, message)
    }
}

/// A message that does not look like an expression was perhaps meant as it stands.
fn quoted_or(mut mistake: Mistake, text: &str) -> Mistake {
    let is_prose = !text.contains(['\'', '"', '(', '+']) && text.contains(' ');
    if is_prose && mistake.hint.is_none() {
        mistake.hint = Some(format!("a message is CEL: text stands in quotes: \"'{text}'\""));
    }
    mistake
}
