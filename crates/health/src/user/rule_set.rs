//! All compiled rules: precedence and lookup.

use std::{cmp::Reverse, collections::HashMap, mem, sync::Arc};

use bellwether_model::{Object, Plan};

use super::rule::{CompiledRule, SECRET_FIELDS, is_secret};
use crate::generic;

/// A set of user rules.
///
/// The most specific rule for an object takes precedence: kind and version, kind, group and version, group,
/// group suffix. Of two rules for the same target, the older one takes precedence, then the first by name.
#[derive(Clone, Debug, Default)]
pub struct UserRules {
    /// In order of precedence.
    by_group: HashMap<String, Vec<Arc<CompiledRule>>>,
    by_suffix: Vec<Arc<CompiledRule>>,
    overridden: Vec<Overridden>,
}

/// A rule without effect: another rule for the same target takes precedence.
#[derive(Clone, Debug)]
pub struct Overridden {
    /// The rule without effect.
    pub rule: Arc<CompiledRule>,
    /// The rule that takes precedence.
    pub by: Arc<CompiledRule>,
}

impl UserRules {
    /// The order of the rules does not matter.
    pub fn new(rules: impl IntoIterator<Item = Arc<CompiledRule>>) -> Self {
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_by_cached_key(|rule| precedence(rule));
        let mut set = Self::default();
        for rule in rules {
            let rules = if rule.kind().is_suffix() {
                &mut set.by_suffix
            } else {
                set.by_group.entry(rule.kind().group.clone()).or_default()
            };
            match rules.iter().find(|other| other.kind() == rule.kind()) {
                Some(by) => set.overridden.push(Overridden { by: Arc::clone(by), rule }),
                None => rules.push(rule),
            }
        }
        set
    }

    /// Whether no rule is in the set.
    pub fn is_empty(&self) -> bool {
        self.by_group.is_empty() && self.by_suffix.is_empty()
    }

    /// The rule that evaluates an object.
    pub fn rule_for(&self, object: &Object<'_>) -> Option<&CompiledRule> {
        let (group, version, kind) = (object.group(), object.version(), object.kind());
        self.for_group(group).find(|rule| rule.kind().matches(group, version, kind)).map(|rule| &**rule)
    }

    /// Candidates for the kinds of a group, in order of precedence.
    fn for_group(&self, group: &str) -> impl Iterator<Item = &Arc<CompiledRule>> + Clone {
        self.by_group.get(group).into_iter().flatten().chain(&self.by_suffix)
    }

    /// Whether both sets have the same rules for a kind.
    pub fn same_for(&self, other: &Self, group: &str, kind: &str) -> bool {
        let rules = |rules: &Self| -> Vec<_> {
            let own = rules.for_group(group).filter(|rule| rule.kind().matches_any_version(group, kind));
            own.map(Arc::as_ptr).collect()
        };
        rules(self) == rules(other)
    }

    /// The rules without effect.
    pub fn overridden(&self) -> &[Overridden] {
        &self.overridden
    }

    /// Adds the fields that the rules for a kind read to a plan. No rule reads the data of a Secret.
    pub fn add_fields_for(&self, group: &str, kind: &str, plan: &mut Plan) {
        keep(self.for_group(group).filter(|rule| rule.kind().matches_any_version(group, kind)), plan);
        if is_secret(group, kind) {
            for field in SECRET_FIELDS {
                plan.leave_out(field);
            }
        }
    }

    /// Adds the fields that all rules read to a plan, for objects whose kind is not known before decoding.
    pub fn add_all_fields(&self, plan: &mut Plan) {
        keep(self.by_group.values().flatten().chain(&self.by_suffix), plan);
    }
}

fn keep<'a>(rules: impl Iterator<Item = &'a Arc<CompiledRule>> + Clone, plan: &mut Plan) {
    if rules.clone().any(|rule| rule.reads_everything()) {
        *plan = Plan::whole();
    }
    if rules.clone().any(|rule| rule.may_suspend()) {
        *plan = mem::replace(plan, Plan::nothing()).with_all(generic::READS);
    }
    for path in rules.flat_map(|rule| rule.paths()) {
        plan.keep(&path.fields());
    }
}

/// Sort key: kind, version, age, name.
fn precedence(
    rule: &CompiledRule,
) -> (Reverse<bool>, Reverse<bool>, (bool, Option<jiff::Timestamp>), String) {
    let kind = rule.kind();
    let created = (rule.created().is_none(), rule.created());
    (Reverse(kind.kind.is_some()), Reverse(kind.version.is_some()), created, rule.name().to_owned())
}
