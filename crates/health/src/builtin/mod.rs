//! The rules for kinds that Bellwether knows, in one table.

mod apps;
mod batch;
mod clause;
mod cluster;
mod declarative;
mod gateway;
mod network;
mod operators;
mod own;
mod patience;
mod pod;
mod scaling;
mod storage;

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use bellwether_model::Plan;

use self::clause::{Clause, Otherwise};
use crate::{generic, read::Reader, verdict::Verdict};

/// The rule for a kind.
pub(crate) struct KindRule {
    /// The group and the kind: `apps/Deployment`; the kind alone in the core group. A group that begins with `*.` stands
    /// for all groups with that ending, and the kind `*` for every kind of its group that has no rule of its own.
    pub(crate) id: &'static str,
    /// The rule in words.
    pub(crate) says: &'static str,
    /// The fields that it reads.
    pub(crate) reads: &'static [&'static str],
    /// The rule.
    pub(crate) judge: Judge,
}

/// How a rule is written.
pub(crate) enum Judge {
    /// As a function.
    By(fn(&Reader<'_>) -> Verdict),
    /// As clauses, of which the first that holds decides.
    Clauses(&'static [Clause], Otherwise),
}

impl KindRule {
    pub(crate) fn judge(&self, o: &Reader<'_>) -> Verdict {
        match &self.judge {
            Judge::By(function) => function(o),
            Judge::Clauses(clauses, otherwise) => clause::judge(clauses, *otherwise, o),
        }
    }

    /// The rule in words: its own, or those of its clauses.
    pub(crate) fn in_words(&self) -> String {
        match &self.judge {
            Judge::Clauses(clauses, otherwise) if self.says.is_empty() => {
                clause::in_words(clauses, *otherwise)
            }
            _ => self.says.to_owned(),
        }
    }

    /// What must be kept of an object for this rule.
    pub(crate) fn plan(&self) -> Plan {
        let plan = Plan::identity().with_all(self.reads);
        match &self.judge {
            Judge::By(_) => plan,
            Judge::Clauses(clauses, _) => {
                clauses.iter().fold(plan.with_all(generic::READS), |plan, clause| clause.when.extend(plan))
            }
        }
    }
}

/// The tables of the rules, by subject.
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

/// All rules by group and kind.
static RULES: LazyLock<BTreeMap<(&str, &str), &KindRule>> = LazyLock::new(|| {
    let rules = TABLES.iter().chain(operators::TABLES).flat_map(|table| table.iter());
    rules.map(|rule| (rule.id.split_once('/').unwrap_or(("", rule.id)), rule)).collect()
});

/// The same, to be found quickly: every verdict begins with it.
static INDEX: LazyLock<HashMap<(&str, &str), &KindRule>> =
    LazyLock::new(|| RULES.iter().map(|(key, rule)| (*key, *rule)).collect());

/// The groups by which `*` stands for others, without it.
static ENDINGS: LazyLock<Vec<&str>> =
    LazyLock::new(|| RULES.keys().filter_map(|(group, _)| group.strip_prefix('*')).collect());

/// All rules, by group and kind.
pub(crate) fn all() -> impl Iterator<Item = &'static KindRule> {
    RULES.values().copied()
}

/// The longest name of a group that Kubernetes accepts.
const LONGEST_GROUP: usize = 253;

/// The rule for a kind, if there is one: for the kind itself, for its whole group, or for all groups of an ending.
pub(crate) fn find(group: &str, kind: &str) -> Option<&'static KindRule> {
    let of = |group: &str| INDEX.get(&(group, kind)).or_else(|| INDEX.get(&(group, "*"))).copied();
    of(group).or_else(|| {
        if group.len() > LONGEST_GROUP {
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
    #[case::its_own("apps", "Deployment", Some("apps/Deployment"))]
    #[case::its_own_in_the_core_group("", "Pod", Some("Pod"))]
    #[case::its_own_before_that_of_its_group(
        "monitoring.coreos.com",
        "Probe",
        Some("monitoring.coreos.com/Probe")
    )]
    #[case::its_group("monitoring.coreos.com", "Prometheus", Some("monitoring.coreos.com/*"))]
    #[case::an_ending("rds.aws.crossplane.io", "DBCluster", Some("*.crossplane.io/*"))]
    #[case::a_kind_of_an_ending("aws.upbound.io", "ProviderConfig", Some("*.upbound.io/ProviderConfig"))]
    #[case::a_group_before_an_ending("pkg.crossplane.io", "Provider", Some("pkg.crossplane.io/*"))]
    #[case::another_group("example.com", "Deployment", None)]
    #[case::an_ending_without_a_dot("mycrossplane.io", "Thing", None)]
    fn who_has_which_rule(#[case] group: &str, #[case] kind: &str, #[case] rule: Option<&str>) {
        assert_eq!(find(group, kind).map(|rule| rule.id), rule);
    }
}
