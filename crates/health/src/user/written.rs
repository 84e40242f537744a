//! A rule as it was written, and what can be wrong with it.

use std::fmt;

use bellwether_expr::{Absence, Mistake, Place, Program, Scope, Type};
use bellwether_model::State;
use jiff::Timestamp;

/// A rule as a user wrote it.
#[derive(Clone, Debug)]
pub struct UserRule {
    /// Its name.
    pub name: String,
    /// When it was made, where that is known. Of two rules for the same kind the older one decides.
    pub created: Option<Timestamp>,
    /// The kind that it is for.
    pub kind: JudgedKind,
    /// The rule itself.
    pub form: Form,
}

/// The kind that a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedKind {
    /// The group; empty for the core group. One that begins with `*` is for every group that ends like it.
    pub group: String,
    /// The version; none for every version.
    pub version: Option<String>,
    /// The kind; none for every kind of the group.
    pub kind: Option<String>,
}

/// The forms that a rule can have.
#[derive(Clone, Debug)]
pub enum Form {
    /// CEL clauses: the first whose question is answered with true decides.
    Clauses(Vec<Clause>),
    /// Flux's three expressions.
    Flux {
        /// True when the object is ready.
        current: String,
        /// True while it is on its way.
        in_progress: Option<String>,
        /// True when it has failed.
        failed: Option<String>,
    },
    /// A health script of Argo CD.
    Lua(String),
}

/// One clause of a rule.
#[derive(Clone, Debug)]
pub struct Clause {
    /// The question, in CEL.
    pub when: String,
    /// The state of the object if it is answered with true.
    pub state: State,
    /// Why, in one word.
    pub reason: Option<String>,
    /// Why, for people: a CEL expression.
    pub message: Option<String>,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The field of the rule: `spec.cel[0].when`.
    pub field: String,
    /// The text of the field.
    pub source: String,
    /// What is wrong with it.
    pub mistake: Mistake,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.mistake)
    }
}

impl JudgedKind {
    /// Whether objects of the kind are judged by the rule, in this version.
    pub(super) fn takes(&self, group: &str, version: &str, kind: &str) -> bool {
        self.takes_some(group, kind) && self.version.as_deref().is_none_or(|own| own == version)
    }

    /// Whether objects of the kind are judged by the rule in some version.
    pub(super) fn takes_some(&self, group: &str, kind: &str) -> bool {
        let takes_group = match self.group.strip_prefix('*') {
            Some(end) => group.ends_with(end),
            None => self.group == group,
        };
        takes_group && self.kind.as_deref().is_none_or(|own| own == kind)
    }

    pub(super) fn is_for_many_groups(&self) -> bool {
        self.group.starts_with('*')
    }
}

/// As people write kinds: `Widget.v1.acme.io`, `*.acme.io`.
impl fmt::Display for JudgedKind {
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

/// An expression of a rule that answers a question.
pub(super) fn question(text: &str, field: &str, absence: Absence) -> Result<Program, Flaw> {
    let flaw = |mistake| Flaw { field: field.to_owned(), source: text.to_owned(), mistake };
    let program = Program::cel(text, &Scope::object(absence)).map_err(flaw)?;
    if !program.can_be(Type::Bool) {
        return Err(flaw(Mistake {
            place: Place::Text { line: 1, column: 1 },
            text: "the expression is never true or false".to_owned(),
            hint: Some("compare it with something: status.phase == 'Up'".to_owned()),
        }));
    }
    Ok(program)
}
