//! HealthRules: compiles and activates them, and publishes whether each is valid.

use std::sync::Arc;

use bellwether_api::{ConditionStatus, HealthRuleSpec, HealthRuleStatus};
use bellwether_conditions::{Statement, message};
use bellwether_health::user::{Clause, CompiledRule, Form, RuleFieldError, RuleTarget, UserRule, UserRules};
use jiff::Timestamp;

use crate::{
    condition_types::VALID,
    effect::Write,
    event::{Outcome, Unreadable},
    facts::{Facts, OwnManifest, OwnObject, ResourceVersion},
    feeds::Feeds,
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind, NamespacedName},
    publication::{ConditionSet, Publication, Recorded},
    reasons::health_rule as reasons,
    registry::{Published, Registry},
    stats::EngineStats,
    stored_condition::{self, ConditionShape, MESSAGE_BUDGET},
};

const CONDITIONS: ConditionSet = ConditionSet {
    own: &[VALID],
    recorded: &[Recorded::Condition(VALID, Some(ConditionStatus::True))],
    shape: ConditionShape::Generation,
    overwrite_hint: None,
};

#[derive(Debug, Default)]
pub(crate) struct Rules {
    all: Registry<HealthRuleState>,
    /// A rule was added, changed or deleted since the last `activate`, or whether rules can be read.
    changed: bool,
    /// In force while rules cannot be read.
    unreadable: Option<Arc<CompiledRule>>,
}

#[derive(Debug)]
struct HealthRuleState {
    publication: Publication,
    spec: HealthRuleSpec,
    /// Empty if the rule is valid.
    errors: Vec<RuleFieldError>,
    /// This version, or the last valid one that is known.
    valid: Option<ValidVersion>,
    /// Makes its kind Unknown: the rule is invalid, and no valid version for its target is known.
    invalid: Option<Arc<CompiledRule>>,
}

#[derive(Clone, Debug)]
struct ValidVersion {
    spec: HealthRuleSpec,
    compiled: Arc<CompiledRule>,
}

impl Published for HealthRuleState {
    fn publication(&mut self) -> &mut Publication {
        &mut self.publication
    }
}

impl HealthRuleState {
    /// If the rule is invalid, the last valid version stays in force: the one that this process knows, or the one
    /// in the status.
    fn new(
        publication: Publication,
        rule: UserRule,
        written: &OwnManifest<HealthRuleSpec, HealthRuleStatus>,
        before: Option<Self>,
    ) -> Self {
        let spec = written.spec.clone();
        let (valid, errors) = match rule.clone().compile() {
            Ok(compiled) => {
                (Some(ValidVersion { spec: spec.clone(), compiled: Arc::new(compiled) }), Vec::new())
            }
            Err(errors) => {
                let known = before.and_then(|before| before.valid);
                (known.or_else(|| stored_version(&rule.name, written)), errors)
            }
        };
        let has_valid = valid.as_ref().is_some_and(|valid| *valid.compiled.kind() == rule.kind);
        let invalid = (!has_valid).then(|| Arc::new(CompiledRule::invalid(rule, &errors)));
        Self { publication, spec, errors, valid, invalid }
    }

    fn in_force(&self) -> impl Iterator<Item = &Arc<CompiledRule>> {
        self.valid.iter().map(|valid| &valid.compiled).chain(&self.invalid)
    }

    /// For readers that do not know it: a controller that starts, and the terminal.
    fn last_valid_spec(&self) -> Option<Box<HealthRuleSpec>> {
        let valid = self.valid.as_ref().filter(|_| !self.errors.is_empty())?;
        Some(Box::new(valid.spec.clone()))
    }
}

/// The last valid version in the status of an invalid rule.
fn stored_version(
    name: &str,
    written: &OwnManifest<HealthRuleSpec, HealthRuleStatus>,
) -> Option<ValidVersion> {
    let OwnManifest { generation, created, status, .. } = written;
    // A version between the observed one and this one may have been valid.
    let saw_all = status.observed_generation?.saturating_add(1) >= *generation;
    let spec = status.last_valid_spec.as_deref().filter(|_| saw_all)?.clone();
    let rule = UserRule { created: *created, ..user_rule(name, spec.clone()) };
    Some(ValidVersion { compiled: Arc::new(rule.compile().ok()?), spec })
}

impl Rules {
    /// Passes all rules to the store, which relists the affected kinds.
    fn activate(&mut self, cx: &mut GroupingContext<'_>) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        // A change of one rule can override or release any other.
        let all = self.all.ids();
        self.all.mark_all_dirty(all);
        let feed = cx.feeds.of_kind(&Cluster::hub(), &GroupKind::bellwether("HealthRule"));
        let why = feed.and_then(|(_, feed)| feed.unreadable.clone());
        // Without the CRD, there are no rules.
        let why = why.filter(|why| matches!(why, Unreadable::Forbidden { .. } | Unreadable::Failing { .. }));
        let rules = if why.is_some() {
            let unreadable = self.unreadable.get_or_insert_with(|| Arc::new(CompiledRule::unreadable()));
            UserRules::new([Arc::clone(unreadable)])
        } else {
            self.unreadable = None;
            let mut rules: Vec<_> = self.all.iter().flat_map(HealthRuleState::in_force).cloned().collect();
            rules.sort_by(|a, b| a.name().cmp(b.name()));
            UserRules::new(rules)
        };
        cx.feeds.set_rules(Arc::new(rules), why, &mut cx.queue.effects);
        // Groups of the affected kinds are not evaluated before these are relisted.
        cx.queue.kinds_changed(OwnKind::ALL);
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
        self.all.sync();
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
        if let Some(id) = self.all.id(&group)
            && let Some(rule) = self.all.get_mut(id)
            && rule.publication.uid == facts.uid
            && rule.spec == written.spec
        {
            if rule.publication.observe(facts, written.generation, &written.status, cx.queue) {
                self.all.mark_dirty(id);
            }
            return;
        }
        self.changed = true;
        let before = self.all.remove(&group, cx.queue).map(|(_, before)| before);
        let before = before.filter(|before| before.publication.uid == facts.uid);
        let rule = UserRule { created: written.created, ..user_rule(&name.name, written.spec.clone()) };
        let publication = Publication::new(
            group.clone(),
            &CONDITIONS,
            facts,
            (written.generation, written.created),
            &written.status,
        );
        self.all.insert(group, HealthRuleState::new(publication, rule, written, before));
    }

    fn feed_changed(&mut self, feed: FeedId, _readability: bool, cx: &mut GroupingContext<'_>) {
        let rules = cx.feeds.of_kind(&Cluster::hub(), &GroupKind::bellwether("HealthRule"));
        self.changed |= rules.is_some_and(|(rules, _)| rules == feed);
    }

    fn kinds_discovered(&mut self) {
        let all = self.all.ids();
        self.all.mark_all_dirty(all);
    }

    fn version_changed(&mut self, group: &GroupRef, facts: &Facts) {
        self.all.version_changed(group, facts);
    }

    fn remove(&mut self, group: &GroupRef, cx: &mut GroupingContext<'_>) {
        if let Some((_, rule)) = self.all.remove(group, cx.queue) {
            self.changed = true;
            rule.publication.withdraw(cx.queue);
        }
    }

    fn add_to_stats(&self, stats: &mut EngineStats) {
        let valid = self.all.iter().filter(|rule| rule.errors.is_empty()).count();
        stats.health_rules = [valid, self.all.iter().count() - valid];
    }

    fn timer_fired(&mut self, group: &GroupRef) {
        self.all.timer_fired(group);
    }

    fn flush(&mut self, cx: &mut GroupingContext<'_>) {
        if !self.all.is_synced() {
            return;
        }
        self.activate(cx);
        while let Some(id) = self.all.next_dirty(cx.queue) {
            let Some(rule) = self.all.get_mut(id) else { continue };
            let Some(statement) = statement(rule, cx.feeds) else { continue };
            rule.publication.request_write([(VALID, Some(statement.status))], None, false, cx.now, cx.queue);
        }
    }

    fn status(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<Write> {
        let rule = self.all.named(group)?;
        let statement = statement(rule, feeds)?;
        let conditions = rule.publication.conditions([(VALID, Some(statement))], now);
        let status = HealthRuleStatus {
            observed_generation: Some(rule.publication.generation),
            conditions: conditions.into_iter().map(Into::into).collect(),
            last_valid_spec: rule.last_valid_spec(),
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
        self.all.status_written(group, write, outcome, cx)
    }
}

/// Whether a rule is active, and if not, why. `None` if that is not known.
fn statement(rule: &HealthRuleState, feeds: &Feeds) -> Option<Statement> {
    if feeds.rules_unreadable().is_some() {
        return None;
    }
    if !rule.errors.is_empty() {
        return Some(errors(rule));
    }
    let compiled = &rule.valid.as_ref()?.compiled;
    let overridden = feeds.rules().overridden().iter().find(|pair| pair.rule.name() == compiled.name());
    if let Some(other) = overridden.map(|pair| pair.by.name()) {
        let message =
            format!("overridden by HealthRule/{other} for {} (older, or first by name)", compiled.kind());
        return Some(Statement::new(ConditionStatus::False, reasons::OVERRIDDEN, message));
    }
    if let Some(version) = &compiled.kind().version {
        return Some(other_version(rule, version, feeds));
    }
    Some(active())
}

fn active() -> Statement {
    Statement::new(ConditionStatus::True, reasons::ACTIVE, "The rule is active")
}

fn errors(rule: &HealthRuleState) -> Statement {
    const IN_FORCE: &str = "; the last valid version stays in force";
    let (reason, more) = match rule.invalid {
        None => (reasons::LAST_VALID_IN_FORCE, IN_FORCE),
        Some(_) => (reasons::INVALID, ""),
    };
    let items =
        rule.errors.iter().map(|error| (format!("{}:", error.field), error.compile_error.to_string()));
    let text = message(items, rule.errors.len(), MESSAGE_BUDGET - more.len());
    Statement::new(ConditionStatus::False, reason, text + more)
}

/// Of a rule for one version of a kind: objects are read in one version only. A kind that is not served may
/// come later.
fn other_version(rule: &HealthRuleState, version: &str, feeds: &Feeds) -> Statement {
    let Some(kinds) = feeds.served_in_hub() else {
        // Before discovery, what is stored may be right.
        let publication = &rule.publication;
        let stored =
            stored_condition::statement_for_generation(publication.stored(), VALID, publication.generation);
        return stored.unwrap_or_else(active);
    };
    let kind = GroupKind::new(&rule.spec.for_.group, &rule.spec.for_.kind);
    let Some(served) = kinds.get(&kind).filter(|served| *served.version != *version) else {
        return active();
    };
    let is_served = served.versions.iter().any(|other| **other == *version);
    let (reason, message) = if is_served {
        let message = format!("{kind} is read in version {}, which the cluster prefers", served.version);
        (reasons::VERSION_NOT_PREFERRED, message)
    } else {
        let message = format!("{kind} is served in {} only", served.versions.join(", "));
        (reasons::VERSION_NOT_SERVED, message)
    };
    Statement::new(
        ConditionStatus::False,
        reason,
        format!("the rule is for version {version}, but {message}: change or remove spec.for.version"),
    )
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
