//! User rules before compilation, and their errors.

use std::fmt;

use bellwether_expr::{Absence, CompileError, Place, Program, Scope, Type};
use bellwether_model::State;
use jiff::Timestamp;

/// A rule as a user wrote it.
#[derive(Clone, Debug)]
pub struct UserRule {
    /// The name in verdicts.
    pub name: String,
    /// `creationTimestamp`, if known. Of two rules for the same target, the older one takes precedence.
    pub created: Option<Timestamp>,
    /// The target of the rule.
    pub kind: RuleTarget,
    /// The body of the rule.
    pub form: Form,
}

/// The target of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTarget {
    /// Empty for the core group. `*.example.com` matches every group with that suffix.
    pub group: String,
    /// `None` for every version.
    pub version: Option<String>,
    /// `None` for every kind of the group.
    pub kind: Option<String>,
}

/// The body of a rule.
#[derive(Clone, Debug)]
pub enum Form {
    /// CEL clauses: the first whose `when` is true decides.
    Clauses(Vec<Clause>),
    /// Flux `healthCheckExprs`.
    Flux {
        /// `Ready` if true.
        current: String,
        /// `InProgress` if true. Evaluated first.
        in_progress: Option<String>,
        /// `Failed` if true. Evaluated before `current`.
        failed: Option<String>,
    },
    /// An Argo CD `health.lua`.
    Lua(String),
}

/// A CEL clause.
#[derive(Clone, Debug)]
pub struct Clause {
    /// A CEL expression that evaluates to bool.
    pub when: String,
    /// The state if `when` is true.
    pub state: State,
    /// The reason of the verdict. Defaults to the name of the state.
    pub reason: Option<String>,
    /// A CEL expression that evaluates to a string. Defaults to the text of `when`.
    pub message: Option<String>,
}

/// An error in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFieldError {
    /// Path of the field: `spec.cel[0].when`.
    pub field: String,
    /// The value of the field.
    pub source: String,
    /// Position in the source, error and hint.
    pub compile_error: CompileError,
}

impl fmt::Display for RuleFieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.compile_error)
    }
}

impl RuleTarget {
    pub(super) fn matches(&self, group: &str, version: &str, kind: &str) -> bool {
        self.matches_any_version(group, kind) && self.version.as_deref().is_none_or(|own| own == version)
    }

    pub(super) fn matches_any_version(&self, group: &str, kind: &str) -> bool {
        let matches_group = match self.group.strip_prefix('*') {
            Some(suffix) => group.ends_with(suffix),
            None => self.group == group,
        };
        matches_group && self.kind.as_deref().is_none_or(|own| own == kind)
    }

    pub(super) fn is_suffix(&self) -> bool {
        self.group.starts_with('*')
    }
}

/// `Widget.v1.acme.io`, or `*.acme.io` for all kinds of a group.
impl fmt::Display for RuleTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_deref().unwrap_or("*"))?;
        for part in [self.version.as_deref().unwrap_or_default(), &self.group] {
            if !part.is_empty() {
                write!(f, ".{part}")?;
            }
        }
        Ok(())
    }
}

/// Compiles an expression that must evaluate to bool.
pub(super) fn bool_program(text: &str, field: &str, absence: Absence) -> Result<Program, RuleFieldError> {
    let error =
        |compile_error| RuleFieldError { field: field.to_owned(), source: text.to_owned(), compile_error };
    let program = Program::cel(text, &Scope::object(absence)).map_err(error)?;
    if !program.can_be(Type::Bool) {
        return Err(error(CompileError {
            place: Place::Text { line: 1, column: 1 },
            text: "the expression must evaluate to bool".to_owned(),
            hint: Some("write a comparison, for example status.phase == 'Up'".to_owned()),
        }));
    }
    Ok(program)
}
