//! What the Pods of a workload and the endpoints of a Service say about it.
//!
//! A workload rarely reports that it fails; its Pods do. Only Pods that are not ready are indexed, so that a
//! change costs the same however many Pods a workload has.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::Arc,
};

use bellwether_health::reasons::is_permanent;
use bellwether_model::State;
use jiff::{SignedDuration, Timestamp};

use crate::{
    facts::{Facts, KindFacts, OwnerReference, PodFacts},
    feeds::{Feeds, ObjectId, StoredObject},
    id::{Cluster, GroupKind, NamespacedName},
    planted::Bug,
    selector_index::remove_from_set,
};

/// The label of StatefulSets' Pods with the revision of their template.
const REVISION_HASH: &str = "controller-revision-hash";
/// The label of DaemonSets' Pods with the revision of their template.
const TEMPLATE_GENERATION: &str = "pod-template-generation";
/// The label of EndpointSlices with the name of their Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The kinds to follow below members of a kind.
pub(crate) fn kinds_below(kind: &GroupKind) -> &'static [(&'static str, &'static str)] {
    match (&*kind.group, &*kind.kind) {
        ("apps", "Deployment") => &[("apps", "ReplicaSet"), ("", "Pod")],
        ("apps", "DaemonSet" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => &[("", "Pod")],
        ("", "Service") => &[("discovery.k8s.io", "EndpointSlice")],
        _ => &[],
    }
}

/// Whether objects of the kind are below members: they change how a member counts, and need not be readable.
pub fn is_below(kind: &GroupKind) -> bool {
    matches!(
        (&*kind.group, &*kind.kind),
        ("", "Pod") | ("apps", "ReplicaSet") | ("discovery.k8s.io", "EndpointSlice")
    )
}

/// Whether objects of the kind run Pods for as long as they are not scaled to zero.
pub(crate) fn runs_continuously(kind: &GroupKind) -> bool {
    matches!(
        (&*kind.group, &*kind.kind),
        ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet") | ("", "ReplicationController")
    )
}

/// What objects below a member say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// The Pod because of which it is not ready.
    Cause(ObjectId),
    /// It is Failed because this Pod is: for long enough, or without a way to recover.
    FailedPod(ObjectId),
    /// It is a Service without a ready endpoint.
    NoReadyEndpoints,
}

impl Below {
    /// The Pod because of which the member is not ready.
    pub(crate) fn cause(self) -> Option<ObjectId> {
        match self {
            Self::Cause(pod) | Self::FailedPod(pod) => Some(pod),
            Self::NoReadyEndpoints => None,
        }
    }
}

/// A Pod that is not ready. The most telling one sorts first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnreadyPod {
    class: PodClass,
    /// `None`, unknown, sorts before all times.
    since: Option<Timestamp>,
    name: Arc<str>,
    object: ObjectId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PodClass {
    /// Failed, and cannot recover by itself.
    Permanent,
    Failed,
    NotReady,
    /// It has run to its end. Its owner replaces it.
    Finished,
}

/// A ReplicaSet of a Deployment. The newest sorts last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Revision {
    number: u64,
    name: Arc<str>,
    object: ObjectId,
}

#[derive(Debug, Default)]
pub(crate) struct BelowIndex {
    /// By the uid of each owner.
    unready_pods: HashMap<Box<str>, BTreeSet<UnreadyPod>>,
    /// By the uid of each owner; the newest revision is the last.
    replica_sets: HashMap<Box<str>, BTreeSet<Revision>>,
    /// EndpointSlices with a ready endpoint, by Service.
    ready_slices: HashMap<NamespacedName, BTreeSet<ObjectId>>,
}

impl BelowIndex {
    /// Updates the index. Returns the objects about which the object says something, before or now.
    pub(crate) fn update(
        &mut self,
        object: ObjectId,
        stored: &StoredObject,
        before: Option<&Facts>,
        now: Option<&Facts>,
        feeds: &Feeds,
    ) -> BTreeSet<ObjectId> {
        let mut above = BTreeSet::new();
        for (facts, is_current) in [(before, false), (now, true)] {
            let Some(facts) = facts else { continue };
            match &facts.kind_facts {
                KindFacts::Pod(pod) => {
                    let entry = unready(object, &stored.name.name, facts, *pod);
                    for owner in facts.owners.iter().filter(|owner| is_workload(owner)) {
                        if let Some(entry) = entry.clone() {
                            set(&mut self.unready_pods, &owner.uid, entry, is_current);
                        }
                        above.extend(ancestors(owner, stored, feeds));
                    }
                }
                KindFacts::ReplicaSet { revision } => {
                    for owner in facts.owners.iter().filter(|owner| is_workload(owner)) {
                        let name = Arc::clone(&stored.name.name);
                        let entry = Revision { number: *revision, name, object };
                        set(&mut self.replica_sets, &owner.uid, entry, is_current);
                        above.extend(owner_of(owner, stored, feeds));
                    }
                }
                KindFacts::EndpointSlice { has_ready_endpoint } => {
                    let Some(service) = facts.labels.get(SERVICE_NAME) else { continue };
                    let namespace = Arc::clone(&stored.name.namespace);
                    let service = NamespacedName { namespace, name: service.into() };
                    if *has_ready_endpoint {
                        set(&mut self.ready_slices, &service, object, is_current);
                    }
                    above.extend(feeds.find(&Cluster::hub(), &GroupKind::new("", "Service"), &service));
                }
                KindFacts::None | KindFacts::Revision(_) | KindFacts::Service { .. } => {}
            }
        }
        above
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        let pods: usize = self.unready_pods.values().map(BTreeSet::len).sum();
        let replica_sets: usize = self.replica_sets.values().map(BTreeSet::len).sum();
        let slices: usize = self.ready_slices.values().map(BTreeSet::len).sum();
        pods + replica_sets + slices
    }

    /// What its Pods say about a workload that is not ready, and when time alone changes that.
    pub(crate) fn of_workload(
        &self,
        kind: &GroupKind,
        workload: &StoredObject,
        feeds: &Feeds,
        now: Timestamp,
        failed_after: SignedDuration,
    ) -> (Option<Below>, Option<Timestamp>) {
        let state = workload.facts.verdict.state;
        if !matches!(state, State::Failed | State::InProgress | State::Suspended) {
            return (None, None);
        }
        // Pods come and go in every rollout: one that is not ready counts once it has been so for long.
        let counts = |pod: &&UnreadyPod| pod.class != PodClass::NotReady || pod.since.is_some();
        let Some(pod) = self.current_pods(kind, workload, feeds).find(counts) else { return (None, None) };
        let due = pod.since.and_then(|since| since.checked_add(failed_after).ok());
        let has_lasted = due.is_none_or(|due| due <= now);
        let cause = Below::Cause(pod.object);
        match pod.class {
            PodClass::Permanent | PodClass::Failed => {
                let has_failed = has_lasted || pod.class == PodClass::Permanent;
                let fails = has_failed && state == State::InProgress;
                let below = if fails { Below::FailedPod(pod.object) } else { cause };
                (Some(below), due.filter(|_| !has_failed))
            }
            PodClass::NotReady if has_lasted => (Some(cause), None),
            PodClass::NotReady => (None, due),
            // Its owner has replaced it, unless the owner has failed, too.
            PodClass::Finished => (Some(cause).filter(|_| state == State::Failed), None),
        }
    }

    /// Whether the Service has an endpoint that is ready; `None` if its EndpointSlices cannot be read.
    pub(crate) fn has_ready_endpoint(&self, service: &NamespacedName, feeds: &Feeds) -> Option<bool> {
        let slices = GroupKind::new("discovery.k8s.io", "EndpointSlice");
        let (_, feed) = feeds.of_kind(&Cluster::hub(), &slices)?;
        (feed.listed && feed.unreadable.is_none()).then(|| self.ready_slices.contains_key(service))
    }

    /// The Pods of the current revision that are not ready, the most telling first.
    fn current_pods<'b>(
        &'b self,
        kind: &GroupKind,
        workload: &'b StoredObject,
        feeds: &'b Feeds,
    ) -> impl Iterator<Item = &'b UnreadyPod> {
        let is_readable = |kind: &GroupKind| {
            let feed = feeds.of_kind(&Cluster::hub(), kind);
            feed.is_some_and(|(_, feed)| feed.unreadable.is_none())
        };
        // An owner is in the namespace of what it owns.
        let below = |object: ObjectId| {
            feeds.object(object).filter(|below| below.name.namespace == workload.name.namespace)
        };
        let facts = &workload.facts;
        let newest = || {
            let replica_sets = self.replica_sets.get(&facts.uid)?;
            replica_sets
                .iter()
                .rev()
                .find_map(|revision| below(revision.object))
                .map(|newest| &newest.facts.uid)
        };
        let (owner, label) = match &*kind.kind {
            "Deployment" => (newest().filter(|_| is_readable(&GroupKind::new("apps", "ReplicaSet"))), None),
            "StatefulSet" => (Some(&facts.uid), Some(REVISION_HASH)),
            "DaemonSet" => (Some(&facts.uid), Some(TEMPLATE_GENERATION)),
            _ => (Some(&facts.uid), None),
        };
        let revision = match &facts.kind_facts {
            KindFacts::Revision(revision) if !Bug::CountOldRevisions.is_planted() => Some(&**revision),
            _ => None,
        };
        let pods = owner.and_then(|owner| self.unready_pods.get(owner));
        let pods = pods.filter(|_| is_readable(&GroupKind::pod())).into_iter().flatten();
        pods.filter(move |pod| {
            let Some(pod) = below(pod.object) else { return false };
            match label.and_then(|label| pod.facts.labels.get(label)).zip(revision) {
                Some((own, current)) => own == current,
                None => true,
            }
        })
    }
}

/// `None` for a Pod that is ready, or counts for nothing.
fn unready(object: ObjectId, name: &Arc<str>, facts: &Facts, pod: PodFacts) -> Option<UnreadyPod> {
    let verdict = &facts.verdict;
    let class = match verdict.state {
        _ if facts.deleting => return None,
        State::Ready | State::Terminating | State::Missing | State::Suspended => return None,
        State::Failed if pod.finished => PodClass::Finished,
        State::Failed if is_permanent(&verdict.reason) => PodClass::Permanent,
        State::Failed => PodClass::Failed,
        State::InProgress | State::Unknown => PodClass::NotReady,
    };
    Some(UnreadyPod { class, since: verdict.since, name: Arc::clone(name), object })
}

/// Adds an entry, or removes it.
fn set<K: Clone + Eq + Hash, T: Ord>(
    index: &mut HashMap<K, BTreeSet<T>>,
    key: &K,
    entry: T,
    is_current: bool,
) {
    if is_current {
        index.entry(key.clone()).or_default().insert(entry);
    } else {
        remove_from_set(index, key, &entry);
    }
}

fn kind_of(owner: &OwnerReference) -> GroupKind {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    GroupKind::new(group, &owner.kind)
}

fn is_workload(owner: &OwnerReference) -> bool {
    !kinds_below(&kind_of(owner)).is_empty()
}

fn owner_of(owner: &OwnerReference, stored: &StoredObject, feeds: &Feeds) -> Option<ObjectId> {
    let kind = kind_of(owner);
    let name = NamespacedName { namespace: Arc::clone(&stored.name.namespace), name: (*owner.name).into() };
    let found = feeds.find(&Cluster::hub(), &kind, &name)?;
    feeds.object(found).filter(|object| object.facts.uid == owner.uid).map(|_| found)
}

/// The owner of a Pod, and the owners of that if it is a ReplicaSet.
fn ancestors(owner: &OwnerReference, stored: &StoredObject, feeds: &Feeds) -> BTreeSet<ObjectId> {
    let Some(owner) = owner_of(owner, stored, feeds) else { return BTreeSet::new() };
    let owners = feeds
        .object(owner)
        .into_iter()
        .flat_map(|object| object.facts.owners.iter().filter_map(|next| owner_of(next, object, feeds)));
    owners.chain([owner]).collect()
}
