//! The rules in force: which one judges an object.

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use bellwether_model::{Object, Plan};

use super::rule::{CompiledRule, SECRET_FIELDS, is_secret};

/// The rules in force.
///
/// For an object, the rule that speaks of it most precisely decides: one for its kind in its version, then one for its kind,
/// then one for every kind of its group in its version, then one for every kind of its group; those for many groups come
/// last. Of two rules for exactly the same, the older one decides, and of two of the same age the one whose name comes
/// first.
#[derive(Clone, Debug, Default)]
pub struct UserRules {
    /// By group, those that decide first before the others.
    by_group: HashMap<String, Vec<Arc<CompiledRule>>>,
    for_many_groups: Vec<Arc<CompiledRule>>,
    overridden: Vec<Overridden>,
}

/// A rule that never decides, because another one is for exactly the same kind.
#[derive(Clone, Debug)]
pub struct Overridden {
    /// The rule.
    pub rule: Arc<CompiledRule>,
    /// The one that decides.
    pub by: Arc<CompiledRule>,
}

impl UserRules {
    /// These rules, in whatever order.
    pub fn new(rules: impl IntoIterator<Item = Arc<CompiledRule>>) -> Self {
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_by_cached_key(|rule| precedence(rule));
        let mut book = Self::default();
        for rule in rules {
            let rules = if rule.kind().is_for_many_groups() {
                &mut book.for_many_groups
            } else {
                book.by_group.entry(rule.kind().group.clone()).or_default()
            };
            match rules.iter().find(|other| other.kind() == rule.kind()) {
                Some(by) => book.overridden.push(Overridden { by: Arc::clone(by), rule }),
                None => rules.push(rule),
            }
        }
        book
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_group.is_empty() && self.for_many_groups.is_empty()
    }

    /// The rule for an object.
    pub fn rule_for(&self, object: &Object<'_>) -> Option<&CompiledRule> {
        let (group, version, kind) = (object.group(), object.version(), object.kind());
        self.for_group(group).find(|rule| rule.kind().takes(group, version, kind)).map(|rule| &**rule)
    }

    /// The rules that may be for the kinds of a group, those that decide first before the others.
    fn for_group(&self, group: &str) -> impl Iterator<Item = &Arc<CompiledRule>> + Clone {
        self.by_group.get(group).into_iter().flatten().chain(&self.for_many_groups)
    }

    /// Whether the objects of a kind are judged by the same rules here and there.
    pub fn same_for(&self, other: &Self, group: &str, kind: &str) -> bool {
        let rules = |rules: &Self| -> Vec<_> {
            let own = rules.for_group(group).filter(|rule| rule.kind().takes_some(group, kind));
            own.map(Arc::as_ptr).collect()
        };
        rules(self) == rules(other)
    }

    /// The rules that never decide.
    pub fn overridden(&self) -> &[Overridden] {
        &self.overridden
    }

    /// Adds to a plan what the rules for a kind read. What is secret is read by no rule.
    pub fn keep_for(&self, group: &str, kind: &str, plan: &mut Plan) {
        keep(self.for_group(group).filter(|rule| rule.kind().takes_some(group, kind)), plan);
        if is_secret(group, kind) {
            for field in SECRET_FIELDS {
                plan.leave_out(field);
            }
        }
    }

    /// Adds to a plan what all rules read: for objects whose kind is not known before they are read.
    pub fn keep_for_all(&self, plan: &mut Plan) {
        keep(self.by_group.values().flatten().chain(&self.for_many_groups), plan);
    }
}

fn keep<'a>(rules: impl Iterator<Item = &'a Arc<CompiledRule>> + Clone, plan: &mut Plan) {
    if rules.clone().any(|rule| rule.reads_everything()) {
        *plan = Plan::whole();
    }
    for path in rules.flat_map(|rule| rule.paths()) {
        plan.keep(&path.fields());
    }
}

/// What decides between rules, the first before the others.
fn precedence(
    rule: &CompiledRule,
) -> (Reverse<bool>, Reverse<bool>, (bool, Option<jiff::Timestamp>), String) {
    let kind = rule.kind();
    let created = (rule.created().is_none(), rule.created());
    (Reverse(kind.kind.is_some()), Reverse(kind.version.is_some()), created, rule.name().to_owned())
}
