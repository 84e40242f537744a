//! Built-in rules, by kind.

mod apps;
mod batch;
mod clause;
mod cluster;
mod declarative;
mod gateway;
mod grace_period;
mod missing_pods;
mod network;
mod operators;
mod own;
mod pod;
mod scaling;
mod storage;

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use bellwether_model::Plan;

use self::clause::{BuiltinClause, Otherwise};
use crate::{generic, read::Reader, verdict::Verdict};

/// A rule for one kind, or for all kinds of a group.
pub(crate) struct KindRule {
    /// `apps/Deployment`; `Pod` in the core group. A group `*.example.com` matches every group with that
    /// suffix. The kind `*` matches every kind of the group without a rule of its own.
    pub(crate) id: &'static str,
    /// The rule for the docs. If empty, generated from the clauses.
    pub(crate) description: &'static str,
    /// The fields that the rule reads.
    pub(crate) reads: &'static [&'static str],
    pub(crate) evaluator: Evaluator,
}

pub(crate) enum Evaluator {
    Function(fn(&Reader<'_>) -> Verdict),
    /// The same, for kinds into whose status other tools write conditions of their own. Only those that the
    /// function reads count.
    OwnConditions(fn(&Reader<'_>) -> Verdict),
    /// The first clause that matches decides.
    Clauses(&'static [BuiltinClause], Otherwise),
}

impl KindRule {
    pub(crate) fn evaluate(&self, o: &Reader<'_>) -> Verdict {
        match &self.evaluator {
            Evaluator::Function(function) | Evaluator::OwnConditions(function) => function(o),
            Evaluator::Clauses(clauses, otherwise) => clause::evaluate(clauses, *otherwise, o),
        }
    }

    /// Whether conditions that the rule does not read count for nothing.
    pub(crate) fn reads_alone(&self) -> bool {
        match self.evaluator {
            Evaluator::Function(_) => {
                !self.reads.iter().any(|field| matches!(*field, "status" | "status.conditions"))
            }
            Evaluator::OwnConditions(_) => true,
            Evaluator::Clauses(..) => false,
        }
    }

    /// For the docs and `bellwether explain`.
    pub(crate) fn description(&self) -> String {
        match &self.evaluator {
            Evaluator::Clauses(clauses, otherwise) if self.description.is_empty() => {
                clause::description(clauses, *otherwise)
            }
            _ => self.description.to_owned(),
        }
    }

    /// The fields to decode for this rule.
    pub(crate) fn plan(&self) -> Plan {
        let plan = Plan::identity().with_all(self.reads);
        match &self.evaluator {
            Evaluator::Function(_) | Evaluator::OwnConditions(_) => plan,
            Evaluator::Clauses(clauses, _) => {
                clauses.iter().fold(plan.with_all(generic::READS), |plan, clause| clause.extend(plan))
            }
        }
    }
}

const TABLES: &[&[KindRule]] = &[
    apps::RULES,
    pod::RULES,
    batch::RULES,
    storage::RULES,
    network::RULES,
    scaling::RULES,
    cluster::RULES,
    gateway::RULES,
    own::RULES,
    declarative::RULES,
];

/// By group and kind, in the order of the docs.
static RULES: LazyLock<BTreeMap<(&str, &str), &KindRule>> = LazyLock::new(|| {
    let rules = TABLES.iter().chain(operators::TABLES).flat_map(|table| table.iter());
    rules.map(|rule| (rule.id.split_once('/').unwrap_or(("", rule.id)), rule)).collect()
});

/// The same for lookup: every evaluation starts with one.
static INDEX: LazyLock<HashMap<(&str, &str), &KindRule>> =
    LazyLock::new(|| RULES.iter().map(|(key, rule)| (*key, *rule)).collect());

/// Suffixes of the groups that begin with `*`, such as `.crossplane.io`.
static ENDINGS: LazyLock<Vec<&str>> =
    LazyLock::new(|| RULES.keys().filter_map(|(group, _)| group.strip_prefix('*')).collect());

/// Sorted by group and kind.
pub(crate) fn all() -> impl Iterator<Item = &'static KindRule> {
    RULES.values().copied()
}

/// In bytes, as Kubernetes validates it. Bounds the lookup by suffix.
const MAX_GROUP: usize = 253;

/// In order of precedence: the rule for the kind, for its group, for a suffix of its group.
pub(crate) fn find(group: &str, kind: &str) -> Option<&'static KindRule> {
    let of = |group: &str| INDEX.get(&(group, kind)).or_else(|| INDEX.get(&(group, "*"))).copied();
    of(group).or_else(|| {
        if group.len() > MAX_GROUP {
            return None;
        }
        // `rds.aws.crossplane.io`, then `aws.crossplane.io`, then `crossplane.io`.
        let mut endings = group.match_indices('.').map(|(dot, _)| &group[dot..]);
        let ending = endings.find(|ending| ENDINGS.contains(ending))?;
        of(&format!("*{ending}"))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn no_kind_has_two_rules() {
        let all: usize = TABLES.iter().chain(operators::TABLES).map(|table| table.len()).sum();
        assert_eq!(all, RULES.len());
    }

    #[rstest]
    #[case::own_rule("apps", "Deployment", Some("apps/Deployment"))]
    #[case::core_group("", "Pod", Some("Pod"))]
    #[case::kind_before_group("monitoring.coreos.com", "Probe", Some("monitoring.coreos.com/Probe"))]
    #[case::group("monitoring.coreos.com", "Prometheus", Some("monitoring.coreos.com/*"))]
    #[case::suffix("rds.aws.crossplane.io", "DBCluster", Some("*.crossplane.io/*"))]
    #[case::kind_with_suffix("aws.upbound.io", "ProviderConfig", Some("*.upbound.io/ProviderConfig"))]
    #[case::group_before_suffix("pkg.crossplane.io", "Provider", Some("pkg.crossplane.io/*"))]
    #[case::another_group("example.com", "Deployment", None)]
    #[case::suffix_without_a_dot("mycrossplane.io", "Thing", None)]
    fn the_most_specific_rule_is_found(#[case] group: &str, #[case] kind: &str, #[case] rule: Option<&str>) {
        assert_eq!(find(group, kind).map(|rule| rule.id), rule);
    }
}
