//! Argo CD health scripts.

use bellwether_expr::{CompileError, Place};
use bellwether_lua::{Budget, Failure, Script};
use bellwether_model::{Object, State};
use jiff::Timestamp;

use super::source::RuleFieldError;
use crate::{read::Reader, reasons, verdict::Verdict};

#[derive(Debug)]
pub(super) struct LuaScript {
    script: Script,
    secret_field: Option<&'static str>,
}

impl LuaScript {
    pub(super) fn compile(source: &str) -> Result<Self, Vec<RuleFieldError>> {
        let secret_field = ["data", "stringData"].into_iter().find(|field| names_field(source, field));
        Script::compile(source).map(|script| Self { script, secret_field }).map_err(|compile_error| {
            vec![RuleFieldError {
                field: "spec.lua".to_owned(),
                source: source.to_owned(),
                compile_error: CompileError {
                    place: Place::Line(compile_error.line),
                    text: compile_error.text,
                    hint: compile_error.hint,
                },
            }]
        })
    }

    /// The field with the data of a Secret that the script names, if any.
    pub(super) fn secret_field(&self) -> Option<&'static str> {
        self.secret_field
    }

    /// Status and message as Argo CD reports them.
    pub(super) fn run(&self, object: &Object<'_>, now: Timestamp) -> Result<(String, String), String> {
        let outcome = self
            .script
            .run(object.fields(), now, Budget::default())
            .map_err(|failure| failure.to_string())?;
        if outcome.status.is_empty() || state_of(&outcome.status).is_some() {
            return Ok((outcome.status, outcome.message));
        }
        // Argo CD's own message for an invalid status.
        Ok(("Unknown".to_owned(), "Lua returned an invalid health status".to_owned()))
    }

    pub(super) fn evaluate(&self, object: &Object<'_>, reader: &Reader<'_>) -> Verdict {
        let outcome = match self.script.run(object.fields(), reader.now(), Budget::default()) {
            Ok(outcome) => outcome,
            Err(Failure::TooExpensive { of, .. }) => {
                return Verdict::unknown(
                    reasons::RULE_TOO_EXPENSIVE,
                    format!("Lua script exceeded its {of} limit"),
                );
            }
            Err(failure) => return Verdict::unknown(reasons::RULE_ERROR, failure.to_string()),
        };
        match state_of(&outcome.status) {
            Some(state) => Verdict::new(state, outcome.status, outcome.message),
            None if outcome.status.is_empty() => {
                Verdict::unknown(reasons::RULE_ERROR, "Lua script returned no status")
            }
            None => Verdict::unknown(
                reasons::RULE_ERROR,
                format!(
                    "Lua script returned invalid status {:?}, expected Healthy, Progressing, Degraded, Suspended, Missing \
                     or Unknown",
                    outcome.status
                ),
            ),
        }
    }
}

/// `None` if Argo CD has no such status.
fn state_of(status: &str) -> Option<State> {
    Some(match status {
        "Healthy" => State::Ready,
        // The object itself exists: it waits for something that is missing.
        "Progressing" | "Missing" => State::InProgress,
        "Degraded" => State::Failed,
        "Suspended" => State::Suspended,
        "Unknown" => State::Unknown,
        _ => return None,
    })
}

/// Whether a script has `.field`, `["field"]` or `['field']`.
fn names_field(source: &str, field: &str) -> bool {
    let continues = |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    let dotted = format!(".{field}");
    source.match_indices(&dotted).any(|(at, _)| !continues(&source[at + dotted.len()..]))
        || ['"', '\''].iter().any(|quote| source.contains(&format!("[{quote}{field}{quote}]")))
}
