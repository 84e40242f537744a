//! What the Pods of a workload and the endpoints of a Service say about it.
//!
//! A workload rarely reports that it fails; its Pods do. Only Pods that are not ready are indexed, by revision and
//! the most telling first, so that a change costs the same however many Pods a workload has.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
    sync::Arc,
};

use bellwether_health::{
    Source, Verdict,
    reasons::{PROGRESS_DEADLINE_EXCEEDED, is_permanent},
};
use bellwether_model::State;
use jiff::{SignedDuration, Timestamp};

use crate::{
    event::Unreadable,
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
pub fn kinds_below(kind: &GroupKind) -> &'static [(&'static str, &'static str)] {
    match (&*kind.group, &*kind.kind) {
        ("apps", "Deployment") => &[("apps", "ReplicaSet"), ("", "Pod")],
        ("apps", "DaemonSet" | "ReplicaSet" | "StatefulSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => &[("", "Pod")],
        ("", "Service") => &[("discovery.k8s.io", "EndpointSlice")],
        _ => &[],
    }
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
    /// It is Failed because of a Pod, by the stored status: what is below cannot be listed yet.
    StoredFailure,
}

impl Below {
    /// The Pod because of which the member is not ready, if Pods are known.
    pub(crate) fn cause(self) -> Option<ObjectId> {
        match self {
            Self::Cause(pod) | Self::FailedPod(pod) => Some(pod),
            Self::NoReadyEndpoints | Self::StoredFailure => None,
        }
    }
}

/// A Pod that is not ready. The most telling one sorts first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnreadyPod {
    class: PodClass,
    /// `None`, unknown, sorts before all times. Always known of a Pod that has not failed.
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

/// An owner is in the namespace of what it owns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Owner {
    namespace: Arc<str>,
    uid: Box<str>,
}

/// The Pods of one owner, by the revision in their label; `None` without one.
type ByRevision = BTreeMap<Option<Box<str>>, BTreeSet<UnreadyPod>>;

#[derive(Debug, Default)]
pub(crate) struct BelowIndex {
    unready_pods: HashMap<Owner, ByRevision>,
    /// The newest revision is the last.
    replica_sets: HashMap<Owner, BTreeSet<Revision>>,
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
                            self.set_pod(owner, stored, facts, entry, is_current);
                        }
                        above.extend(ancestors(owner, stored, feeds));
                    }
                }
                KindFacts::ReplicaSet { revision } => {
                    for owner in facts.owners.iter().filter(|owner| is_workload(owner)) {
                        let name = Arc::clone(&stored.name.name);
                        let entry = Revision { number: *revision, name, object };
                        set(&mut self.replica_sets, &Owner::of(stored, &owner.uid), entry, is_current);
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
                KindFacts::None | KindFacts::Revision { .. } | KindFacts::Service { .. } => {}
            }
        }
        above
    }

    fn set_pod(
        &mut self,
        owner: &OwnerReference,
        stored: &StoredObject,
        facts: &Facts,
        entry: UnreadyPod,
        is_current: bool,
    ) {
        let label = revision_label(&kind_of(owner)).and_then(|label| facts.labels.get(label));
        let (owner, revision) = (Owner::of(stored, &owner.uid), label.map(Box::from));
        if is_current {
            self.unready_pods.entry(owner).or_default().entry(revision).or_default().insert(entry);
        } else if let Some(revisions) = self.unready_pods.get_mut(&owner) {
            let pods = revisions.get_mut(&revision);
            if pods.is_some_and(|pods| pods.remove(&entry) && pods.is_empty()) {
                revisions.remove(&revision);
            }
            if revisions.is_empty() {
                self.unready_pods.remove(&owner);
            }
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        let pods: usize = self.unready_pods.values().flat_map(BTreeMap::values).map(BTreeSet::len).sum();
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
        let (facts, verdict) = (&workload.facts, &workload.facts.verdict);
        // Until its controller has observed the latest generation, its Pods may all be of an old revision.
        if !facts.settled || !matches!(verdict.state, State::Failed | State::InProgress | State::Suspended) {
            return (None, None);
        }
        let Some(pod) = self.worst_pod(kind, workload, feeds) else { return (None, None) };
        let due = pod.since.and_then(|since| since.checked_add(failed_after).ok());
        let has_lasted = due.is_none_or(|due| due <= now);
        let cause = Below::Cause(pod.object);
        match pod.class {
            PodClass::Permanent | PodClass::Failed => {
                let has_failed = has_lasted || pod.class == PodClass::Permanent;
                let below =
                    if has_failed && may_fail(verdict) { Below::FailedPod(pod.object) } else { cause };
                (Some(below), due.filter(|_| !has_failed))
            }
            // Pods come and go in every rollout: one is a cause if it has been so for long.
            PodClass::NotReady if has_lasted => (Some(cause), None),
            PodClass::NotReady => (None, due),
            // Its owner has replaced it, unless the owner has failed, too.
            PodClass::Finished => (Some(cause).filter(|_| verdict.state == State::Failed), None),
        }
    }

    /// Whether the Service has an endpoint that is ready; `None` if its EndpointSlices are not known.
    pub(crate) fn has_ready_endpoint(&self, service: &NamespacedName, feeds: &Feeds) -> Option<bool> {
        let slices = GroupKind::new("discovery.k8s.io", "EndpointSlice");
        is_known_below(&slices, feeds).then(|| self.ready_slices.contains_key(service))
    }

    /// The Pod of the current revision that is not ready and the most telling.
    fn worst_pod(&self, kind: &GroupKind, workload: &StoredObject, feeds: &Feeds) -> Option<&UnreadyPod> {
        if !is_known_below(&GroupKind::pod(), feeds) {
            return None;
        }
        let (current, updated_from) = match &workload.facts.kind_facts {
            KindFacts::Revision { current, updated_from } if !Bug::CountOldRevisions.is_planted() => {
                (Some(&**current), *updated_from)
            }
            _ => (None, 0),
        };
        let owner = Owner::of(workload, &workload.facts.uid);
        if &*kind.kind != "Deployment" {
            let counts = |revision: &Option<Box<str>>, pod: &UnreadyPod| match (revision, current) {
                (Some(revision), Some(current)) => {
                    **revision == *current || ordinal(&pod.name).is_some_and(|it| it < updated_from)
                }
                _ => true,
            };
            let revisions = self.unready_pods.get(&owner)?.iter();
            let first =
                revisions.filter_map(|(revision, pods)| pods.iter().find(|pod| counts(revision, pod)));
            return first.min();
        }
        if !is_known_below(&GroupKind::new("apps", "ReplicaSet"), feeds) {
            return None;
        }
        // The ReplicaSet may be listed after the Deployment that names its revision.
        let newest = self.replica_sets.get(&owner)?.iter().next_back().filter(|newest| {
            current.is_none_or(|current| current.parse().is_ok_and(|current: u64| newest.number == current))
        })?;
        let newest = feeds.object(newest.object)?;
        let pods = self.unready_pods.get(&Owner::of(newest, &newest.facts.uid))?;
        pods.values().filter_map(BTreeSet::first).min()
    }
}

impl Owner {
    /// `near` is in the namespace of the owner.
    fn of(near: &StoredObject, uid: &str) -> Self {
        Self { namespace: Arc::clone(&near.name.namespace), uid: uid.into() }
    }
}

/// Whether the objects of a kind count. While the API server fails, those that were listed before do.
fn is_known_below(kind: &GroupKind, feeds: &Feeds) -> bool {
    feeds.of_kind(&Cluster::hub(), kind).is_some_and(|(_, feed)| {
        feed.listed && matches!(feed.unreadable, None | Some(Unreadable::Failing { .. }))
    })
}

/// Whether the API server fails to list a kind below an object for the first time.
pub(crate) fn is_first_list_failing(kind: &GroupKind, feeds: &Feeds) -> bool {
    let is_failing = |(group, kind): &(&str, &str)| {
        feeds.of_kind(&Cluster::hub(), &GroupKind::new(group, kind)).is_some_and(|(_, feed)| {
            !feed.listed && matches!(feed.unreadable, Some(Unreadable::Failing { .. }))
        })
    };
    kinds_below(kind).iter().any(is_failing)
}

/// Whether a failed Pod makes its workload `Failed`, with the reason of the Pod. A user's rule for the workload
/// comes first. A deadline only says for how long.
pub(crate) fn may_fail(verdict: &Verdict) -> bool {
    let is_deadline = verdict.state == State::Failed && verdict.reason == PROGRESS_DEADLINE_EXCEEDED;
    let is_unready = matches!(verdict.state, State::InProgress | State::Suspended);
    verdict.rule.source != Source::User && (is_unready || is_deadline)
}

/// The label with which the Pods of a kind name their revision.
fn revision_label(owner: &GroupKind) -> Option<&'static str> {
    match (&*owner.group, &*owner.kind) {
        ("apps", "StatefulSet") => Some(REVISION_HASH),
        ("apps", "DaemonSet") => Some(TEMPLATE_GENERATION),
        _ => None,
    }
}

/// Of a Pod of a StatefulSet.
fn ordinal(name: &str) -> Option<u32> {
    name.rsplit_once('-')?.1.parse().ok()
}

/// `None` for a Pod that is ready, or counts for nothing: one that has not failed, and of which it is not known since
/// when it is not ready.
fn unready(object: ObjectId, name: &Arc<str>, facts: &Facts, pod: PodFacts) -> Option<UnreadyPod> {
    let verdict = &facts.verdict;
    let class = match verdict.state {
        _ if facts.deleting => return None,
        State::Ready | State::Terminating | State::Missing | State::Suspended => return None,
        State::Failed if pod.finished => PodClass::Finished,
        State::Failed if is_permanent(&verdict.reason) => PodClass::Permanent,
        State::Failed => PodClass::Failed,
        State::InProgress | State::Unknown => {
            verdict.since?;
            PodClass::NotReady
        }
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
