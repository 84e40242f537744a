//! Answers queries about BindingPolicies: a group whose members are the bound objects, in each of their clusters.

use std::collections::HashMap;

use bellwether_api::{ConditionStatus, State};
use bellwether_conditions::{Statement, message};
use bellwether_model::text::with_reason;

use crate::{
    condition_types::COLLECTORS_AVAILABLE,
    feeds::Feeds,
    group_clusters::{ClusterReport, ClusterReports},
    group_ref::OwnKind,
    group_state,
    id::{Cluster, GroupKind, NamespacedName},
    members::{MemberEntry, MemberId, Members},
    reasons::application,
    registry::GroupId,
    stored_condition::MESSAGE_BUDGET,
    view::{Condition, Detail, Group, GroupRelation, Member, Relation, StandsFor},
};

use super::{
    CombinedStatuses,
    binding::Binding,
    bound_object::{BoundObject, BoundState},
    can_read,
    policy::{BoundKind, PolicyState},
};

/// Worst first. As for Applications, a suspended member does not keep the group from being ready.
const BLOCKING: [State; 5] =
    [State::Failed, State::Missing, State::InProgress, State::Terminating, State::Unknown];

impl CombinedStatuses {
    /// In no particular order.
    pub(super) fn views(&self, feeds: &Feeds) -> Vec<Group> {
        self.policies.ids().into_iter().filter_map(|id| self.view(id, feeds)).collect()
    }

    /// `None` while the clusters, or the objects that the policy can bind, are not known.
    pub(super) fn view(&self, id: GroupId, feeds: &Feeds) -> Option<Group> {
        let policy =
            self.policies.get(id).filter(|policy| self.is_inventory_listed && policy.is_known(feeds))?;
        let (kind, name) = (OwnKind::BindingPolicy.kind(), &policy.publication.group().name.name);
        let name = NamespacedName::new("", name);
        let (mut entries, mut members, mut clusters) =
            (Members::default(), HashMap::new(), ClusterReports::default());
        for cluster in &policy.clusters {
            let is_stale = self.inventory.is_stale(cluster, id);
            let last_heard = self.inventory.get(cluster).and_then(|entry| entry.last_heard);
            let stale = ClusterReport::Stale { unreadable: None, last_heard };
            clusters.add(cluster.shared_name(), if is_stale { stale } else { ClusterReport::Reporting });
        }
        for (index, object) in self.bound_objects(policy, feeds).enumerate() {
            let member_id = MemberId::Placeholder(index);
            clusters.add(object.cluster.shared_name(), object.cluster_report());
            let member = object.member();
            let entry =
                MemberEntry::new(member.kind.clone(), member.name.clone(), member.state, member.since);
            entries.put(member_id, MemberEntry { progress: member.progress, ..entry });
            members.insert(member_id, member);
        }
        let deleting = feeds
            .find(&Cluster::hub(), &kind, &name)
            .and_then(|object| feeds.object(object))
            .is_some_and(|stored| stored.facts.deleting);
        let is_blocked_by = |state: &State| entries.count(*state) > 0;
        let blocked = BLOCKING.into_iter().find(is_blocked_by);
        // What was not read may be bound, too.
        let unresolved = Some(policy.resolved(feeds)).filter(|it| it.status != ConditionStatus::True);
        let unresolved = unresolved.filter(|_| blocked.is_none() && !deleting);
        let state = match blocked {
            _ if deleting => State::Terminating,
            Some(state) => state,
            None if entries.total() == 0 || unresolved.is_some() => State::Unknown,
            None => State::Ready,
        };
        let since = match state {
            _ if deleting => group_state::deleted_at(feeds, &kind, &name),
            State::Ready if entries.has_all_times() => entries.latest(),
            State::Ready => None,
            state => entries.earliest(state),
        };
        let members: Vec<_> =
            entries.worst_first().filter_map(|(member_id, _)| members.remove(&member_id)).collect();
        let objects = policy.kinds().map(|(_, kind)| kind.bindings.len()).sum();
        let ready = match unresolved {
            Some(unresolved) => Statement { status: ConditionStatus::Unknown, ..unresolved },
            None if deleting => being_deleted(feeds, &kind, &name),
            None => ready(state, objects, &members),
        };
        Some(Group {
            kind,
            name,
            state,
            deleting,
            since,
            conditions: self.conditions(id, policy, feeds),
            counts: entries.counts(),
            progress: group_state::progress(entries.progress(), state),
            members,
            clusters: clusters.into_clusters(),
            detail: Detail::BindingPolicy { objects, ready },
        })
    }

    /// Resolved first. That of collectors only if they could be read.
    fn conditions(&self, id: GroupId, policy: &PolicyState, feeds: &Feeds) -> Vec<Condition> {
        let has_collectors = can_read(feeds, OwnKind::StatusCollector);
        let statements = self.statements(id, policy, feeds).into_iter().rev();
        let statements = statements.filter(|(type_, _)| has_collectors || *type_ != COLLECTORS_AVAILABLE);
        let condition = |(type_, statement): (&'static str, Option<_>)| {
            let statement: Statement = statement?;
            let since = policy.publication.since(type_, statement.status);
            Some(Condition { type_, statement, since, held_until: None })
        };
        statements.filter_map(condition).collect()
    }

    /// By object, then by cluster.
    fn bound_objects<'a>(
        &'a self,
        policy: &'a PolicyState,
        feeds: &'a Feeds,
    ) -> impl Iterator<Item = BoundObject<'a>> {
        let bindings = policy.kinds().flat_map(move |(_, kind)| {
            let bindings = kind.bindings.iter().filter_map(|id| self.bindings.get(*id));
            bindings.map(move |binding| (binding, kind))
        });
        bindings.flat_map(move |(binding, kind)| {
            policy.clusters.iter().map(move |cluster| self.object_of(binding, kind, cluster, feeds))
        })
    }

    fn object_of<'a>(
        &self,
        binding: &'a Binding,
        kind: &BoundKind,
        cluster: &'a Cluster,
        feeds: &'a Feeds,
    ) -> BoundObject<'a> {
        let feed = kind.feeds.get(cluster).map(|feed| feed.id);
        let read = (feed, binding.presence(cluster));
        self.bound_object((&binding.kind, &binding.name), cluster, read, feeds)
    }

    /// How the clusters report an object that policies bind.
    pub(super) fn reports_of(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        feeds: &Feeds,
        reports: &mut ClusterReports,
    ) {
        for (policy, binding) in self.bindings.of_object(kind, name) {
            let Some(policy) = self.policies.get(policy) else { continue };
            let Some((binding, bound)) = self.bindings.get(binding).zip(policy.kind(kind)) else { continue };
            for cluster in &policy.clusters {
                let object = self.object_of(binding, bound, cluster, feeds);
                reports.add(cluster.shared_name(), object.cluster_report());
            }
        }
    }

    /// The policies that bind an object.
    pub(super) fn policies_of(&self, kind: &GroupKind, name: &NamespacedName) -> Vec<GroupRelation> {
        let bindings = self.bindings.of_object(kind, name).into_iter();
        let relation = |(policy, _)| {
            let policy = self.policies.get(policy)?;
            Some(GroupRelation {
                kind: OwnKind::BindingPolicy.kind(),
                name: policy.publication.group().name.clone(),
                relation: Relation::Binds,
                clusters: policy.clusters.iter().map(Cluster::shared_name).collect(),
            })
        };
        let mut relations: Vec<_> = bindings.filter_map(relation).collect();
        relations.sort_by(|a, b| a.name.cmp(&b.name));
        relations
    }
}

/// As the condition Ready of an Application with these members.
fn ready(state: State, objects: usize, members: &[Member]) -> Statement {
    let (status, reason) = match state {
        State::Ready => (ConditionStatus::True, application::COMPONENTS_READY),
        State::Failed => (ConditionStatus::False, application::COMPONENTS_FAILED),
        State::Missing => (ConditionStatus::False, application::COMPONENTS_MISSING),
        State::Terminating => (ConditionStatus::False, application::COMPONENTS_TERMINATING),
        State::Unknown if members.is_empty() => (ConditionStatus::Unknown, application::NO_COMPONENTS),
        State::Unknown => (ConditionStatus::Unknown, application::COMPONENTS_UNKNOWN),
        State::InProgress | State::Suspended => (ConditionStatus::False, application::COMPONENTS_IN_PROGRESS),
    };
    if state == State::Ready {
        return Statement::new(status, reason, "All objects are ready in all clusters");
    }
    if members.is_empty() {
        let text =
            if objects == 0 { "The policy binds no objects" } else { "The policy selects no clusters" };
        return Statement::new(status, reason, text);
    }
    let deciding: Vec<_> = members.iter().filter(|member| member.state == state).collect();
    let items = deciding.iter().map(|Member { kind, name, cluster, reason, message, .. }| {
        let object = format!("{}/{} @{}:", kind.kind, name.name, cluster.as_deref().unwrap_or_default());
        let why = if state == State::Failed { with_reason(reason, message) } else { message.as_str().into() };
        (object, why)
    });
    Statement::new(status, reason, message(items, deciding.len(), MESSAGE_BUDGET))
}

fn being_deleted(feeds: &Feeds, kind: &GroupKind, name: &NamespacedName) -> Statement {
    let why = group_state::deletion_message(feeds, kind, name);
    Statement::new(ConditionStatus::False, application::TERMINATING, why)
}

impl BoundObject<'_> {
    fn member(&self) -> Member {
        let BoundState { state, progress, reason, message, since } = self.state();
        Member {
            kind: self.kind.clone(),
            name: self.name.clone(),
            cluster: Some(self.cluster.shared_name()),
            stands_for: StandsFor::Object,
            uid: self.stored.map(|object| object.facts.uid.clone()),
            state,
            progress: progress.unwrap_or_default(),
            reason: reason.to_owned(),
            message: message.into_owned(),
            since,
            rule: self.verdict().map(|verdict| verdict.rule.clone()),
            cause: None,
            component_conditions: None,
        }
    }
}
