//! The JSON form of groups, shared by `-o json`, probes and the HTTP API.

use std::collections::BTreeMap;

use bellwether_api::{DependencyStatus, ObjectCause, ObjectCounts, RollupHealth};
use bellwether_conditions::Statement;
use bellwether_health::Rule;
use bellwether_model::{ConditionStatus, State};
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::{
    group_clusters::GroupClusters,
    id::NamespacedName,
    view::{Detail, Group, Member, ReportedConditions, StandsFor, StatusSummary},
};

#[derive(Serialize)]
pub struct Reports<'g> {
    applications: Vec<Report<'g>>,
    rollups: Vec<Report<'g>>,
    #[serde(skip_serializing_if = "Vec::is_empty", rename = "bindingPolicies")]
    policies: Vec<Report<'g>>,
    types: Vec<TypeReport<'g>>,
}

/// Counts over the Applications of one type and version.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TypeReport<'g> {
    #[serde(rename = "type")]
    name: &'g str,
    version: &'g str,
    total: usize,
    states: BTreeMap<&'static str, usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report<'g> {
    api_group: &'g str,
    kind: &'g str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'g str,
    name: &'g str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    type_: Option<&'g str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'g str>,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<RollupHealth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'g str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    components_ready: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<u8>,
    object_counts: ObjectCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters: Option<&'g GroupClusters>,
    conditions: Vec<ConditionReport<'g>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    dependencies: &'g [DependencyStatus],
    objects: Vec<MemberReport<'g>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionReport<'g> {
    #[serde(rename = "type")]
    type_: &'g str,
    status: ConditionStatus,
    reason: &'g str,
    message: &'g str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Until when damping holds back a bad status.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_until: Option<String>,
}

/// What identifies a member. The key tells an object from a placeholder.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MemberKey<'g> {
    Name(&'g str),
    Selector(&'g str),
    /// The path of an entry in the spec.
    Entry(&'g str),
}

impl<'g> MemberKey<'g> {
    pub fn new(name: &'g NamespacedName, stands_for: StandsFor) -> Self {
        match stands_for {
            StandsFor::Object => Self::Name(&name.name),
            StandsFor::Selector => Self::Selector(&name.name),
            StandsFor::Entry => Self::Entry(&name.name),
        }
    }
}

#[derive(Serialize)]
struct MemberReport<'g> {
    group: &'g str,
    kind: &'g str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'g str,
    #[serde(flatten)]
    key: MemberKey<'g>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'g str>,
    state: State,
    #[serde(flatten)]
    operator: Option<ConditionsReport>,
    progress: u8,
    reason: &'g str,
    message: &'g str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'g Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'g ObjectCause>,
}

#[derive(Serialize)]
struct ConditionsReport {
    available: ConditionStatus,
    progressing: ConditionStatus,
    degraded: ConditionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    upgradeable: Option<ConditionStatus>,
}

impl<'g> Reports<'g> {
    pub fn of(groups: &'g [Group]) -> Self {
        let mut types: BTreeMap<_, BTreeMap<&'static str, usize>> = BTreeMap::new();
        let (mut applications, mut rollups, mut policies) = (Vec::new(), Vec::new(), Vec::new());
        for group in groups {
            match &group.detail {
                Detail::Application { type_, version, .. } => {
                    let key = (type_.as_deref().unwrap_or_default(), version.as_deref().unwrap_or_default());
                    *types.entry(key).or_default().entry(group.state.name()).or_default() += 1;
                    applications.push(Report::of(group));
                }
                Detail::Rollup { .. } => rollups.push(Report::of(group)),
                Detail::BindingPolicy { .. } => policies.push(Report::of(group)),
            }
        }
        let types = types.into_iter().map(|((name, version), states)| TypeReport {
            name,
            version,
            total: states.values().sum(),
            states,
        });
        Self { applications, rollups, policies, types: types.collect() }
    }
}

impl<'g> Report<'g> {
    pub fn of(group: &'g Group) -> Self {
        let (type_, version, health) = match &group.detail {
            Detail::Application { type_, version, .. } => (type_.as_deref(), version.as_deref(), None),
            Detail::Rollup { health, .. } => (None, None, Some(*health)),
            Detail::BindingPolicy { .. } => (None, None, None),
        };
        Self {
            api_group: &group.kind.group,
            kind: &group.kind.kind,
            namespace: &group.name.namespace,
            name: &group.name.name,
            type_,
            version,
            state: group.state,
            health,
            meaning: group.meaning(),
            since: group.since.map(|since| since.to_string()),
            components_ready: ready(group),
            progress: group.progress,
            object_counts: group.counts,
            clusters: group.clusters.as_ref(),
            conditions: group
                .conditions
                .iter()
                .map(|condition| ConditionReport {
                    held_until: condition.held_until.map(|until| until.to_string()),
                    ..ConditionReport::of(condition.type_, &condition.statement, condition.since)
                })
                .collect(),
            dependencies: group.dependencies(),
            objects: group.members.iter().map(MemberReport::of).collect(),
        }
    }
}

impl<'g> MemberReport<'g> {
    fn of(member: &'g Member) -> Self {
        Self {
            group: &member.kind.group,
            kind: &member.kind.kind,
            namespace: &member.name.namespace,
            key: MemberKey::new(&member.name, member.stands_for),
            cluster: member.cluster.as_deref(),
            state: member.state,
            operator: member.component_conditions.map(
                |ReportedConditions { available, progressing, degraded, upgradeable }| ConditionsReport {
                    available,
                    progressing,
                    degraded,
                    upgradeable,
                },
            ),
            progress: member.progress,
            reason: &member.reason,
            message: &member.message,
            since: member.since.map(|since| since.to_string()),
            rule: member.rule.as_ref(),
            cause: member.cause.as_ref(),
        }
    }
}

impl<'g> ConditionReport<'g> {
    fn of(type_: &'g str, statement: &'g Statement, since: Option<Timestamp>) -> Self {
        Self {
            type_,
            status: statement.status,
            reason: &statement.reason,
            message: &statement.message,
            since: since.map(|since| since.to_string()),
            held_until: None,
        }
    }
}

/// As in `4/5`.
pub fn ready(group: &Group) -> String {
    format!("{}/{}", group.counts.ready, group.counts.total)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryReport<'s> {
    api_group: &'s str,
    kind: &'s str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'s str,
    name: &'s str,
    healthy: bool,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'s str>,
    conditions: Vec<ConditionReport<'s>>,
}

impl Serialize for StatusSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SummaryReport {
            api_group: &self.kind.group,
            kind: &self.kind.kind,
            namespace: &self.name.namespace,
            name: &self.name.name,
            healthy: self.healthy,
            state: self.state,
            since: self.since.map(|since| since.to_string()),
            meaning: self.meaning.as_deref(),
            conditions: self
                .conditions
                .iter()
                .map(|(type_, statement)| ConditionReport::of(type_, statement, None))
                .collect(),
        }
        .serialize(serializer)
    }
}
