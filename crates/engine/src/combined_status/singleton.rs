//! Singletons: an object that is bound to exactly one cluster gets the status that this cluster reports.
//!
//! The label marks such an object before its status is written for the first time, so that a later process knows
//! which statuses are ours to clear.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_model::Value;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value as Json, json};

use crate::{
    digest::Digest,
    effect::{Effect, Part, Patched, Slot, Urgency, Write},
    effect_queue::Timer,
    event::{Outcome, Unreadable},
    facts::{Facts, ResourceVersion},
    feeds::Feeds,
    group_ref::OwnKind,
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    overwrite_backoff::OverwriteBackoff,
    planted::Bug,
    publication::CONFLICT_TIMEOUT,
    registry::GroupId,
    requested_fields::RequestedFields,
};

use super::{CombinedStatuses, binding::BindingId, can_read, policy::PolicyState};

/// The label of objects whose status comes from one cluster. Its value is `true`.
pub const SINGLETON_LABEL: &str = "bellwether.dev/singleton-status";

const LABELLED: &str = "true";

/// An API server may still make a write this long after its response was lost: it ends requests after a minute.
const LATE_WRITE: SignedDuration = SignedDuration::from_secs(90);

/// Their own controllers decide about deletion and registration by their status.
const EXEMPT: &[(&str, &str)] = &[("", "Namespace"), ("apiextensions.k8s.io", "CustomResourceDefinition")];

type Key = (GroupKind, NamespacedName);

#[derive(Debug, Default)]
pub(super) struct Singletons {
    /// The bindings that ask for the status of an object.
    asking: BTreeMap<Key, BTreeSet<BindingId>>,
    /// Objects with the label, also those of which the watch does not show it yet.
    labelled: BTreeSet<Key>,
    writes: BTreeMap<Key, StatusWrites>,
    /// Objects to compare with what they should be.
    unchecked: BTreeSet<Key>,
    /// Kinds with labelled objects that no policy follows any more.
    leftover: BTreeMap<GroupKind, FeedId>,
}

/// What was written of one object.
#[derive(Debug, Default)]
struct StatusWrites {
    /// The status that was written last, and what the API server made of it: it may drop fields that it does not
    /// know.
    stored: Option<(Digest, Digest)>,
    /// A write whose result the watch has not shown yet.
    pending: Option<PendingStatus>,
    /// Until then, the object may get the label: the response to its write may be lost, or the watch late.
    expected_label: Option<Timestamp>,
    overwrites: OverwriteBackoff,
}

#[derive(Debug)]
struct PendingStatus {
    /// `None` after a write of the label, or after a conflict.
    written: Option<Digest>,
    /// `None` after a conflict: any other version than `before` will do.
    version: Option<ResourceVersion>,
    before: ResourceVersion,
    until: Timestamp,
}

/// What the status of an object should be.
#[derive(Debug, PartialEq)]
pub(super) enum WantedStatus {
    /// What the only cluster reports.
    Of(Json),
    /// The only cluster reports nothing current: the status stays as it is.
    Unchanged,
    /// It is not a singleton: what we wrote is cleared.
    None,
}

/// Whether the status of objects of this kind may come from their only cluster.
pub fn can_be_singleton(kind: &GroupKind) -> bool {
    // We write the statuses of our own kinds.
    !kind.is_bellwether() && !EXEMPT.contains(&(&*kind.group, &*kind.kind))
}

/// Whether the kind has a status subresource in the hub, as far as that is known.
fn has_status(kind: &GroupKind, feeds: &Feeds) -> bool {
    let served = feeds.of_kind(&Cluster::hub(), kind).and_then(|(_, feed)| feed.served.as_ref());
    served.is_none_or(|served| served.has_status)
}

/// What singletons need of an object, in the hub and in its cluster.
pub(super) fn status_field() -> RequestedFields {
    RequestedFields::paths([&["status"][..]])
}

fn slot((kind, name): &Key) -> Slot {
    let object = ObjectKey { cluster: Cluster::hub(), kind: kind.clone(), name: name.clone() };
    Slot { object, part: Part::ForeignStatus }
}

fn has_kind(keys: &BTreeSet<Key>, kind: &GroupKind) -> bool {
    let first = (kind.clone(), NamespacedName::new("", ""));
    keys.range(first..).next().is_some_and(|(next, _)| next == kind)
}

fn is_labelled(facts: &Facts) -> bool {
    facts.labels.get(SINGLETON_LABEL) == Some(LABELLED)
}

/// Whether an object in the hub has the label. `None` if its kind is not watched at the moment.
fn has_label((kind, name): &Key, feeds: &Feeds) -> Option<bool> {
    let (id, feed) = feeds.of_kind(&Cluster::hub(), kind)?;
    let is_current = feed.listed && feed.unreadable.is_none() && !feed.is_torn();
    let object = feeds.find_in(id, name).and_then(|object| feeds.object(object));
    is_current.then(|| object.is_some_and(|object| is_labelled(&object.facts)))
}

/// Until when the watch must have shown a label that was written.
fn expect_label(key: &Key, cx: &mut GroupingContext<'_>) -> Timestamp {
    let until = cx.now.checked_add(LATE_WRITE).unwrap_or(cx.now);
    cx.queue.schedule(until, Timer::Retry(slot(key)));
    until
}

fn status_of(facts: &Facts) -> Option<Json> {
    let values = facts.values.as_deref().filter(|values| values.requested.covers(&status_field()))?;
    let status = values.fields.get("status").filter(|status| **status != Value::Null);
    Some(status.map_or_else(|| json!({}), |status| json!(status)))
}

fn is_empty(status: &Json) -> bool {
    status.as_object().is_none_or(Map::is_empty)
}

impl Singletons {
    /// A binding asks for the status of its object, or does not ask any more.
    pub(super) fn ask(&mut self, key: Key, binding: BindingId, asks: bool) {
        if asks {
            self.asking.entry(key.clone()).or_default().insert(binding);
        } else {
            let Some(asking) = self.asking.get_mut(&key) else { return };
            asking.remove(&binding);
            if asking.is_empty() {
                self.asking.remove(&key);
            }
        }
        self.unchecked.insert(key);
    }

    pub(super) fn is_asked(&self, kind: &GroupKind, name: &NamespacedName) -> bool {
        !self.asking.is_empty() && self.asking.contains_key(&(kind.clone(), name.clone()))
    }

    pub(super) fn check(&mut self, kind: &GroupKind, name: &NamespacedName) {
        self.unchecked.insert((kind.clone(), name.clone()));
    }

    /// It may be known now which of them are not wanted any more.
    pub(super) fn check_labelled(&mut self) {
        self.unchecked.extend(self.labelled.iter().cloned());
    }

    /// An object in the hub changed.
    pub(super) fn observe(&mut self, kind: &GroupKind, name: &NamespacedName, facts: &Facts, now: Timestamp) {
        let is_concerned = is_labelled(facts)
            || self.is_asked(kind, name)
            || (!self.labelled.is_empty() && self.labelled.contains(&(kind.clone(), name.clone())));
        if !is_concerned {
            return;
        }
        let key = (kind.clone(), name.clone());
        let is_outdated = self.writes.get(&key).is_some_and(|writes| writes.is_before_own(facts));
        let has_lost_label = if is_outdated {
            false
        } else if is_labelled(facts) {
            self.labelled.insert(key.clone());
            false
        } else {
            self.labelled.remove(&key)
        };
        if let Some(writes) = self.writes.get_mut(&key) {
            if has_lost_label && writes.pending.is_none() {
                writes.overwrites.observe_foreign(&facts.resource_version);
            }
            writes.observe(facts, now);
        }
        self.unchecked.insert(key);
    }

    pub(super) fn removed(&mut self, kind: &GroupKind, name: &NamespacedName) {
        let key = (kind.clone(), name.clone());
        self.labelled.remove(&key);
        self.writes.remove(&key);
        self.unchecked.insert(key);
    }

    pub(super) fn clock_set(&mut self, by: SignedDuration) {
        for writes in self.writes.values_mut() {
            writes.overwrites.clock_set(by);
            let pending = writes.pending.as_mut().map(|pending| &mut pending.until);
            for until in pending.into_iter().chain(&mut writes.expected_label) {
                *until = until.checked_add(by).unwrap_or(*until);
            }
        }
    }
}

impl StatusWrites {
    /// Whether this version is older than a write that has been confirmed.
    fn is_before_own(&self, facts: &Facts) -> bool {
        let own = self.pending.as_ref().and_then(|pending| pending.version.as_ref());
        own.is_some_and(|own| facts.resource_version.is_before(own))
    }

    fn observe(&mut self, facts: &Facts, now: Timestamp) {
        let version = &facts.resource_version;
        let pending = self.pending.take_if(|pending| match &pending.version {
            Some(written) => !version.is_before(written),
            None => *version != pending.before || pending.until <= now,
        });
        let Some(status) = status_of(facts).map(|status| Digest::of(&status)) else { return };
        match pending {
            Some(PendingStatus { written: Some(written), version: Some(own), .. }) if own == *version => {
                self.stored = Some((written, status));
            }
            // Someone else wrote in the meantime.
            Some(_) => {}
            None => {
                if self.stored.is_some_and(|(_, stored)| stored != status) {
                    self.overwrites.observe_foreign(version);
                }
            }
        }
    }

    /// Whether this status is stored, as far as the API server keeps it.
    fn has_stored(&self, wanted: &Json, stored: &Json) -> bool {
        let (wanted, stored) = (Digest::of(wanted), Digest::of(stored));
        wanted == stored || self.stored == Some((wanted, stored))
    }
}

impl CombinedStatuses {
    /// The sets of clusters that an object is bound to by the policies that ask for its status.
    fn singleton_clusters(&self, key: &Key) -> impl Iterator<Item = &BTreeSet<Cluster>> {
        let asking = self.singletons.asking.get(key).into_iter().flatten();
        let policies = asking.filter_map(|id| self.policies.get(self.bindings.get(*id)?.policy));
        policies.map(|policy| &policy.clusters)
    }

    /// The only cluster. The search stops at a second one.
    fn singleton_cluster(&self, key: &Key) -> Option<&Cluster> {
        let mut clusters = self.singleton_clusters(key).flatten();
        let first = clusters.next()?;
        clusters.all(|cluster| cluster == first).then_some(first)
    }

    fn count_singleton_clusters(&self, key: &Key) -> usize {
        let mut sets = self.singleton_clusters(key);
        match (sets.next(), sets.next()) {
            (None, _) => 0,
            (Some(only), None) => only.len(),
            (Some(first), Some(second)) => {
                first.iter().chain(second).chain(sets.flatten()).collect::<BTreeSet<_>>().len()
            }
        }
    }

    fn wanted_status(&self, key: &Key, feeds: &Feeds) -> WantedStatus {
        let Some(cluster) = self.singleton_cluster(key) else {
            return if self.can_tell(key, feeds) { WantedStatus::None } else { WantedStatus::Unchanged };
        };
        self.reported_status(key, cluster, feeds).map_or(WantedStatus::Unchanged, WantedStatus::Of)
    }

    /// Whether it is known which policies bind an object. While one of them cannot be read, nothing is cleared.
    fn can_tell(&self, (kind, _): &Key, feeds: &Feeds) -> bool {
        can_read(feeds, OwnKind::BindingPolicy)
            && self.policies.iter().all(|policy| {
                policy.kind(kind).is_none_or(|_| policy.is_authoritative(feeds)) && policy.kinds.is_some()
            })
    }

    /// `None` if it is not known, or stale.
    fn reported_status(&self, key: &Key, cluster: &Cluster, feeds: &Feeds) -> Option<Json> {
        let (kind, name) = key;
        let asking = self.singletons.asking.get(key)?;
        let mut policies = asking.iter().filter_map(|id| Some(self.bindings.get(*id)?.policy));
        let (id, feed) = feeds.of_kind(cluster, kind)?;
        if feed.unreadable == Some(Unreadable::NotServed) {
            return Some(json!({}));
        }
        let is_current = feed.listed && feed.unreadable.is_none();
        if !is_current || policies.any(|policy| self.inventory.is_stale(cluster, policy)) {
            return None;
        }
        match feeds.find_in(id, name).and_then(|object| feeds.object(object)) {
            Some(object) => status_of(&object.facts),
            None => Some(json!({})),
        }
    }

    /// The next write of an object: the label, then the status; or the status, then the label.
    pub(super) fn status_write(&self, object: &ObjectKey, feeds: &Feeds, now: Timestamp) -> Option<Write> {
        let key = (object.kind.clone(), object.name.clone());
        let stored = feeds.object(feeds.find(&Cluster::hub(), &key.0, &key.1)?)?;
        if !has_status(&key.0, feeds) {
            return None;
        }
        let facts = &stored.facts;
        let nothing = StatusWrites::default();
        let writes = self.singletons.writes.get(&key).unwrap_or(&nothing);
        if writes.pending.is_some() || writes.overwrites.backs_off_until(now).is_some() {
            return None;
        }
        let set = |part, path: &[&str], value| {
            Some(Write::SetFields {
                uid: facts.uid.clone(),
                resource_version: facts.resource_version.clone(),
                part,
                fields: [(path.iter().map(|field| (*field).into()).collect(), value)].into(),
            })
        };
        let labels = |is_singleton: bool| {
            let others = facts.labels.iter().filter(|(key, _)| **key != *SINGLETON_LABEL);
            let others = others.map(|(key, value)| (&**key, &**value));
            let own = is_singleton.then_some((SINGLETON_LABEL, LABELLED));
            set(
                Patched::Object,
                &["metadata", "labels"],
                json!(others.chain(own).collect::<BTreeMap<_, _>>()),
            )
        };
        let status = status_of(facts)?;
        let set_status = |wanted: Json| {
            // A CRD may require fields in a status, but hardly ever the status.
            let wanted = if is_empty(&wanted) { Json::Null } else { wanted };
            set(Patched::Status, &["status"], wanted)
        };
        match (self.wanted_status(&key, feeds), is_labelled(facts)) {
            (WantedStatus::Of(_), false) if !Bug::WriteStatusBeforeLabel.is_planted() => labels(true),
            (WantedStatus::Of(wanted), _) => {
                (!writes.has_stored(&wanted, &status)).then(|| set_status(wanted))?
            }
            (WantedStatus::None, true) => {
                let cleared = json!({});
                if writes.has_stored(&cleared, &status) { labels(false) } else { set_status(cleared) }
            }
            (WantedStatus::Unchanged, _) | (WantedStatus::None, false) => None,
        }
    }

    pub(super) fn status_set(
        &mut self,
        object: &ObjectKey,
        write: &Write,
        outcome: &Outcome,
        cx: &mut GroupingContext<'_>,
    ) {
        let Write::SetFields { resource_version: before, part, fields, .. } = write else { return };
        let key = (object.kind.clone(), object.name.clone());
        let is_labelling =
            *part == Patched::Object && fields.iter().any(|(_, value)| value.get(SINGLETON_LABEL).is_some());
        // If the policy is gone already, the watch would never show the label.
        let may_be_labelled = is_labelling && matches!(outcome, Outcome::Written(_) | Outcome::Failed(_));
        if may_be_labelled {
            self.singletons.labelled.insert(key.clone());
            self.hold_leftover(&key.0, cx);
        }
        let writes = self.singletons.writes.entry(key.clone()).or_default();
        if may_be_labelled {
            writes.expected_label = Some(expect_label(&key, cx));
        }
        let version = match outcome {
            Outcome::Written(version) => version.clone(),
            Outcome::Conflict => None,
            _ => return,
        };
        let written = fields.first().filter(|_| *part == Patched::Status);
        let status = written.map(|(_, value)| match value {
            Json::Null => Digest::of(&json!({})),
            status => Digest::of(status),
        });
        let was_written = matches!(outcome, Outcome::Written(_));
        let until = cx.now.checked_add(CONFLICT_TIMEOUT).unwrap_or(cx.now);
        writes.pending = Some(PendingStatus {
            written: status.filter(|_| was_written),
            version: version.clone(),
            before: before.clone(),
            until,
        });
        if let Some(version) = &version {
            writes.overwrites.record_own_write(version, cx.now);
        }
        cx.queue.schedule(until, Timer::Retry(slot(&key)));
        if let Some(until) = writes.overwrites.backs_off_until(cx.now) {
            cx.queue.schedule(until, Timer::Retry(slot(&key)));
        }
        // The watch may have been faster than the response.
        let stored = cx.feeds.find(&Cluster::hub(), &key.0, &key.1).and_then(|id| cx.feeds.object(id));
        if let Some(stored) = stored {
            writes.observe(&stored.facts, cx.now);
        }
        self.singletons.unchecked.insert(key);
    }

    /// Waited long enough for the watch, or for another writer.
    pub(super) fn retry_status(&mut self, object: &ObjectKey, cx: &mut GroupingContext<'_>) {
        let key = (object.kind.clone(), object.name.clone());
        if let Some(writes) = self.singletons.writes.get_mut(&key) {
            writes.pending.take_if(|pending| pending.until <= cx.now);
            if writes.expected_label.take_if(|until| *until <= cx.now).is_some() {
                match has_label(&key, cx.feeds) {
                    // It was not written, or the object is deleted.
                    Some(false) => _ = self.singletons.labelled.remove(&key),
                    Some(true) => {}
                    None => writes.expected_label = Some(expect_label(&key, cx)),
                }
            }
        }
        self.singletons.unchecked.insert(key);
    }

    /// Keeps following a kind until no object of it is labelled. The policy that asked for them may be gone.
    pub(super) fn hold_leftover(&mut self, kind: &GroupKind, cx: &mut GroupingContext<'_>) {
        if !self.singletons.leftover.contains_key(kind) {
            let feed = cx.feeds.acquire(&Cluster::hub(), kind, &status_field(), &mut cx.queue.effects);
            self.singletons.leftover.insert(kind.clone(), feed);
        }
    }

    /// A policy leaves a kind: what we wrote to its objects has to be cleared first.
    pub(super) fn leave_singletons(&mut self, kind: &GroupKind, cx: &mut GroupingContext<'_>) {
        if has_kind(&self.singletons.labelled, kind) {
            self.hold_leftover(kind, cx);
        }
    }

    pub(super) fn publish_singletons(&mut self, cx: &mut GroupingContext<'_>) {
        for key in std::mem::take(&mut self.singletons.unchecked) {
            let is_concerned =
                self.singletons.asking.contains_key(&key) || self.singletons.labelled.contains(&key);
            if !is_concerned {
                self.singletons.writes.remove(&key);
            }
            let urgency = is_concerned.then_some(Urgency::Transition);
            cx.queue.effects.push(Effect::EnqueueWrite(slot(&key), urgency));
        }
        let Singletons { labelled, leftover, .. } = &mut self.singletons;
        leftover.retain(|kind, feed| {
            let is_known = cx.feeds.get(*feed).is_some_and(|feed| feed.is_known() && !feed.is_torn());
            let is_needed = !is_known || has_kind(labelled, kind);
            if !is_needed {
                cx.feeds.release(*feed);
            }
            is_needed
        });
    }

    /// The objects whose status a policy asks for without getting it, and why.
    pub(super) fn inapplicable_singletons(&self, policy: GroupId, feeds: &Feeds) -> Vec<(String, String)> {
        let bound = self.policies.get(policy).into_iter().flat_map(PolicyState::kinds);
        let bindings = bound.flat_map(|(_, kind)| &kind.bindings).filter_map(|id| self.bindings.get(*id));
        let objects = bindings.filter(|binding| binding.wants_singleton).filter_map(|binding| {
            let key = (binding.kind.clone(), binding.name.clone());
            let why = match self.count_singleton_clusters(&key) {
                _ if !can_be_singleton(&binding.kind) => "is of an exempt kind".to_owned(),
                _ if !has_status(&binding.kind, feeds) => {
                    "is of a kind without a status subresource".to_owned()
                }
                0 => "is bound to no cluster".to_owned(),
                1 => return None,
                count => format!("is bound to {count} clusters by the policies that ask for its status"),
            };
            Some((format!("{} {}", binding.kind, binding.name), why))
        });
        // In the same order after a restart.
        let mut objects: Vec<_> = objects.collect();
        objects.sort_unstable();
        objects
    }
}
