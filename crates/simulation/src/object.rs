//! A stored object, with a cache of what the oracles parse and compute from it.

use std::{
    cell::{OnceCell, RefCell},
    ops::Deref,
    sync::Arc,
};

use bellwether_api::{Application, CelClause, HealthRule, Rollup};
use bellwether_engine::GroupKind;
use bellwether_health::{
    Context, Verdict,
    user::{Clause, CompiledRule, Form, RuleTarget, UserRule, UserRules},
};
use bellwether_memory_cluster as memory;
use bellwether_model::{Object as Read, Plan};
use jiff::Timestamp;
use serde_json::Value;

pub use memory::{identity, merge};

/// An object at one resourceVersion. It never changes, so results are cached.
#[derive(Debug)]
pub struct Object {
    stored: memory::Object,
    application: OnceCell<Option<Box<Application>>>,
    rollup: OnceCell<Option<Box<Rollup>>>,
    health_rule: OnceCell<Option<Arc<CompiledRule>>>,
    verdict: RefCell<Option<CachedVerdict>>,
}

/// A verdict and the inputs that it was computed from.
#[derive(Debug)]
struct CachedVerdict {
    now: Timestamp,
    has_status: Option<bool>,
    rules: Box<[Arc<CompiledRule>]>,
    verdict: Verdict,
}

impl CachedVerdict {
    /// Whether these inputs give the same verdict. A verdict holds until its `later`.
    fn holds(&self, rules: &[Arc<CompiledRule>], now: Timestamp, has_status: Option<bool>) -> bool {
        let are_same = self.rules.len() == rules.len()
            && self.rules.iter().zip(rules).all(|(one, other)| Arc::ptr_eq(one, other));
        are_same
            && self.now <= now
            && self.has_status == has_status
            && self.verdict.later.as_ref().is_none_or(|later| now < later.at)
    }
}

impl memory::Stored for Object {
    fn keep(stored: memory::Object) -> Self {
        let (application, rollup, health_rule) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { stored, application, rollup, health_rule, verdict: RefCell::default() }
    }

    fn object(&self) -> &memory::Object {
        &self.stored
    }
}

impl Deref for Object {
    type Target = memory::Object;

    fn deref(&self) -> &memory::Object {
        &self.stored
    }
}

impl Object {
    pub fn new(value: Value) -> Self {
        memory::Stored::keep(memory::Object::new(value))
    }

    pub fn application(&self) -> Option<&Application> {
        let read = || serde_json::from_value(self.value.clone()).ok();
        self.application
            .get_or_init(|| (self.kind == GroupKind::bellwether("Application")).then(read).flatten())
            .as_deref()
    }

    pub fn rollup(&self) -> Option<&Rollup> {
        let read = || serde_json::from_value(self.value.clone()).ok();
        self.rollup
            .get_or_init(|| (self.kind == GroupKind::bellwether("Rollup")).then(read).flatten())
            .as_deref()
    }

    /// The rule, or what stands for an invalid one. None if the object is not a HealthRule.
    pub fn health_rule(&self) -> Option<&Arc<CompiledRule>> {
        let read = || {
            let rule: HealthRule = serde_json::from_value(self.value.clone()).ok()?;
            let rule = user_rule(&self.name.name, rule);
            let compiled = rule.clone().compile();
            Some(Arc::new(compiled.unwrap_or_else(|errors| CompiledRule::invalid(rule, &errors))))
        };
        let rule = self
            .health_rule
            .get_or_init(|| (self.kind == GroupKind::bellwether("HealthRule")).then(read).flatten());
        rule.as_ref()
    }

    /// The verdict of built-in and generic rules. `has_status`: whether the kind has a status subresource.
    pub fn verdict(&self, now: Timestamp, has_status: Option<bool>) -> Verdict {
        self.verdict_by(&[], now, has_status)
    }

    /// Whether the controllers of the object have observed its latest generation.
    pub fn is_latest_observed(&self, verdict: &Verdict) -> bool {
        match Read::from_json(self.text(), &Plan::whole()) {
            Ok(object) => bellwether_health::generation::is_latest_observed(&object, verdict),
            Err(error) => unreachable!("cannot decode a stored object: {error}"),
        }
    }

    /// The verdict with HealthRules, which take precedence over all other rules.
    pub fn verdict_by(
        &self,
        rules: &[Arc<CompiledRule>],
        now: Timestamp,
        has_status: Option<bool>,
    ) -> Verdict {
        if let Some(cached) = &*self.verdict.borrow()
            && cached.holds(rules, now, has_status)
        {
            return cached.verdict.clone();
        }
        let user_rules = (!rules.is_empty()).then(|| UserRules::new(rules.iter().cloned()));
        let context = Context { has_status, rules: user_rules.as_ref(), ..Context::at(now) };
        let verdict = match Read::from_json(self.text(), &Plan::whole()) {
            Ok(object) => bellwether_health::assess(&object, &context),
            Err(error) => unreachable!("cannot decode a stored object: {error}"),
        };
        let cached = CachedVerdict { now, has_status, rules: rules.into(), verdict: verdict.clone() };
        *self.verdict.borrow_mut() = Some(cached);
        verdict
    }

    /// Whether the object is the health-check Pod of an Application.
    pub fn is_check(&self) -> bool {
        self.kind == GroupKind::pod() && !self.metadata()["labels"]["bellwether.dev/health-check"].is_null()
    }
}

/// Translates a HealthRule without the code of the engine.
fn user_rule(name: &str, rule: HealthRule) -> UserRule {
    let spec = rule.spec;
    let form = if let Some(clauses) = spec.cel {
        let clause =
            |it: CelClause| Clause { when: it.when, state: it.state, reason: it.reason, message: it.message };
        Form::Clauses(clauses.into_iter().map(clause).collect())
    } else if let Some(flux) = spec.expressions {
        Form::Flux { current: flux.current, in_progress: flux.in_progress, failed: flux.failed }
    } else {
        Form::Lua(spec.lua.unwrap_or_default())
    };
    let is_for_all = spec.for_.kind == "*";
    let kind = (!is_for_all).then_some(spec.for_.kind);
    let kind = RuleTarget { group: spec.for_.group, version: spec.for_.version, kind };
    let created = rule.metadata.creation_timestamp.map(|time| time.0);
    UserRule { name: name.to_owned(), created, kind, form }
}
