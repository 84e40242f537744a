//! A rule, as it was written and ready to be used.

use std::{borrow::Cow, fmt};

use bellwether_expr::{Absence, Mistake, Path, Place, Program, Scope, Type};
use bellwether_model::{Object, State};
use jiff::Timestamp;

use super::{clauses::Clauses, flux::Flux, script::Judge};
use crate::{
    read::Reader,
    verdict::{Rule, Source, Verdict},
};

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

/// A rule that can be used.
#[derive(Debug)]
pub struct CompiledRule {
    name: String,
    created: Option<Timestamp>,
    kind: JudgedKind,
    id: Rule,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Clauses(Clauses),
    Flux(Flux),
    Script(Judge),
}

impl UserRule {
    /// Makes it ready to be used, or says all that is wrong with it.
    pub fn compile(self) -> Result<CompiledRule, Vec<Flaw>> {
        let body = match self.form {
            Form::Clauses(clauses) => Body::Clauses(Clauses::compile(clauses)?),
            Form::Flux { current, in_progress, failed } => {
                Body::Flux(Flux::compile(&current, in_progress.as_deref(), failed.as_deref())?)
            }
            Form::Lua(script) => Body::Script(Judge::compile(&script)?),
        };
        let rule = CompiledRule {
            id: Rule { source: Source::User, id: self.name.clone().into() },
            name: self.name,
            created: self.created,
            kind: self.kind,
            body,
        };
        match rule.reads_secrets() {
            Some(flaw) => Err(vec![flaw]),
            None => Ok(rule),
        }
    }
}

impl CompiledRule {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it was made, where that is known.
    pub fn created(&self) -> Option<Timestamp> {
        self.created
    }

    /// The kind that it is for.
    pub fn kind(&self) -> &JudgedKind {
        &self.kind
    }

    /// The status and message that its script gives in Argo CD's own words; none if it is no script.
    pub fn run_script(
        &self,
        object: &Object<'_>,
        now: Timestamp,
    ) -> Option<Result<(String, String), String>> {
        match &self.body {
            Body::Script(judge) => Some(judge.run(&without_secrets(object), now)),
            _ => None,
        }
    }

    pub(crate) fn judge(&self, object: &Object<'_>, reader: &Reader<'_>) -> Verdict {
        let object = without_secrets(object);
        let verdict = match &self.body {
            Body::Clauses(clauses) => clauses.judge(&object, reader),
            Body::Flux(flux) => flux.judge(&object, reader),
            Body::Script(judge) => judge.judge(&object, reader),
        };
        verdict.by(&self.id)
    }

    /// Whether it may read any part of an object: scripts, and expressions that look at the object as a whole.
    pub(super) fn reads_everything(&self) -> bool {
        matches!(self.body, Body::Script(_)) || self.paths().any(|path| path.steps().is_empty())
    }

    /// The parts of an object that its expressions read.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let programs = match &self.body {
            Body::Clauses(clauses) => clauses.programs(),
            Body::Flux(flux) => flux.programs(),
            Body::Script(_) => Vec::new(),
        };
        programs.into_iter().flat_map(Program::paths)
    }

    /// Nobody's passwords are read to see whether they are well.
    fn reads_secrets(&self) -> Option<Flaw> {
        let kind = self.kind.kind.as_deref()?;
        let secret = self.paths().find(|path| {
            is_secret(&self.kind.group, kind)
                && path.fields().first().is_some_and(|first| SECRET_FIELDS.contains(first))
        })?;
        Some(Flaw {
            field: "spec".to_owned(),
            source: String::new(),
            mistake: Mistake {
                place: Place::Tree(String::new()),
                text: format!("a rule must not read `{secret}` of Secrets"),
                hint: Some("metadata and type may be read".to_owned()),
            },
        })
    }
}

/// What a rule may see of an object: all of it, but nothing that is secret.
fn without_secrets<'a, 'o>(object: &'a Object<'o>) -> Cow<'a, Object<'o>> {
    if is_secret(object.group(), object.kind()) {
        Cow::Owned(object.without(SECRET_FIELDS))
    } else {
        Cow::Borrowed(object)
    }
}

/// The fields of a Secret that are one.
pub(super) const SECRET_FIELDS: &[&str] = &["data", "stringData"];

pub(super) fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
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
