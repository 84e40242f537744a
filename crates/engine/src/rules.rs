//! HealthRules: those in force, and what is said of each.

use std::{collections::BTreeMap, sync::Arc};

use bellwether_api::{ConditionStatus, HealthRuleSpec, HealthRuleStatus};
use bellwether_conditions::{Statement, message};
use bellwether_health::user::{Clause, CompiledRule, Flaw, Form, JudgedKind, UserRule, UserRules};
use jiff::Timestamp;

use crate::{
    desk::Desk,
    effect::{Change, Effect, Part, Slot, Turn},
    event::Outcome,
    facts::{Facts, Version, Written},
    id::{Cluster, Kind, Name, ObjectKey},
    patch, said,
};

const VALID: &str = "Valid";

/// How long the message of a condition may be.
const BUDGET: usize = 1024;

/// All HealthRules.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    by_name: BTreeMap<Name, Rule>,
    in_force: Arc<UserRules>,
    changed: bool,
    dirty: bool,
}

#[derive(Debug)]
struct Rule {
    uid: Box<str>,
    version: Version,
    generation: i64,
    spec: HealthRuleSpec,
    stored: HealthRuleStatus,
    compiled: Result<Arc<CompiledRule>, Vec<Flaw>>,
    recorded: Option<ConditionStatus>,
}

impl Rules {
    /// The rules in force.
    pub(crate) fn in_force(&self) -> &Arc<UserRules> {
        &self.in_force
    }

    /// A rule is there, or has changed.
    pub(crate) fn set(
        &mut self,
        name: &Name,
        facts: &Facts,
        written: &Written<HealthRuleSpec, HealthRuleStatus>,
        desk: &Desk,
    ) {
        self.dirty = true;
        if let Some(rule) = self.by_name.get_mut(name)
            && rule.uid == facts.uid
            && rule.spec == written.spec
        {
            rule.version = facts.version.clone();
            rule.generation = written.generation;
            rule.stored = written.status.clone();
            if !desk.has_asked(&slot(name)) {
                rule.recorded = said::status(&rule.stored.conditions, VALID);
            }
            return;
        }
        self.changed = true;
        let rule = UserRule { created: written.created, ..user_rule(&name.name, written.spec.clone()) };
        let rule = Rule {
            uid: facts.uid.clone(),
            version: facts.version.clone(),
            generation: written.generation,
            spec: written.spec.clone(),
            stored: written.status.clone(),
            compiled: rule.compile().map(Arc::new),
            recorded: said::status(&written.status.conditions, VALID),
        };
        self.by_name.insert(name.clone(), rule);
    }

    /// Only the version of a rule has changed.
    pub(crate) fn same(&mut self, name: &Name, facts: &Facts) {
        if let Some(rule) = self.by_name.get_mut(name) {
            rule.version = facts.version.clone();
            self.dirty = true;
        }
    }

    /// A rule is gone.
    pub(crate) fn remove(&mut self, name: &Name, desk: &mut Desk) {
        if self.by_name.remove(name).is_some() {
            self.changed = true;
            self.dirty = true;
            desk.want(slot(name), None);
        }
    }

    /// Puts in force what has changed. Gives back the rules that were in force before, if any are different.
    pub(crate) fn enforce(&mut self) -> Option<Arc<UserRules>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let valid = self.by_name.values().filter_map(|rule| rule.compiled.as_ref().ok()).cloned();
        Some(std::mem::replace(&mut self.in_force, Arc::new(UserRules::new(valid))))
    }

    /// Asks for what is to be said of the rules.
    pub(crate) fn flush(&mut self, now: Timestamp, desk: &mut Desk) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let overridden: BTreeMap<_, _> =
            self.in_force.overridden().iter().map(|pair| (pair.rule.name(), pair.by.name())).collect();
        for (name, rule) in &self.by_name {
            let by = overridden.get(&*name.name).copied();
            desk.want(slot(name), publish(rule, statement(rule, by), now));
        }
    }

    /// A write has ended.
    pub(crate) fn written(&mut self, slot: &Slot, change: &Change, outcome: &Outcome, desk: &mut Desk) {
        let (Change::Status { patch, .. }, Some(rule)) = (change, self.by_name.get_mut(&slot.object.name))
        else {
            return;
        };
        self.dirty = true;
        let Outcome::Done(version) = outcome else { return };
        let Some(after) = patch::applied(&rule.stored, patch) else { return };
        let to = said::status(&after.conditions, VALID);
        if let Some(to) = to.filter(|to| rule.recorded != Some(*to))
            && let Some(valid) = after.conditions.iter().find(|condition| condition.type_ == VALID)
        {
            desk.effects.push(Effect::Record(Turn {
                object: slot.object.clone(),
                uid: rule.uid.clone(),
                condition: VALID,
                from: rule.recorded,
                to,
                reason: valid.reason.as_str().into(),
                message: valid.message.as_str().into(),
                good: to == ConditionStatus::True,
            }));
            rule.recorded = Some(to);
        }
        if let Some(version) = version
            && rule.version.is_before(version)
        {
            rule.version = version.clone();
            rule.stored = after;
        }
    }
}

/// Whether a rule is in force, and if not, why.
fn statement(rule: &Rule, overridden_by: Option<&str>) -> Statement {
    match (&rule.compiled, overridden_by) {
        (Err(flaws), _) => {
            let items = flaws.iter().map(|flaw| (format!("{}:", flaw.field), flaw.mistake.to_string()));
            Statement::new(ConditionStatus::False, "Invalid", message(items, flaws.len(), BUDGET))
        }
        (Ok(compiled), Some(other)) => {
            let says = format!("rule {other} is older, and is for {} too", compiled.kind());
            Statement::new(ConditionStatus::False, "Overridden", says)
        }
        (Ok(_), None) => Statement::new(ConditionStatus::True, "InForce", "The rule is in force"),
    }
}

fn publish(rule: &Rule, statement: Statement, now: Timestamp) -> Option<Change> {
    let stored = &rule.stored;
    if bellwether_conditions::is_outrun([stored.observed_generation], Some(rule.generation)) {
        return None;
    }
    let turns = said::status(&stored.conditions, VALID) != Some(statement.status);
    let statements = [(VALID, Some(statement))];
    let wanted = HealthRuleStatus {
        observed_generation: Some(rule.generation),
        conditions: said::conditions(&stored.conditions, &[VALID], statements, rule.generation, now),
    };
    let patch = Arc::new(patch::between(stored, &wanted)?);
    let turns = turns || stored.observed_generation != wanted.observed_generation;
    Some(Change::Status { uid: rule.uid.clone(), version: rule.version.clone(), patch, turns })
}

fn slot(name: &Name) -> Slot {
    let object = ObjectKey { cluster: Cluster::hub(), kind: Kind::own("HealthRule"), name: name.clone() };
    Slot { object, part: Part::Status }
}

/// A rule as the API has it. Exactly one form is given, which its schema sees to.
pub fn user_rule(name: &str, spec: HealthRuleSpec) -> UserRule {
    let form = match (spec.cel, spec.expressions, spec.lua) {
        (Some(clauses), ..) => Form::Clauses(
            clauses
                .into_iter()
                .map(|clause| Clause {
                    when: clause.when,
                    state: clause.state,
                    reason: clause.reason,
                    message: clause.message,
                })
                .collect(),
        ),
        (None, Some(flux), _) => {
            Form::Flux { current: flux.current, in_progress: flux.in_progress, failed: flux.failed }
        }
        (None, None, lua) => Form::Lua(lua.unwrap_or_default()),
    };
    let kind = JudgedKind {
        group: spec.for_.group,
        version: spec.for_.version,
        kind: Some(spec.for_.kind).filter(|kind| kind != "*"),
    };
    UserRule { name: name.to_owned(), created: None, kind, form }
}
