//! Finds the kinds, the clusters and the objects of policies, and keeps the feeds that they need.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bellwether_tables::{Collector, Variable};

use crate::{
    facts::Facts,
    feeds::{Feed, Feeds, ObjectId},
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind, NamespacedName},
    planted::Bug,
    registry::GroupId,
    requested_fields::{FieldPath, RequestedFields},
};

use super::{
    CombinedStatuses,
    binding::{Binding, BindingId},
    clause::Clause,
    collector::CollectorVersion,
    namespace_kind, output,
    policy::{BoundKind, ClusterFeed, PolicyState, UnservedResource},
    row,
    singleton::{can_be_singleton, status_field},
};

impl CombinedStatuses {
    pub(super) fn resolve_all(&mut self, cx: &mut GroupingContext<'_>) {
        for id in std::mem::take(&mut self.unresolved) {
            self.resolve(id, cx);
            self.unselected.insert(id);
        }
        for id in std::mem::take(&mut self.unselected) {
            self.select_clusters(id, cx);
        }
        for (id, kind) in std::mem::take(&mut self.idle) {
            self.leave_idle_kind(id, &kind, cx);
        }
        self.refresh_overdue(cx);
    }

    /// Finds the kinds and the objects. Before discovery in the hub has answered, it does nothing.
    fn resolve(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        let Some(policy) = self.policies.get(id) else { return };
        let Some(served) = cx.feeds.served_in_hub() else { return };
        let matching = |kind: &GroupKind, plural: &str| {
            let clauses = policy.clauses.iter().enumerate();
            let clauses = clauses.filter(|(_, clause)| clause.matches_kind(kind, plural));
            clauses.map(|(number, _)| number).collect::<Box<[_]>>()
        };
        let kinds = served.iter().map(|(kind, served)| (kind.clone(), matching(kind, &served.plural)));
        let mut kinds: BTreeMap<_, _> = kinds.filter(|(_, clauses)| !clauses.is_empty()).collect();
        // Two groups serve the same objects, with the same UIDs.
        if kinds.contains_key(&GroupKind::new("", "Event")) {
            kinds.remove(&GroupKind::new("events.k8s.io", "Event"));
        }
        let is_served = |group: Option<&str>, plural: &str| {
            let is_it = |kind: &GroupKind| group.is_none_or(|group| *kind.group == *group);
            served.iter().any(|(kind, served)| is_it(kind) && *served.plural == *plural)
        };
        let named = policy.clauses.iter().flat_map(Clause::named_resources);
        let unserved = named.filter(|(group, plural)| !is_served(*group, plural));
        let unserved: BTreeSet<_> =
            unserved.map(|(group, plural)| UnservedResource::new(group, plural, cx.feeds)).collect();
        let reads_namespaces = policy.clauses.iter().any(Clause::reads_namespaces);
        if let Some(policy) = self.policies.get_mut(id) {
            policy.unserved = unserved.into_iter().collect();
            policy.kinds.get_or_insert_default();
        }
        self.follow_namespaces(id, reads_namespaces, cx);
        self.drop_kinds(id, |kind| kinds.contains_key(kind), cx);
        for (kind, clauses) in kinds {
            self.follow_kind(id, &kind, clauses, cx);
            self.match_objects(id, &kind, cx);
        }
        self.policies.mark_dirty(id);
        self.check_outputs_of(id);
    }

    fn follow_namespaces(&mut self, id: GroupId, wanted: bool, cx: &mut GroupingContext<'_>) {
        let Some(policy) = self.policies.get_mut(id) else { return };
        let before = policy.namespaces.take();
        let after = wanted.then(|| {
            let (hub, nothing) = (Cluster::hub(), RequestedFields::default());
            self.policies.follow(id, &hub, &namespace_kind(), &nothing, cx)
        });
        if let Some(policy) = self.policies.get_mut(id) {
            policy.namespaces = after;
        }
        match before {
            // One use each time that it was followed.
            Some(feed) if before == after => cx.feeds.release(feed),
            Some(feed) => _ = self.policies.leave(feed, id, cx.feeds),
            None => {}
        }
    }

    fn drop_kinds(&mut self, id: GroupId, keep: impl Fn(&GroupKind) -> bool, cx: &mut GroupingContext<'_>) {
        let Some(policy) = self.policies.get_mut(id) else { return };
        let Some(kinds) = &mut policy.kinds else { return };
        let dropped: Vec<_> = kinds.extract_if(.., |kind, _| !keep(kind)).collect();
        for (kind, bound) in dropped {
            self.leave_singletons(&kind, cx);
            for binding in &bound.bindings {
                self.remove_binding(*binding);
            }
            let feeds = bound.feeds.values().map(|feed| feed.id).chain([bound.hub]);
            for feed in feeds {
                self.policies.leave(feed, id, cx.feeds);
            }
        }
    }

    /// Follows a kind in the hub, and in the clusters with all fields that the collectors read.
    fn follow_kind(
        &mut self,
        id: GroupId,
        kind: &GroupKind,
        clauses: Box<[usize]>,
        cx: &mut GroupingContext<'_>,
    ) {
        let Some(policy) = self.policies.get(id) else { return };
        let of_kind = || clauses.iter().filter_map(|number| policy.clauses.get(*number));
        let collectors = of_kind().flat_map(|clause| &clause.collectors).map(|name| self.collector(name));
        let collectors: Vec<_> = collectors.collect();
        let (mut obj, mut returned) = requested(collectors.iter().filter_map(valid));
        if can_be_singleton(kind) && of_kind().any(|clause| clause.wants_singleton) {
            (obj, returned) = (obj.and(&status_field()), returned.and(&status_field()));
        }
        let is_read = self.reads_all_bound || of_kind().any(|clause| !clause.asks_nothing());
        let hub = self.policies.follow(id, &Cluster::hub(), kind, &obj, cx);
        let Some(policy) = self.policies.get_mut(id) else { return };
        let Some(kinds) = &mut policy.kinds else { return };
        let Some(bound) = kinds.get_mut(kind) else {
            let (bindings, feeds) = (BTreeSet::new(), BTreeMap::new());
            let bound = BoundKind { clauses, hub, obj, returned, is_read, bindings, feeds };
            kinds.insert(kind.clone(), bound);
            return;
        };
        // It was followed once more.
        cx.feeds.release(hub);
        let needs_more = !bound.returned.covers(&returned);
        (bound.clauses, bound.obj, bound.is_read) = (clauses, obj, is_read);
        if !is_read {
            self.idle.insert((id, kind.clone()));
        }
        bound.returned = returned.clone();
        if needs_more {
            for (cluster, feed) in &mut bound.feeds {
                let wider = cx.feeds.acquire(cluster, kind, &returned, &mut cx.queue.effects);
                cx.feeds.release(wider);
                feed.since = cx.now;
                if let Some(known_by) = feed.known_by(cx.clusters.get(cluster)) {
                    cx.queue.schedule(known_by, policy.publication.timer());
                }
            }
        }
    }

    /// Selects the clusters, and reads in them the kinds that have objects.
    fn select_clusters(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        let Some(policy) = self.policies.get_mut(id) else { return };
        let selected: BTreeSet<_> = self.inventory.matching(&policy.cluster_selectors).cloned().collect();
        let threshold = policy.threshold;
        let before = std::mem::replace(&mut policy.clusters, selected.clone());
        if before != selected {
            self.policies.mark_dirty(id);
            self.check_singletons(id);
        }
        for cluster in before.difference(&selected) {
            self.inventory.unselect(cluster, id);
            self.leave_cluster(id, cluster, cx);
        }
        for cluster in &selected {
            if self.inventory.select(cluster, id, threshold) {
                self.check_freshness(cluster, cx);
            }
        }
        let Some(policy) = self.policies.get(id) else { return };
        let kinds: Vec<_> = policy.kinds().map(|(kind, _)| kind.clone()).collect();
        for kind in kinds {
            self.read_in_clusters(id, &kind, cx);
        }
    }

    /// The clusters of a policy changed, so that other policies that ask for the same objects are concerned, too.
    fn check_singletons(&mut self, id: GroupId) {
        let kinds = self.policies.get(id).into_iter().flat_map(PolicyState::kinds);
        let bindings = kinds.flat_map(|(_, kind)| &kind.bindings).filter_map(|id| self.bindings.get(*id));
        let asking = bindings.filter(|binding| binding.wants_singleton);
        let objects: Vec<_> = asking.map(|binding| (binding.kind.clone(), binding.name.clone())).collect();
        for (kind, name) in objects {
            self.singleton_changed(&kind, &name);
        }
    }

    /// A binding asks for the status of its object, or does not ask any more.
    fn ask_for_status(&mut self, kind: &GroupKind, name: &NamespacedName, binding: BindingId, asks: bool) {
        self.singletons.ask((kind.clone(), name.clone()), binding, asks);
        self.singleton_changed(kind, name);
    }

    fn singleton_changed(&mut self, kind: &GroupKind, name: &NamespacedName) {
        self.singletons.check(kind, name);
        for (policy, _) in self.bindings.of_object(kind, name) {
            self.policies.mark_dirty(policy);
        }
    }

    fn leave_cluster(&mut self, id: GroupId, cluster: &Cluster, cx: &mut GroupingContext<'_>) {
        let Some(policy) = self.policies.get_mut(id) else { return };
        let (mut feeds, mut bindings) = (Vec::new(), Vec::new());
        for bound in policy.kinds.iter_mut().flat_map(BTreeMap::values_mut) {
            feeds.extend(bound.feeds.remove(cluster).map(|feed| feed.id));
            bindings.extend(bound.bindings.iter().copied());
        }
        for feed in feeds {
            self.policies.leave(feed, id, cx.feeds);
        }
        if Bug::KeepRowsOfRemoved.is_planted() {
            return;
        }
        for binding in bindings {
            if self.bindings.get_mut(binding).is_some_and(|binding| binding.remove_row(cluster)) {
                self.changed.insert(binding);
            }
        }
    }

    /// Without objects whose state is wanted, a kind is not read in the clusters.
    fn leave_idle_kind(&mut self, id: GroupId, kind: &GroupKind, cx: &mut GroupingContext<'_>) {
        let Some(bound) = self.policies.get_mut(id).and_then(|policy| policy.kind_mut(kind)) else { return };
        if bound.is_read && !bound.bindings.is_empty() {
            return;
        }
        let (feeds, bindings) = (std::mem::take(&mut bound.feeds), bound.bindings.clone());
        for (cluster, feed) in feeds {
            self.policies.leave(feed.id, id, cx.feeds);
            for binding in &bindings {
                if self.bindings.get_mut(*binding).is_some_and(|binding| binding.remove_row(&cluster)) {
                    self.changed.insert(*binding);
                }
            }
        }
    }

    /// Follows a kind that has objects in every selected cluster.
    fn read_in_clusters(&mut self, id: GroupId, kind: &GroupKind, cx: &mut GroupingContext<'_>) {
        let Some(policy) = self.policies.get(id) else { return };
        let Some(bound) = policy.kind(kind).filter(|bound| bound.is_read && !bound.bindings.is_empty())
        else {
            return;
        };
        // For each further object of the kind, nothing is missing.
        if bound.feeds.len() == policy.clusters.len() {
            return;
        }
        let returned = bound.returned.clone();
        let bindings: Vec<_> = bound.bindings.iter().copied().collect();
        let missing = policy.clusters.iter().filter(|cluster| !bound.feeds.contains_key(*cluster));
        let missing: Vec<_> = missing.cloned().collect();
        for cluster in missing {
            let feed = self.policies.follow(id, &cluster, kind, &returned, cx);
            if let Some(bound) = self.policies.get_mut(id).and_then(|policy| policy.kind_mut(kind)) {
                bound.feeds.insert(cluster.clone(), ClusterFeed { id: feed, since: cx.now });
            }
            self.await_cluster(&cluster, cx);
            for binding in &bindings {
                self.refresh(*binding, &cluster, cx);
            }
        }
    }

    /// Matches all objects of a kind again.
    fn match_objects(&mut self, id: GroupId, kind: &GroupKind, cx: &mut GroupingContext<'_>) {
        let Some(bound) = self.policies.get(id).and_then(|policy| policy.kind(kind)) else { return };
        for object in cx.feeds.all(bound.hub) {
            self.match_object(id, kind, object, cx);
        }
    }

    /// Binds an object, updates its binding, or unbinds it.
    fn match_object(
        &mut self,
        id: GroupId,
        kind: &GroupKind,
        object: ObjectId,
        cx: &mut GroupingContext<'_>,
    ) {
        let Some(policy) = self.policies.get(id) else { return };
        let Some(bound) = policy.kind(kind) else { return };
        let Some(stored) = cx.feeds.object(object) else { return };
        let name = stored.name.clone();
        let namespace = policy.namespaces.and_then(|feed| {
            let namespace = NamespacedName::new("", &name.namespace);
            Some(&cx.feeds.object(cx.feeds.find_in(feed, &namespace)?)?.facts.labels)
        });
        let clauses = bound.clauses.iter().filter_map(|number| policy.clauses.get(*number));
        let matching: Vec<_> =
            clauses.filter(|clause| clause.matches(&name, &stored.facts.labels, namespace)).collect();
        let known = self.bindings.find(id, kind, &name);
        if matching.is_empty() {
            if let Some(binding) = known {
                self.unbind(binding);
            }
            return;
        }
        let wants_singleton = matching.iter().any(|clause| clause.wants_singleton);
        let mut collectors: Vec<(Arc<str>, CollectorVersion)> = Vec::new();
        for name in matching.iter().flat_map(|clause| &clause.collectors) {
            if !collectors.iter().any(|(own, _)| own == name) {
                collectors.push((Arc::clone(name), self.collector(name)));
            }
        }
        let output = output::name(&name.namespace, &stored.facts.uid, &policy.publication.uid);
        let binding = known.unwrap_or_else(|| {
            let binding = Binding::new(id, (kind.clone(), name.clone()), object, output.clone());
            self.bindings.insert(binding)
        });
        if known.is_none() {
            self.outputs.entry(output).or_default().binding = Some(binding);
            if let Some(bound) = self.policies.get_mut(id).and_then(|policy| policy.kind_mut(kind)) {
                bound.bindings.insert(binding);
            }
            self.policies.mark_dirty(id);
            self.read_in_clusters(id, kind, cx);
        }
        if let Some(known) = self.bindings.get_mut(binding)
            && known.wants_singleton != wants_singleton
        {
            known.wants_singleton = wants_singleton;
            self.ask_for_status(kind, &name, binding, wants_singleton && can_be_singleton(kind));
        }
        let versions: Vec<_> = collectors.iter().map(|(_, version)| version.clone()).collect();
        if let Some(known) = self.bindings.get_mut(binding) {
            (known.obj, known.returned) = requested(versions.iter().filter_map(valid));
        }
        let are_new =
            self.bindings.get_mut(binding).is_some_and(|binding| binding.set_collectors(&collectors));
        if are_new || known.is_none() {
            self.refresh_all(binding, cx);
        }
    }

    pub(super) fn hub_object_changed(
        &mut self,
        (object, feed): (ObjectId, FeedId),
        before: Option<&Facts>,
        cx: &mut GroupingContext<'_>,
    ) {
        let (Some(stored), Some(known)) = (cx.feeds.object(object), cx.feeds.get(feed)) else { return };
        self.singletons.observe(&known.kind, &stored.name, &stored.facts, cx.now);
        let has_other_labels = before.is_none_or(|before| before.labels != stored.facts.labels);
        let has_other_values = before.is_some_and(|before| before.values != stored.facts.values);
        if !has_other_labels && !has_other_values {
            return;
        }
        let (kind, name) = (known.kind.clone(), stored.name.clone());
        let users = self.policies.users(feed);
        let reads_change = |policy: &&GroupId| {
            let binding = self.bindings.find(**policy, &kind, &name).and_then(|id| self.bindings.get(id));
            binding.is_some_and(|binding| differ(before, &stored.facts, &binding.obj))
        };
        let concerned: Vec<_> = users.iter().filter(reads_change).copied().collect();
        if has_other_labels && kind == namespace_kind() {
            self.namespace_changed(&name.name, cx);
        }
        // Unless the labels changed, the same clauses match.
        for policy in users.into_iter().filter(|_| has_other_labels) {
            self.match_object(policy, &kind, object, cx);
        }
        for policy in concerned {
            if let Some(binding) = self.bindings.find(policy, &kind, &name) {
                self.refresh_all(binding, cx);
            }
        }
    }

    /// The labels of a namespace changed, or it was added or removed.
    pub(super) fn namespace_changed(&mut self, namespace: &str, cx: &mut GroupingContext<'_>) {
        for id in self.policies.ids() {
            let Some(policy) = self.policies.get(id).filter(|policy| policy.namespaces.is_some()) else {
                continue;
            };
            let objects = policy.kinds().flat_map(|(kind, bound)| {
                let feed = cx.feeds.get(bound.hub).into_iter();
                feed.flat_map(|feed| feed.in_namespace(namespace)).map(|object| (kind.clone(), object))
            });
            for (kind, object) in objects.collect::<Vec<_>>() {
                self.match_object(id, &kind, object, cx);
            }
        }
    }

    pub(super) fn unbind(&mut self, id: BindingId) {
        let Some(binding) = self.bindings.get(id) else { return };
        let (policy, kind) = (binding.policy, binding.kind.clone());
        if let Some(bound) = self.policies.get_mut(policy).and_then(|policy| policy.kind_mut(&kind)) {
            bound.bindings.remove(&id);
            if bound.bindings.is_empty() {
                self.idle.insert((policy, kind));
            }
        }
        self.policies.mark_dirty(policy);
        self.remove_binding(id);
    }

    /// The caller removes it from its policy.
    fn remove_binding(&mut self, id: BindingId) {
        let Some(binding) = self.bindings.remove(id) else { return };
        self.changed.remove(&id);
        if binding.wants_singleton {
            self.ask_for_status(&binding.kind, &binding.name, id, false);
        }
        if let Some(output) = self.outputs.get_mut(&binding.output) {
            output.binding = None;
            if !output.is_stored() {
                self.outputs.remove(&binding.output);
            }
        }
        self.unchecked.insert(binding.output);
    }

    /// The policy is deleted.
    pub(super) fn unbind_policy(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        self.drop_kinds(id, |_| false, cx);
        self.follow_namespaces(id, false, cx);
        let clusters = self.policies.get(id).map(|policy| policy.clusters.clone()).unwrap_or_default();
        for cluster in &clusters {
            self.inventory.unselect(cluster, id);
        }
        self.check_outputs_of(id);
    }

    /// Whether the CombinedStatuses of a policy and its singletons still have a reason may be known now.
    fn check_outputs_of(&mut self, id: GroupId) {
        self.singletons.check_labelled();
        let Some(policy) = self.policies.get(id) else { return };
        let uid = &policy.publication.uid;
        let outputs = self.outputs.keys().filter(|name| *output::policy_uid(name) == **uid);
        self.unchecked.extend(outputs.cloned().collect::<Vec<_>>());
    }

    /// The list of a kind completed, or its readability changed.
    pub(super) fn check_outputs_of_users(&mut self, feed: FeedId, feeds: &Feeds) {
        // The policies and the collectors decide about all.
        let is_own = |feed: &Feed| feed.cluster.is_hub() && feed.kind.is_bellwether();
        if feeds.get(feed).is_some_and(is_own) {
            self.unchecked.extend(self.outputs.keys().cloned());
            self.singletons.check_labelled();
        }
        for id in self.policies.users(feed) {
            let is_in_hub = |policy: &PolicyState| {
                policy.namespaces == Some(feed) || policy.kinds().any(|(_, kind)| kind.hub == feed)
            };
            if self.policies.get(id).is_some_and(is_in_hub) {
                self.check_outputs_of(id);
            }
        }
    }
}

/// Whether an object has other values than before where they are requested. The status of a singleton changes
/// with its cluster, and concerns the rows of all clusters only if an expression reads it.
fn differ(before: Option<&Facts>, after: &Facts, requested: &RequestedFields) -> bool {
    let Some(plan) = requested.plan_of_paths() else { return false };
    let values = |facts: &Facts| {
        let values = facts.values.as_deref().filter(|values| values.requested.covers(requested));
        values.map(|values| values.fields.kept_by(&plan))
    };
    before.and_then(values) != values(after)
}

fn valid(version: &CollectorVersion) -> Option<&Collector> {
    version.valid().map(|collector| &**collector)
}

/// What the expressions read of an object in the hub, and in a cluster.
pub(super) fn requested<'c>(
    collectors: impl Iterator<Item = &'c Collector>,
) -> (RequestedFields, RequestedFields) {
    let (mut obj, mut returned) = (BTreeSet::new(), BTreeSet::new());
    for collector in collectors {
        obj.extend(collector.paths(Variable::Obj));
        returned.extend(collector.paths(Variable::Returned));
        for path in collector.paths(Variable::Propagation) {
            let fields = row::fields_of_propagation(path.first().map(|field| &**field));
            let paths =
                fields.iter().map(|path| path.iter().map(|field| (*field).into()).collect::<FieldPath>());
            returned.extend(paths);
        }
    }
    (
        RequestedFields { paths: obj, ..RequestedFields::default() },
        RequestedFields { paths: returned, ..RequestedFields::default() },
    )
}
