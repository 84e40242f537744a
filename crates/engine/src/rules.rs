//! HealthRules: those in force, and what is said of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bellwether_api::{ConditionStatus, HealthRuleSpec, HealthRuleStatus};
use bellwether_conditions::{Statement, message};
use bellwether_health::user::{Clause, CompiledRule, Flaw, Form, JudgedKind, UserRule, UserRules};
use jiff::Timestamp;

use crate::{
    desk::Desk,
    effect::Change,
    event::Outcome,
    facts::{Facts, Version, Written},
    id::{Cluster, Kind, Name, ObjectKey},
    publication::{Manner, Publication},
    said,
};

/// How long the message of a condition may be.
const BUDGET: usize = 1024;

/// The type of the condition that says whether a rule is in force.
const VALID: &str = "Valid";

const MANNER: Manner = Manner {
    own: &[VALID],
    told: &[(VALID, Some(ConditionStatus::True))],
    form: said::Form::Generation,
    contested: false,
};

/// All HealthRules.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    by_name: BTreeMap<Name, Rule>,
    in_force: Arc<UserRules>,
    changed: bool,
    /// Those of which something else may have to be said.
    dirty: BTreeSet<Name>,
}

#[derive(Debug)]
struct Rule {
    publication: Publication,
    spec: HealthRuleSpec,
    compiled: Result<Arc<CompiledRule>, Vec<Flaw>>,
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
        desk: &mut Desk,
    ) {
        if let Some(rule) = self.by_name.get_mut(name)
            && rule.publication.uid == facts.uid
            && rule.spec == written.spec
        {
            if rule.publication.seen(facts, written.generation, &written.status, desk) {
                self.dirty.insert(name.clone());
            }
            return;
        }
        self.changed = true;
        let object = ObjectKey { cluster: Cluster::hub(), kind: Kind::own("HealthRule"), name: name.clone() };
        let rule = UserRule { created: written.created, ..user_rule(&name.name, written.spec.clone()) };
        let rule = Rule {
            publication: Publication::new(object, &MANNER, facts, written.generation, &written.status),
            spec: written.spec.clone(),
            compiled: rule.compile().map(Arc::new),
        };
        self.by_name.insert(name.clone(), rule);
    }

    /// Only the version of a rule has changed.
    pub(crate) fn same(&mut self, name: &Name, facts: &Facts) {
        if let Some(rule) = self.by_name.get_mut(name)
            && rule.publication.seen_again(facts)
        {
            self.dirty.insert(name.clone());
        }
    }

    /// A rule is gone.
    pub(crate) fn remove(&mut self, name: &Name, desk: &mut Desk) {
        if let Some(rule) = self.by_name.remove(name) {
            self.changed = true;
            rule.publication.withdraw(desk);
        }
    }

    /// Puts in force what has changed. Gives back the rules that were in force before, if any are different.
    pub(crate) fn enforce(&mut self) -> Option<Arc<UserRules>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        // Whichever rule is in force, another may go before it now.
        self.dirty.extend(self.by_name.keys().cloned());
        let valid = self.by_name.values().filter_map(|rule| rule.compiled.as_ref().ok()).cloned();
        Some(std::mem::replace(&mut self.in_force, Arc::new(UserRules::new(valid))))
    }

    /// Asks for what is to be said of the rules.
    pub(crate) fn flush(&mut self, now: Timestamp, desk: &mut Desk) {
        while let Some(name) = self.dirty.pop_first() {
            let Some(says) = self.statement(&name) else { continue };
            let Some(rule) = self.by_name.get_mut(&name) else { continue };
            rule.publication.want([(VALID, Some(says.status))], false, now, desk);
        }
    }

    /// What is to be written about a rule.
    pub(crate) fn change(&self, name: &Name, now: Timestamp) -> Option<Change> {
        let (rule, says) = (self.by_name.get(name)?, self.statement(name)?);
        let conditions = rule.publication.conditions([(VALID, Some(says))], now);
        let status = HealthRuleStatus {
            observed_generation: Some(rule.publication.generation),
            conditions: conditions.into_iter().map(Into::into).collect(),
        };
        rule.publication.change(&status)
    }

    /// It is time to look at a rule again.
    pub(crate) fn wake(&mut self, name: &Name) {
        if let Some(rule) = self.by_name.get_mut(name) {
            rule.publication.try_again();
            self.dirty.insert(name.clone());
        }
    }

    /// A write of the status of a rule has ended. Gives back the version that the rule has now, if that is news.
    pub(crate) fn status_written(
        &mut self,
        name: &Name,
        change: &Change,
        outcome: &Outcome,
        now: Timestamp,
        desk: &mut Desk,
    ) -> Option<Version> {
        let publication = &mut self.by_name.get_mut(name)?.publication;
        let version = publication.written(change, outcome, now, desk);
        if publication.is_behind(outcome) {
            self.dirty.insert(name.clone());
        }
        version
    }

    fn statement(&self, name: &Name) -> Option<Statement> {
        let overridden = self.in_force.overridden().iter().find(|pair| *pair.rule.name() == *name.name);
        Some(statement(self.by_name.get(name)?, overridden.map(|pair| pair.by.name())))
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
            let says = format!(
                "rule {other}, which is older or comes first by name, is for {} too",
                compiled.kind()
            );
            Statement::new(ConditionStatus::False, "Overridden", says)
        }
        (Ok(_), None) => Statement::new(ConditionStatus::True, "InForce", "The rule is in force"),
    }
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
