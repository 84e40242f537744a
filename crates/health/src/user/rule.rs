//! A rule that is ready to be used.

use std::borrow::Cow;

use bellwether_expr::{Mistake, Path, Place, Program};
use bellwether_model::Object;
use jiff::Timestamp;

use super::{
    clauses::Clauses,
    flux::Flux,
    script::Judge,
    written::{Flaw, Form, JudgedKind, UserRule},
};
use crate::{
    read::Reader,
    verdict::{Rule, Source, Verdict},
};

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
            let fields = path.fields();
            is_secret(&self.kind.group, kind) && SECRET_FIELDS.iter().any(|secret| fields.starts_with(secret))
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

/// The fields of a Secret that are one. Whoever applied it may have left a copy.
pub(super) const SECRET_FIELDS: &[&[&str]] = &[
    &["data"],
    &["stringData"],
    &["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"],
];

pub(super) fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
}
