//! An engine with the scope in which it evaluates groups: some of Bellwether's kinds, in one namespace or in
//! all.
//!
//! The members of an Application are in its namespace, so rights in that namespace are enough to read them.
//! The components of a Rollup may be anywhere. A command that reads one namespace therefore has an evaluator
//! for each.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    mem,
    sync::Arc,
};

use bellwether_engine::{
    Cluster, ClusterEvent, ClusterSource, ClusterSources, Dialect, DiscoveredKinds, Effect, Engine, Event,
    FAILED_AFTER, FeedEvent, FeedId, Group, GroupKind, GroupRef, Lens, NamespacedName, OwnKind,
    ServedResource, Unreadable,
};
use jiff::{SignedDuration, Timestamp};

use super::location::Location;

#[derive(Clone, Debug)]
pub struct EvaluationScope {
    /// None for all namespaces.
    pub(super) namespace: Option<String>,
    /// The kinds of Bellwether whose objects are evaluated. Those of others may still be members.
    own: Vec<GroupKind>,
    /// Evaluate only the Rollup of this name.
    only_rollup: Option<String>,
    /// Do without HealthRules.
    without_rules: bool,
    /// As in [`Location`].
    failed_after: Option<SignedDuration>,
    /// What the evaluator does with BindingPolicies.
    policies: Policies,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policies {
    /// Without named clusters, they cannot be evaluated.
    NotRead,
    /// The clusters of other groups are evaluated. The policies themselves bind objects outside of the scope.
    Read,
    /// They are groups like the others.
    Groups,
}

impl EvaluationScope {
    pub(super) fn of(own: &[GroupKind], namespace: Option<String>) -> Self {
        Self {
            namespace,
            own: own.to_vec(),
            only_rollup: None,
            without_rules: false,
            failed_after: Some(FAILED_AFTER),
            policies: Policies::NotRead,
        }
    }

    pub(super) fn of_all(namespace: Option<String>) -> Self {
        let mut scope = Self::of_applications(namespace);
        scope.own.push(rollup());
        scope
    }

    pub(super) fn of_applications(namespace: Option<String>) -> Self {
        let own = [Dialect::Bellwether.kind(), Dialect::AppK8sIo.kind(), GroupKind::bellwether("HealthRule")];
        Self::of(&own, namespace)
    }

    /// All Rollups or one. They need no rules: operators report the conditions of components.
    pub(super) fn of_rollups(only: Option<&str>) -> Self {
        Self { only_rollup: only.map(str::to_owned), ..Self::of(&[rollup()], None) }
    }

    /// With HealthRules, which assess the objects below components.
    pub(super) fn with_rules(mut self) -> Self {
        let rules = GroupKind::bellwether("HealthRule");
        if !self.own.contains(&rules) {
            self.own.push(rules);
        }
        self
    }

    /// With what the user wants to be evaluated, or not.
    pub(super) fn at(self, location: &Location) -> Self {
        let (without_rules, failed_after) = (location.is_without_health_rules(), location.failed_after);
        Self { without_rules, failed_after, ..self }
    }

    /// With the policies, and what they bind in the named clusters.
    pub(super) fn with_policies(mut self) -> Self {
        if self.reads_clusters() {
            return self;
        }
        self.policies = if self.namespace.is_none() { Policies::Groups } else { Policies::Read };
        self.own.extend([binding_policy(), status_collector()]);
        self.with_rules()
    }

    pub(super) fn reads_clusters(&self) -> bool {
        self.policies != Policies::NotRead
    }

    /// Other kinds in another namespace, evaluated in the same way.
    pub(super) fn alike(&self, own: &[GroupKind], namespace: Option<String>) -> Self {
        let policies = Policies::NotRead;
        Self { own: own.to_vec(), namespace, only_rollup: None, policies, ..self.clone() }
    }

    pub(super) fn includes(&self, kind: &GroupKind) -> bool {
        let is_unwanted = self.without_rules && *kind == GroupKind::bellwether("HealthRule");
        self.own.contains(kind) && !is_unwanted
    }

    /// Whether the objects of a kind are groups of this scope.
    pub(super) fn has_groups_of(&self, kind: &GroupKind) -> bool {
        self.includes(kind) && (*kind != binding_policy() || self.policies == Policies::Groups)
    }

    /// Whether an object is evaluated as a group or rule, and not only as a member.
    fn evaluates(&self, kind: &GroupKind, name: &NamespacedName) -> bool {
        let is_another = |only: &String| kind.is_rollup() && *name.name != **only;
        self.includes(kind) && !self.only_rollup.as_ref().is_some_and(is_another)
    }
}

pub(super) fn rollup() -> GroupKind {
    GroupKind::bellwether("Rollup")
}

pub(super) fn binding_policy() -> GroupKind {
    GroupKind::bellwether("BindingPolicy")
}

pub(super) fn status_collector() -> GroupKind {
    GroupKind::bellwether("StatusCollector")
}

pub(super) struct Evaluator {
    pub(super) engine: Engine,
    pub(super) scope: EvaluationScope,
    followed: HashMap<FeedId, GroupKind>,
    changed: BTreeSet<Changed>,
}

/// A group whose evaluation may differ; without a name, all groups of its kind.
pub(super) type Changed = (OwnKind, Option<NamespacedName>);

impl Evaluator {
    pub(super) fn new(scope: EvaluationScope) -> Self {
        let engine = match scope.policies {
            Policies::NotRead => Engine::new(),
            Policies::Read | Policies::Groups => {
                Engine::new().with_combined_statuses().with_all_bound_objects()
            }
        };
        let engine = engine
            .with_kind(OwnKind::Application(Dialect::AppK8sIo))
            .with_failed_after(scope.failed_after)
            .with_nested_evaluation();
        Self { engine, scope, followed: HashMap::new(), changed: BTreeSet::new() }
    }

    /// Requests the kinds of the scope from the sources. The engine takes the other kinds of Bellwether as not
    /// in the input.
    pub(super) fn start<S: ClusterSource>(&mut self, now: Timestamp, sources: &mut ClusterSources<S>) {
        let effects = self.engine.step(now, []);
        let mut excluded = Vec::new();
        self.route(now, effects, sources, Some(&mut excluded));
        let unreadable = |feed| Event::Feed(feed, FeedEvent::Unreadable(Unreadable::NotInInput));
        self.step(now, excluded.into_iter().map(unreadable).collect(), sources);
    }

    /// Announces the kinds of the hub and the clusters of the inventory, as a controller does.
    pub(super) fn announce<S: ClusterSource>(
        &mut self,
        now: Timestamp,
        hub: DiscoveredKinds,
        clusters: impl IntoIterator<Item = Event>,
        sources: &mut ClusterSources<S>,
    ) {
        if !self.scope.reads_clusters() {
            return;
        }
        let kinds = Event::Cluster(Cluster::hub(), ClusterEvent::Kinds(Arc::new(hub)));
        let events = [kinds].into_iter().chain(clusters).chain([Event::InventoryListed]);
        self.step(now, events.collect(), sources);
    }

    /// Applies events of the kinds that the engine follows.
    pub(super) fn apply<S: ClusterSource>(
        &mut self,
        now: Timestamp,
        feed_events: impl IntoIterator<Item = (FeedId, FeedEvent)>,
        sources: &mut ClusterSources<S>,
    ) {
        let mut events = vec![Event::Tick];
        for (feed, mut event) in feed_events {
            if let (FeedEvent::Applied(name, object), Some(kind)) = (&mut event, self.followed.get(&feed))
                && !self.scope.evaluates(kind, name)
            {
                object.own = None;
            }
            events.push(Event::Feed(feed, event));
        }
        self.step(now, events, sources);
    }

    /// Requests from the sources the kinds that the engine wants to follow next.
    pub(super) fn step<S: ClusterSource>(
        &mut self,
        now: Timestamp,
        events: Vec<Event>,
        sources: &mut ClusterSources<S>,
    ) {
        let effects = self.engine.step(now, events);
        self.route(now, effects, sources, None);
    }

    fn route<S: ClusterSource>(
        &mut self,
        now: Timestamp,
        effects: Vec<Effect>,
        sources: &mut ClusterSources<S>,
        excluded: Option<&mut Vec<FeedId>>,
    ) {
        let Self { engine, scope, followed, changed } = self;
        let mut of_hub = Some(ScopedFeeds { scope, followed, excluded });
        let mut scoped = ClusterSources::default();
        for (cluster, source) in sources.iter_mut() {
            let of_hub = if cluster.is_hub() { of_hub.take() } else { None };
            scoped.insert(cluster.clone(), Feeds { source, of_hub });
        }
        let effects = scoped.route(effects, |unreadable| engine.step(now, unreadable));
        // Effects that write are dropped: these commands only read.
        changed.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Changed(kind, name) => Some((kind, name)),
            _ => None,
        }));
    }

    /// The groups that may have changed since the last call.
    pub(super) fn take_changed(&mut self) -> BTreeSet<Changed> {
        mem::take(&mut self.changed)
    }

    /// The groups of the scope, except those in a membership cycle, which have no state.
    pub(super) fn groups(&self, now: Timestamp) -> Vec<Group> {
        let mut groups = self.engine.groups(now);
        let has_policies = self.scope.policies == Policies::Groups;
        groups.retain(|group| {
            (has_policies || !group.is_policy())
                && !self
                    .engine
                    .cyclic_groups()
                    .any(|it| it.kind.kind() == group.kind && it.name == group.name)
        });
        groups
    }

    pub(super) fn group(&self, now: Timestamp, group: &GroupRef) -> Option<Group> {
        let is_cyclic = self.engine.cyclic_groups().any(|it| it == group);
        self.engine.group(now, group).filter(|_| !is_cyclic)
    }
}

/// Groups that have no state.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MembershipCycles {
    /// Each group is a member of the one before it, and the first is a member of the last.
    pub(super) cycles: Vec<Vec<GroupRef>>,
    /// Groups in no cycle with a member in one.
    pub(super) containing: Vec<GroupRef>,
}

impl Evaluator {
    pub(super) fn membership_cycles(&self, now: Timestamp) -> MembershipCycles {
        let members = self.engine.cyclic_groups().map(|group| {
            let members = self.engine.group(now, group).map(|group| group.members).unwrap_or_default();
            let members = members.into_iter();
            let groups = members.filter_map(|it| Some(GroupRef::new(OwnKind::of(&it.kind)?, it.name)));
            (group.clone(), groups.collect())
        });
        MembershipCycles::of(&members.collect())
    }
}

impl MembershipCycles {
    /// By the groups that are members of each group.
    fn of(members: &BTreeMap<GroupRef, Vec<GroupRef>>) -> Self {
        let mut found = Self::default();
        for group in members.keys() {
            if found.cycles.iter().flatten().any(|known| known == group) {
                continue;
            }
            match shortest_cycle(group, members) {
                Some(cycle) => found.cycles.push(cycle),
                None => found.containing.push(group.clone()),
            }
        }
        found
    }
}

/// The shortest path from a group back to itself, without the end.
fn shortest_cycle(group: &GroupRef, members: &BTreeMap<GroupRef, Vec<GroupRef>>) -> Option<Vec<GroupRef>> {
    let mut paths = VecDeque::from([vec![group]]);
    let mut seen = BTreeSet::new();
    while let Some(path) = paths.pop_front() {
        for next in path.last().and_then(|last| members.get(last)).into_iter().flatten() {
            if next == group {
                return Some(path.into_iter().cloned().collect());
            }
            if seen.insert(next) {
                paths.push_back(path.iter().copied().chain([next]).collect());
            }
        }
    }
    None
}

/// A source of an evaluator.
struct Feeds<'e, S> {
    source: &'e mut S,
    /// The hub is read as the scope says, other clusters as the engine asks.
    of_hub: Option<ScopedFeeds<'e>>,
}

struct ScopedFeeds<'e> {
    scope: &'e mut EvaluationScope,
    followed: &'e mut HashMap<FeedId, GroupKind>,
    /// Collects the feeds of kinds outside of the scope, while the evaluator starts. Later, such a kind may
    /// be requested because a group has members of it.
    excluded: Option<&'e mut Vec<FeedId>>,
}

impl ScopedFeeds<'_> {
    fn follows(&mut self, feed: FeedId, kind: &GroupKind) -> bool {
        if let Some(excluded) = &mut self.excluded
            && !self.scope.includes(kind)
        {
            excluded.push(feed);
            return false;
        }
        let is_known = self.followed.insert(feed, kind.clone()).is_some();
        // A Rollup has Rollups as components, which must be evaluated as well.
        if is_known && kind.is_rollup() {
            self.scope.only_rollup = None;
        }
        true
    }
}

impl<S: ClusterSource> ClusterSource for Feeds<'_, S> {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        if let Some(of_hub) = &mut self.of_hub
            && !of_hub.follows(feed, kind)
        {
            return;
        }
        self.source.follow(feed, kind, lens);
    }

    fn leave(&mut self, feed: FeedId) {
        if let Some(of_hub) = &mut self.of_hub {
            of_hub.followed.remove(&feed);
        }
        self.source.leave(feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.source.served(kind)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_engine::ProjectionContext;
    use bellwether_model::Object;
    use serde_json::json;

    use super::*;

    /// Records the kinds that are requested.
    #[derive(Default)]
    struct RequestLog(Vec<String>, Vec<(FeedId, Arc<Lens>)>);

    impl ClusterSource for RequestLog {
        fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
            self.0.push(kind.to_string());
            self.1.push((feed, lens));
        }

        fn leave(&mut self, _feed: FeedId) {}

        fn served(&self, _kind: &GroupKind) -> Option<ServedResource> {
            None
        }
    }

    /// From the hub.
    fn requests(log: &ClusterSources<RequestLog>) -> &[String] {
        &log.get(&Cluster::hub()).unwrap().0
    }

    #[test]
    fn only_kinds_of_the_scope_are_requested() {
        let mut log = ClusterSources::hub(RequestLog::default());
        Evaluator::new(EvaluationScope::of_rollups(None)).start(Timestamp::UNIX_EPOCH, &mut log);
        assert_eq!(requests(&log), ["Rollup.bellwether.dev"]);
    }

    #[test]
    fn only_groups_that_changed_are_reported() {
        let (now, mut log) = (Timestamp::UNIX_EPOCH, ClusterSources::hub(RequestLog::default()));
        let mut evaluator = Evaluator::new(EvaluationScope::of_rollups(None));
        evaluator.start(now, &mut log);
        let (feed, lens) = log.get(&Cluster::hub()).unwrap().1[0].clone();
        evaluator.apply(now, [(feed, FeedEvent::ListCompleted)], &mut log);
        assert!(evaluator.take_changed().contains(&(OwnKind::Rollup, None)), "all Rollups may have changed");
        let rollup = |name: &str, version: &str| {
            let object = json!({
                "apiVersion": "bellwether.dev/v1alpha1", "kind": "Rollup",
                "metadata": {"name": name, "uid": name, "resourceVersion": version, "generation": 1},
                "spec": {"components": [{"group": "example.com", "kind": "Database", "name": "main"}]},
            });
            let bytes = object.to_string();
            let object = Object::from_json(bytes.as_bytes(), lens.plan()).unwrap();
            let (name, object) = lens.project(&object, ProjectionContext { now, has_status: Some(true) });
            (feed, FeedEvent::Applied(name, Box::new(object)))
        };
        let of = |name: &str| (OwnKind::Rollup, Some(NamespacedName::new("", name)));
        evaluator.apply(now, [rollup("a", "1"), rollup("b", "1")], &mut log);
        assert_eq!(evaluator.take_changed(), [of("a"), of("b")].into());
        evaluator.apply(now, [(feed, FeedEvent::Deleted(NamespacedName::new("", "b")))], &mut log);
        assert_eq!(evaluator.take_changed(), [of("b")].into());
        evaluator.apply(now, [], &mut log);
        assert_eq!(evaluator.take_changed(), [].into());
    }

    #[test]
    fn cycles_and_the_groups_that_contain_them() {
        let group = |name: &str| GroupRef::new(OwnKind::Rollup, NamespacedName::new("", name));
        let members = [("a", &["b"][..]), ("b", &["c", "leaf"]), ("c", &["b"]), ("d", &["d"])];
        let members = members.map(|(name, of)| (group(name), of.iter().map(|name| group(name)).collect()));
        let expected = MembershipCycles {
            cycles: vec![vec![group("b"), group("c")], vec![group("d")]],
            containing: vec![group("a")],
        };
        assert_eq!(MembershipCycles::of(&members.into()), expected);
    }

    #[test]
    fn feeds_of_another_cluster_are_not_requested_from_the_hub() {
        let mut evaluator = Evaluator::new(EvaluationScope::of_all(None));
        let mut log = ClusterSources::hub(RequestLog::default());
        let mut effects = evaluator.engine.step(Timestamp::UNIX_EPOCH, []);
        for effect in &mut effects {
            if let Effect::Follow { cluster, .. } = effect {
                *cluster = Cluster::named("east");
            }
        }
        evaluator.route(Timestamp::UNIX_EPOCH, effects, &mut log, None);
        assert!(requests(&log).is_empty() && evaluator.followed.is_empty(), "{:?}", requests(&log));
    }
}
