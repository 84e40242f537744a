//! HealthRules: compiles and activates them, and publishes whether each is valid.

use std::sync::Arc;

use bellwether_api::{ConditionStatus, HealthRuleSpec, HealthRuleStatus};
use bellwether_conditions::{Statement, message};
use bellwether_health::user::{Clause, CompiledRule, Form, RuleFieldError, RuleTarget, UserRule, UserRules};
use jiff::Timestamp;

use crate::{
    condition_types::VALID,
    effect::Write,
    event::Outcome,
    facts::{Facts, OwnObject, ResourceVersion},
    feeds::Feeds,
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    grouping_context::GroupingContext,
    id::NamespacedName,
    publication::{ConditionSet, Publication},
    reasons::health_rule as reasons,
    registry::{Published, Registry},
    stored_condition,
};

/// In bytes.
const MESSAGE_BUDGET: usize = 1024;

const CONDITIONS: ConditionSet = ConditionSet {
    own: &[VALID],
    recorded: &[(VALID, Some(ConditionStatus::True))],
    shape: stored_condition::ConditionShape::Generation,
    overwrite_hint: None,
};

#[derive(Debug, Default)]
pub(crate) struct Rules {
    rules: Registry<HealthRuleState>,
    /// A rule was added, changed or deleted since the last `activate`.
    changed: bool,
}

#[derive(Debug)]
struct HealthRuleState {
    publication: Publication,
    spec: HealthRuleSpec,
    compiled: Result<Arc<CompiledRule>, Vec<RuleFieldError>>,
}

impl Published for HealthRuleState {
    fn publication(&mut self) -> &mut Publication {
        &mut self.publication
    }
}

impl Rules {
    /// Passes all valid rules to the store, which relists the affected kinds.
    fn activate(&mut self, cx: &mut GroupingContext<'_>) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        // A change of one rule can override or release any other.
        let all = self.rules.ids();
        self.rules.mark_all_dirty(all);
        let mut valid: Vec<_> = self.rules.iter().filter_map(|rule| rule.compiled.clone().ok()).collect();
        valid.sort_by(|a, b| a.name().cmp(b.name()));
        cx.feeds.set_rules(Arc::new(UserRules::new(valid)), &mut cx.queue.effects);
    }
}

impl Grouping for Rules {
    fn handles(&self, kind: OwnKind) -> bool {
        kind == OwnKind::HealthRule
    }

    fn required_kinds(&self) -> &'static [OwnKind] {
        &[OwnKind::HealthRule]
    }

    fn sync(&mut self, cx: &mut GroupingContext<'_>) {
        self.rules.sync();
        self.activate(cx);
    }

    fn group_applied(
        &mut self,
        name: &NamespacedName,
        facts: &Facts,
        own: &OwnObject,
        cx: &mut GroupingContext<'_>,
    ) {
        let OwnObject::HealthRule(written) = own else { return };
        let group = GroupRef::new(OwnKind::HealthRule, name.clone());
        if let Some(id) = self.rules.id(&group)
            && let Some(rule) = self.rules.get_mut(id)
            && rule.publication.uid == facts.uid
            && rule.spec == written.spec
        {
            if rule.publication.observe(facts, written.generation, &written.status, cx.queue) {
                self.rules.mark_dirty(id);
            }
            return;
        }
        self.changed = true;
        self.rules.remove(&group, cx.queue);
        let rule = UserRule { created: written.created, ..user_rule(&name.name, written.spec.clone()) };
        let rule = HealthRuleState {
            publication: Publication::new(
                group.clone(),
                &CONDITIONS,
                facts,
                written.generation,
                &written.status,
            ),
            spec: written.spec.clone(),
            compiled: rule.compile().map(Arc::new),
        };
        self.rules.insert(group, rule);
    }

    fn version_changed(&mut self, group: &GroupRef, facts: &Facts) {
        self.rules.version_changed(group, facts);
    }

    fn remove(&mut self, group: &GroupRef, cx: &mut GroupingContext<'_>) {
        if let Some((_, rule)) = self.rules.remove(group, cx.queue) {
            self.changed = true;
            rule.publication.withdraw(cx.queue);
        }
    }

    fn timer_fired(&mut self, group: &GroupRef) {
        self.rules.timer_fired(group);
    }

    fn flush(&mut self, cx: &mut GroupingContext<'_>) {
        if !self.rules.is_synced() {
            return;
        }
        self.activate(cx);
        while let Some(id) = self.rules.next_dirty(cx.queue) {
            let Some(rule) = self.rules.get_mut(id) else { continue };
            let statement = statement(rule, cx.feeds.rules());
            rule.publication.request_write([(VALID, Some(statement.status))], false, cx.now, cx.queue);
        }
    }

    fn status(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<Write> {
        let rule = self.rules.named(group)?;
        let statement = statement(rule, feeds.rules());
        let conditions = rule.publication.conditions([(VALID, Some(statement))], now);
        let status = HealthRuleStatus {
            observed_generation: Some(rule.publication.generation),
            conditions: conditions.into_iter().map(Into::into).collect(),
        };
        rule.publication.render_write(&status)
    }

    fn status_written(
        &mut self,
        group: &GroupRef,
        write: &Write,
        outcome: &Outcome,
        cx: &mut GroupingContext<'_>,
    ) -> Option<ResourceVersion> {
        self.rules.status_written(group, write, outcome, cx)
    }
}

/// Whether a rule is active, and if not, why.
fn statement(rule: &HealthRuleState, active: &UserRules) -> Statement {
    let name = &rule.publication.group().name.name;
    let overridden = active.overridden().iter().find(|pair| *pair.rule.name() == **name);
    match (&rule.compiled, overridden.map(|pair| pair.by.name())) {
        (Err(errors), _) => {
            let items =
                errors.iter().map(|error| (format!("{}:", error.field), error.compile_error.to_string()));
            Statement::new(
                ConditionStatus::False,
                reasons::INVALID,
                message(items, errors.len(), MESSAGE_BUDGET),
            )
        }
        (Ok(compiled), Some(other)) => {
            let message =
                format!("overridden by HealthRule/{other} for {} (older, or first by name)", compiled.kind());
            Statement::new(ConditionStatus::False, reasons::OVERRIDDEN, message)
        }
        (Ok(_), None) => Statement::new(ConditionStatus::True, reasons::ACTIVE, "The rule is active"),
    }
}

/// Converts a HealthRule. The schema of the CRD ensures that exactly one form is set.
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
    let kind = RuleTarget {
        group: spec.for_.group,
        version: spec.for_.version,
        kind: Some(spec.for_.kind).filter(|kind| kind != "*"),
    };
    UserRule { name: name.to_owned(), created: None, kind, form }
}
