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
mod pod;
mod scaling;
mod storage;

use std::sync::LazyLock;

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
static RULES: LazyLock<Vec<(&str, &str, &KindRule)>> = LazyLock::new(|| {
    let mut rules: Vec<_> = TABLES
        .iter()
        .chain(operators::TABLES)
        .flat_map(|table| table.iter())
        .map(|rule| {
            let (group, kind) = rule.id.split_once('/').unwrap_or(("", rule.id));
            (group, kind, rule)
        })
        .collect();
    rules.sort_by_key(|(group, kind, _)| (*group, *kind));
    rules
});

/// All rules, by group and kind.
pub(crate) fn all() -> impl Iterator<Item = &'static KindRule> {
    RULES.iter().map(|(_, _, rule)| *rule)
}

/// The longest name of a group that Kubernetes accepts.
const LONGEST_GROUP: usize = 253;

/// The rule for a kind, if there is one: for the kind itself, for its whole group, or for all groups of an ending.
pub(crate) fn find(group: &str, kind: &str) -> Option<&'static KindRule> {
    exactly(group, kind).or_else(|| exactly(group, "*")).or_else(|| {
        if group.len() > LONGEST_GROUP {
            return None;
        }
        // `rds.aws.crossplane.io`, then `aws.crossplane.io`, then `crossplane.io`.
        let endings = group.match_indices('.').map(|(dot, _)| &group[dot..]);
        endings.into_iter().find_map(|ending| of_ending(ending, kind).or_else(|| of_ending(ending, "*")))
    })
}

fn exactly(group: &str, kind: &str) -> Option<&'static KindRule> {
    let found = RULES.binary_search_by_key(&(group, kind), |(group, kind, _)| (*group, *kind)).ok()?;
    Some(RULES[found].2)
}

/// The rule whose group is `*` and this ending.
fn of_ending(ending: &str, kind: &str) -> Option<&'static KindRule> {
    let found =
        RULES.iter().find(|(group, own, _)| group.strip_prefix('*') == Some(ending) && *own == kind)?;
    Some(found.2)
}
