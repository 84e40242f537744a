//! Reads a cluster or files, once or continuously, and evaluates the groups in them.
//!
//! In an [`Observation`], an `Origin` reads objects, `Evaluator`s make groups of them, and [`Notes`] say what
//! could not be read.

mod alone;
mod cluster;
mod duplicates;
mod evaluator;
mod files;
mod group_query;
mod kind_request;
mod live;
mod location;
mod named_clusters;
mod notes;
mod object_name;
mod origin;
mod stored_clusters;

use std::sync::Arc;

use anyhow::{Result, anyhow};
use bellwether_engine::{
    Dialect, Engine, Facts, FeedEvent, Group, GroupKind, GroupRelation, Lens, NamespacedName, Unreadable,
};
use bellwether_health::{Context, Evidence};
use bellwether_model::Object;
use jiff::Timestamp;

pub use cluster::{ObservedCluster, crds_not_installed, denied_user};
pub(crate) use cluster::{grant, refusal, user_in};
pub use evaluator::EvaluationScope;
use evaluator::Evaluator;
pub use files::is_of_the_cluster;
pub use group_query::GroupQuery;
use group_query::scopes_of;
use kind_request::KindRequest;
pub use live::LiveObservation;
pub use location::{Flags, Location, Place};
pub use named_clusters::ClusterProblem;
use named_clusters::NamedCluster;
pub use notes::Notes;
pub(crate) use notes::not_shown;
pub(crate) use object_name::means;
pub use object_name::plural_of_builtin;
use origin::Origin;
use stored_clusters::StoredClusters;

/// Objects that were read once, and the engines that evaluate them.
pub struct Observation {
    /// The hub.
    origin: Origin,
    clusters: Vec<NamedCluster>,
    /// Where no cluster is named.
    stored: StoredClusters,
    /// For Applications, unless the query is for a Rollup.
    evaluator: Evaluator,
    /// For Rollups, if the other evaluator reads one namespace only.
    of_rollups: Option<Evaluator>,
    /// None for all namespaces.
    only_namespace: Option<String>,
    pub now: Timestamp,
    pub notes: Notes,
}

/// An object of a kind that was listed in addition to those of the engine.
#[derive(Clone, Debug)]
pub struct ListedObject {
    pub kind: GroupKind,
    pub name: NamespacedName,
    pub facts: Facts,
}

#[derive(Debug, Default)]
pub struct ListedObjects {
    pub objects: Vec<ListedObject>,
    pub unreadable: Vec<(GroupKind, Unreadable)>,
}

impl Observation {
    /// Reads the groups of the query and their members.
    pub fn open(location: &Location, now: Timestamp, query: GroupQuery<'_>) -> Result<Self> {
        let mut observation = Self::connect(location, now, query)?;
        observation.refresh()?;
        Ok(observation)
    }

    /// Connects to a cluster, or opens files. Evaluates nothing.
    pub fn connect(location: &Location, now: Timestamp, query: GroupQuery<'_>) -> Result<Self> {
        let all_namespaces = matches!(query, GroupQuery::All { all_namespaces: true });
        let origin = Origin::open(location, all_namespaces, now)?;
        let only_namespace = origin.only_namespace(all_namespaces);
        let (scope, of_rollups) = match (&origin, &only_namespace) {
            (Origin::Cluster(_), Some(namespace)) => scopes_of(query, namespace.clone()),
            (Origin::Cluster(_), None) | (Origin::Files(_), _) => (EvaluationScope::of_all(None), None),
        };
        let has_clusters = !location.clusters.is_empty();
        let (scope, of_rollups) = match (scope.at(location), of_rollups.map(|scope| scope.at(location))) {
            // One evaluator reads the clusters for both.
            (scope, Some(of_rollups)) if has_clusters => (scope, Some(of_rollups.with_policies())),
            (scope, None) if has_clusters => (scope.with_policies(), None),
            scopes => scopes,
        };
        let observation = Self::new(origin, only_namespace, now, scope);
        Ok(Self { of_rollups: of_rollups.map(Evaluator::new), ..observation }.with_clusters(location))
    }

    /// Reads the objects of these kinds of Bellwether, and no members.
    pub fn read_own_kinds(location: &Location, now: Timestamp, own: &[GroupKind]) -> Result<Self> {
        let origin = Origin::open(location, false, now)?;
        let only_namespace = origin.only_namespace(false);
        let scope = EvaluationScope::of(own, None).at(location);
        let mut observation = Self::new(origin, only_namespace, now, scope).with_clusters(location);
        let Self { origin, evaluator, only_namespace, notes, .. } = &mut observation;
        let mut sources = named_clusters::sources(origin, &[]);
        evaluator.start(now, &mut sources);
        let namespace = only_namespace.as_deref();
        let note = |kind: &GroupKind, events: &[FeedEvent]| notes.note(kind, events, origin, namespace);
        let listed = named_clusters::list(&mut sources, namespace, note)?.unwrap_or_default();
        evaluator.apply(now, listed.events, &mut sources);
        Ok(observation)
    }

    fn new(origin: Origin, only_namespace: Option<String>, now: Timestamp, scope: EvaluationScope) -> Self {
        let notes = Notes::of(&origin);
        Self {
            origin,
            clusters: Vec::new(),
            stored: StoredClusters::default(),
            evaluator: Evaluator::new(scope),
            of_rollups: None,
            only_namespace,
            now,
            notes,
        }
    }

    fn with_clusters(mut self, location: &Location) -> Self {
        self.clusters = NamedCluster::open_all(location, self.now);
        self.notes.unread_clusters = self.clusters.iter().flat_map(NamedCluster::problems).collect();
        self
    }

    /// Lists the kinds that the engines request, until they request no more.
    pub fn refresh(&mut self) -> Result<()> {
        let Self { origin, clusters, stored, evaluator, of_rollups, only_namespace, now, notes } = self;
        origin.check_crds()?;
        for evaluator in [evaluator].into_iter().chain(of_rollups) {
            *evaluator = Evaluator::new(evaluator.scope.clone());
            let mut sources = named_clusters::sources(origin, clusters);
            evaluator.start(*now, &mut sources);
            let announcements = clusters.iter().flat_map(|cluster| cluster.announcement(*now));
            evaluator.announce(*now, origin.discovered(), announcements, &mut sources);
            let namespace = evaluator.scope.namespace.clone();
            let namespace = namespace.as_deref();
            let mut problems = Vec::new();
            let mut note =
                |kind: &GroupKind, events: &[FeedEvent]| notes.note(kind, events, origin, namespace);
            while let Some(listed) = named_clusters::list(&mut sources, namespace, &mut note)? {
                problems.extend(listed.problems);
                evaluator.apply(*now, listed.events, &mut sources);
            }
            problems.retain(|problem| !notes.unread_clusters.contains(problem));
            notes.unread_clusters.extend(problems);
            notes.note_uses(&evaluator.engine);
            notes.note_cycles(&evaluator.membership_cycles(*now));
        }
        if clusters.is_empty() {
            *stored = origin.stored_clusters(only_namespace.as_deref())?;
        }
        Ok(())
    }

    /// The namespace of objects that are named without one.
    pub fn namespace(&self) -> &str {
        self.origin.namespace()
    }

    /// `in namespace shop`, `in dump/`
    pub fn whereabouts(&self) -> String {
        self.origin.whereabouts(self.only_namespace.as_deref())
    }

    /// `ConfigMap/settings not found in namespace shop`
    pub fn not_found(&self, kind: &GroupKind, name: &NamespacedName) -> String {
        format!("{}/{} not found {}", kind.kind, name.name, self.whereabouts())
    }

    /// A sentence about a kind that could not be listed.
    pub fn cannot_list(&self, kind: &GroupKind, why: &Unreadable, anywhere: bool) -> String {
        self.origin.cannot_list(kind, why, self.namespace_to_list(anywhere))
    }

    /// The object that the user names: `deploy/web`.
    pub fn object_named(&self, word: &str) -> Result<(GroupKind, NamespacedName)> {
        let (kind, name) = object_name::split(word)?;
        self.origin.object_named(kind, name)
    }

    /// With the namespace only if the kind is namespaced. The object need not exist.
    pub fn name_of(&self, kind: &GroupKind, namespace: &str, name: &str) -> NamespacedName {
        NamespacedName::new(if self.origin.is_namespaced(kind) { namespace } else { "" }, name)
    }

    /// The objects of these kinds, assessed with the rules of the engine. They are listed in all namespaces
    /// if `anywhere`.
    pub fn listed(&self, kinds: &[GroupKind], anywhere: bool) -> Result<ListedObjects> {
        let mut listed = ListedObjects::default();
        let mut requests = Vec::new();
        // What the engine has listed for its groups is not listed again.
        let is_in_scope = self.evaluator.scope.namespace.as_deref() == self.namespace_to_list(anywhere);
        for kind in kinds {
            match self.evaluator.engine.objects(kind).filter(|_| is_in_scope) {
                Some(Ok(_)) => listed.objects.extend(listed_objects(&self.evaluator.engine, kind)),
                Some(Err(why)) => listed.unreadable.push((kind.clone(), why.clone())),
                None => requests.push(KindRequest { kind: kind.clone(), lens: Arc::new(self.lens(kind)) }),
            }
        }
        for (kind, events) in self.origin.list(requests, self.namespace_to_list(anywhere))? {
            for event in events {
                match event {
                    FeedEvent::Applied(name, object) => {
                        listed.objects.push(ListedObject { kind: kind.clone(), name, facts: object.facts });
                    }
                    FeedEvent::Unreadable(why) => listed.unreadable.push((kind.clone(), why)),
                    _ => {}
                }
            }
        }
        Ok(listed)
    }

    /// The objects of these kinds in a named cluster, and a sentence for each kind that could not be listed. A cluster
    /// that cannot be read has none: its problem is noted already.
    pub fn listed_in(&self, cluster: &str, kinds: &[GroupKind]) -> (Vec<ListedObject>, Vec<String>) {
        let (mut objects, mut problems) = (Vec::new(), Vec::new());
        let Some((cluster, origin)) = self.named(cluster) else { return (objects, problems) };
        let requests =
            kinds.iter().map(|kind| KindRequest { kind: kind.clone(), lens: Arc::new(self.lens(kind)) });
        let listed = match origin.list(requests.collect(), None) {
            Ok(listed) => listed,
            Err(error) => return (objects, vec![cluster.about(&format!("{error:#}"))]),
        };
        for (kind, events) in listed {
            for event in events {
                match event {
                    FeedEvent::Applied(name, object) => {
                        objects.push(ListedObject { kind: kind.clone(), name, facts: object.facts });
                    }
                    FeedEvent::Unreadable(Unreadable::NotServed | Unreadable::NotInInput) => {}
                    FeedEvent::Unreadable(why) => {
                        problems.push(cluster.about(&origin.cannot_list(&kind, &why, None)));
                    }
                    _ => {}
                }
            }
        }
        (objects, problems)
    }

    /// A named cluster that can be read.
    fn named(&self, name: &str) -> Option<(&NamedCluster, &Origin)> {
        let cluster = self.clusters.iter().find(|cluster| cluster.name.name() == name)?;
        Some((cluster, cluster.readable()?))
    }

    fn namespace_to_list(&self, anywhere: bool) -> Option<&str> {
        self.only_namespace.as_deref().filter(|_| !anywhere)
    }

    /// Applies `make` to an object, if it exists.
    pub fn with<R: Send>(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Result<Option<R>> {
        self.origin.with(kind, name, make)
    }

    /// Applies `make` to the object that the user names, in each named cluster that can be read; an error names the
    /// cluster. `in_hub`: what the name means in the hub; without a hub, it means what it means in each cluster.
    pub fn with_in_clusters<R: Send>(
        &self,
        word: &str,
        in_hub: Option<&(GroupKind, NamespacedName)>,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Result<Vec<Result<(String, R), String>>> {
        let (kind, name) = object_name::split(word)?;
        let read = |origin: &Origin| {
            let (kind, name) = in_hub.cloned().map_or_else(|| origin.object_named(kind, name), Ok)?;
            let result = origin.with(&kind, &name, make)?;
            result.ok_or_else(|| anyhow!("{}/{} not found", kind.kind, name.name))
        };
        let readable = self.clusters.iter().filter_map(|cluster| Some((cluster, cluster.readable()?)));
        let results = readable.map(|(cluster, origin)| match read(origin) {
            Ok(result) => Ok((cluster.name.name().to_owned(), result)),
            Err(error) => Err(cluster.about(&format!("{error:#}"))),
        });
        Ok(results.collect())
    }

    /// The fields that the verdict on an object is based on. Empty if it cannot be read any more.
    pub fn evidence(&self, kind: &GroupKind, name: &NamespacedName) -> Vec<Evidence> {
        self.evidence_in(None, kind, name)
    }

    /// As [`Self::evidence`], in a named cluster.
    pub fn evidence_in(
        &self,
        cluster: Option<&str>,
        kind: &GroupKind,
        name: &NamespacedName,
    ) -> Vec<Evidence> {
        let explain = |object: &Object<'_>| bellwether_health::explain(object, &self.context()).evidence;
        let origin = match cluster {
            None => Some(&self.origin),
            Some(cluster) => self.named(cluster).map(|(_, origin)| origin),
        };
        origin.and_then(|origin| origin.with(kind, name, &explain).ok().flatten()).unwrap_or_default()
    }

    /// The rules in force, and the time.
    pub fn context(&self) -> Context<'_> {
        Context { rules: Some(self.evaluator.engine.rules()), ..Context::at(self.now) }
    }

    pub fn lens(&self, kind: &GroupKind) -> Lens {
        self.evaluator.engine.lens(kind)
    }

    /// How the Applications of its namespace and the Rollups relate to an object.
    pub fn relations(&self, kind: &GroupKind, name: &NamespacedName, facts: &Facts) -> Vec<GroupRelation> {
        self.evaluator.engine.relations(kind, name, facts)
    }

    /// None for files.
    pub fn cluster(&self) -> Option<&ObservedCluster> {
        self.origin.cluster()
    }
}

/// The objects of a kind that an engine follows.
fn listed_objects(engine: &Engine, kind: &GroupKind) -> Vec<ListedObject> {
    let objects = engine.objects(kind).and_then(Result::ok).unwrap_or_default().into_iter();
    let object = |(name, facts): (&NamespacedName, &Facts)| ListedObject {
        kind: kind.clone(),
        name: name.clone(),
        facts: facts.clone(),
    };
    objects.map(object).collect()
}

/// Drops the times between `begun` and `ended`: an engine dates what it finds in its first evaluation at that
/// evaluation, although it may have been so for long.
fn drop_invented_times(groups: &mut [Group], begun: Timestamp, ended: Timestamp) {
    let begun = Timestamp::from_second(begun.as_second()).unwrap_or(begun);
    let is_invented = |since: &mut Timestamp| (begun..=ended).contains(since);
    for group in groups {
        group.since.take_if(is_invented);
        for member in &mut group.members {
            member.since.take_if(is_invented);
        }
        for condition in &mut group.conditions {
            condition.since.take_if(is_invented);
        }
    }
}

/// The APIs of Applications.
const APPLICATIONS: [Dialect; 2] = [Dialect::Bellwether, Dialect::AppK8sIo];

/// Whether a kind is an Application or a Rollup.
pub fn is_group(kind: &GroupKind) -> bool {
    is_application(kind) || kind.is_rollup()
}

fn is_application(kind: &GroupKind) -> bool {
    APPLICATIONS.iter().any(|dialect| dialect.kind() == *kind)
}
