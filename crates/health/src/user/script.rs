//! Argo CD's scripts, and what their words mean here.

use bellwether_expr::{Mistake, Place};
use bellwether_lua::{Budget, Failure, Script};
use bellwether_model::{Object, State};
use jiff::Timestamp;

use super::{
    input::{RULE_ERROR, TOO_EXPENSIVE},
    written::Flaw,
};
use crate::{read::Reader, verdict::Verdict};

/// A script that judges.
#[derive(Debug)]
pub(super) struct Judge(Script);

impl Judge {
    pub(super) fn compile(source: &str) -> Result<Self, Vec<Flaw>> {
        Script::compile(source).map(Self).map_err(|mistake| {
            vec![Flaw {
                field: "spec.lua".to_owned(),
                source: source.to_owned(),
                mistake: Mistake { place: Place::Line(mistake.line), text: mistake.text, hint: mistake.hint },
            }]
        })
    }

    /// What it says, in Argo CD's words.
    pub(super) fn run(&self, object: &Object<'_>, now: Timestamp) -> Result<(String, String), String> {
        let outcome =
            self.0.run(object.fields(), now, Budget::default()).map_err(|failure| failure.to_string())?;
        if outcome.status.is_empty() || state_of(&outcome.status).is_some() {
            return Ok((outcome.status, outcome.message));
        }
        // What Argo CD makes of a status that it does not have.
        Ok(("Unknown".to_owned(), "Lua returned an invalid health status".to_owned()))
    }

    pub(super) fn judge(&self, object: &Object<'_>, reader: &Reader<'_>) -> Verdict {
        let outcome = match self.0.run(object.fields(), reader.now(), Budget::default()) {
            Ok(outcome) => outcome,
            Err(failure @ Failure::TooExpensive { .. }) => {
                return Verdict::unknown(
                    TOO_EXPENSIVE,
                    format!("the rule costs too much on this object: {failure}"),
                );
            }
            Err(failure) => return Verdict::unknown(RULE_ERROR, failure.to_string()),
        };
        match state_of(&outcome.status) {
            Some(state) => Verdict::new(state, outcome.status, outcome.message),
            None if outcome.status.is_empty() => {
                Verdict::unknown(RULE_ERROR, "the script returned no status")
            }
            None => Verdict::unknown(
                RULE_ERROR,
                format!("the script returned the status `{}`, which Argo CD does not have", outcome.status),
            ),
        }
    }
}

/// The state that a status of Argo CD is.
fn state_of(status: &str) -> Option<State> {
    Some(match status {
        "Healthy" => State::Ready,
        // What a script calls missing is something that the object waits for: the object itself is there.
        "Progressing" | "Missing" => State::InProgress,
        "Degraded" => State::Failed,
        "Suspended" => State::Suspended,
        "Unknown" => State::Unknown,
        _ => return None,
    })
}
