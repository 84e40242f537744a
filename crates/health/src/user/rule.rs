//! Compiled user rules.

use std::{borrow::Cow, slice};

use bellwether_expr::{CompileError, Path, Place, Program};
use bellwether_model::{LAST_APPLIED, Map, Object, State};
use jiff::Timestamp;

use super::{
    clauses::Clauses,
    flux::Flux,
    script::LuaScript,
    source::{Form, RuleFieldError, RuleTarget, UserRule},
};
use crate::{
    generic::suspension,
    read::Reader,
    reasons,
    verdict::{Rule, Source, Verdict},
};

/// A user rule, checked and compiled.
#[derive(Debug)]
pub struct CompiledRule {
    name: String,
    created: Option<Timestamp>,
    kind: RuleTarget,
    id: Rule,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Clauses(Clauses),
    Flux(Flux),
    Script(LuaScript),
    /// The rule cannot be evaluated: the reason and message of every verdict.
    Unusable(&'static str, String),
}

impl UserRule {
    /// Returns all errors of the rule, not only the first.
    pub fn compile(self) -> Result<CompiledRule, Vec<RuleFieldError>> {
        let body = match self.form {
            Form::Clauses(clauses) => Body::Clauses(Clauses::compile(clauses)?),
            Form::Flux { current, in_progress, failed } => {
                Body::Flux(Flux::compile(&current, in_progress.as_deref(), failed.as_deref())?)
            }
            Form::Lua(script) => Body::Script(LuaScript::compile(&script)?),
        };
        let rule = CompiledRule {
            id: Rule { source: Source::User, id: self.name.clone().into() },
            name: self.name,
            created: self.created,
            kind: self.kind,
            body,
        };
        match rule.secret_access() {
            Some(error) => Err(vec![error]),
            None => Ok(rule),
        }
    }
}

impl CompiledRule {
    /// Stands for an invalid rule: every object of its target is Unknown `RuleInvalid`, so that no weaker rule
    /// takes its place.
    pub fn invalid(rule: UserRule, errors: &[RuleFieldError]) -> Self {
        let error = errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        let message = format!("HealthRule/{} is invalid{error}", rule.name);
        Self {
            id: Rule { source: Source::User, id: rule.name.clone().into() },
            name: rule.name,
            created: rule.created,
            kind: rule.kind,
            body: Body::Unusable(reasons::RULE_INVALID, message),
        }
    }

    /// Stands for rules that cannot be read: every object is Unknown `RulesUnreadable`.
    pub fn unreadable() -> Self {
        Self {
            id: Rule { source: Source::User, id: "unreadable".into() },
            name: String::new(),
            created: None,
            kind: RuleTarget { group: "*".to_owned(), version: None, kind: None },
            body: Body::Unusable(reasons::RULES_UNREADABLE, "cannot read HealthRules".to_owned()),
        }
    }

    /// The name in verdicts.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `creationTimestamp`, if known.
    pub fn created(&self) -> Option<Timestamp> {
        self.created
    }

    /// The target of the rule.
    pub fn kind(&self) -> &RuleTarget {
        &self.kind
    }

    /// Status and message as Argo CD would report them. `None` if the rule is not a script.
    pub fn run_script(
        &self,
        object: &Object<'_>,
        now: Timestamp,
    ) -> Option<Result<(String, String), String>> {
        match &self.body {
            Body::Script(script) => Some(script.run(&without_secrets(object), now)),
            _ => None,
        }
    }

    pub(crate) fn evaluate(&self, object: &Object<'_>, reader: &Reader<'_>) -> Verdict {
        let object = without_secrets(object);
        let verdict = match &self.body {
            Body::Clauses(clauses) => clauses.evaluate(&object, reader),
            Body::Flux(flux) => flux.evaluate(&object, reader),
            Body::Script(script) => script.evaluate(&object, reader),
            Body::Unusable(reason, message) => Verdict::unknown(*reason, message.clone()),
        };
        // The generic rules know what else to read: the rule says nothing of what runs.
        let blocks = verdict.state == State::Suspended && suspension::is_unavailable(reader, &verdict, false);
        verdict.blocks(blocks).by(&self.id)
    }

    /// Whether a verdict can be `Suspended`.
    pub(super) fn may_suspend(&self) -> bool {
        match &self.body {
            Body::Clauses(clauses) => clauses.states().any(|state| state == State::Suspended),
            Body::Script(_) => true,
            Body::Flux(_) | Body::Unusable(..) => false,
        }
    }

    /// Scripts, and expressions that use the object as a whole, may read any field.
    pub(super) fn reads_everything(&self) -> bool {
        matches!(self.body, Body::Script(_)) || self.paths().any(|path| path.steps().is_empty())
    }

    /// The fields that the expressions read.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let programs = match &self.body {
            Body::Clauses(clauses) => clauses.programs(),
            Body::Flux(flux) => flux.programs(),
            Body::Script(_) | Body::Unusable(..) => Vec::new(),
        };
        programs.into_iter().flat_map(Program::paths)
    }

    /// The error if the rule is for Secrets and an expression reads more than their metadata, or if it is for
    /// them by `*` and an expression reads their data.
    fn secret_access(&self) -> Option<RuleFieldError> {
        if !self.kind.matches_any_version("", "Secret") {
            return None;
        }
        let is_for_secrets = self.kind.group.is_empty() && self.kind.kind.is_some();
        let reads_content = |path: &&Path| {
            let fields = path.fields();
            let is_metadata = fields.first().is_some_and(|field| SECRET_METADATA.contains(field));
            (is_for_secrets && !is_metadata) || SECRET_FIELDS.iter().any(|secret| fields.starts_with(secret))
        };
        let secret = match &self.body {
            // A script for all kinds may mean the data of a ConfigMap. That of Secrets is hidden from it.
            Body::Script(script) => self.kind.kind.as_ref().and(script.secret_field())?.to_owned(),
            _ => self.paths().find(reads_content)?.to_string(),
        };
        let hint = match &self.kind.kind {
            Some(_) => "use only metadata",
            None => "name a kind other than Secret in spec.for, or use only other fields",
        };
        Some(RuleFieldError {
            field: "spec".to_owned(),
            source: String::new(),
            compile_error: CompileError {
                place: Place::Tree(String::new()),
                text: format!("cannot read `{secret}` of a Secret"),
                hint: Some(hint.to_owned()),
            },
        })
    }
}

/// Hides all of a Secret but its metadata from rules. From a cluster nothing else is read, so the verdict is
/// the same for a Secret from a file.
fn without_secrets<'a, 'o>(object: &'a Object<'o>) -> Cow<'a, Object<'o>> {
    if !is_secret(object.group(), object.kind()) {
        return Cow::Borrowed(object);
    }
    let fields = object.fields().as_map().into_iter().flat_map(Map::iter).map(|(field, _)| field);
    let content: Vec<_> = fields.filter(|field| !SECRET_METADATA.contains(field)).collect();
    let content: Vec<_> = content.iter().map(slice::from_ref).collect();
    Cow::Owned(object.without(&content).without(SECRET_FIELDS))
}

/// The fields of a Secret that are read.
const SECRET_METADATA: &[&str] = &["apiVersion", "kind", "metadata"];

/// Fields with the data of a Secret.
pub(super) const SECRET_FIELDS: &[&[&str]] =
    &[&["data"], &["stringData"], &["metadata", "annotations", LAST_APPLIED]];

pub(super) fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
}
