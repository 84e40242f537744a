//! The store of facts, by feed. A feed is one kind in one cluster, listed and watched once for all groups
//! that use it. It ends with the step in which its last user releases it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    sync::Arc,
};

use bellwether_health::user::UserRules;
use slab::Slab;

use crate::{
    effect::Effect,
    event::{DiscoveredKinds, Unreadable},
    facts::{Facts, OwnFingerprint, ResourceVersion, ServedResource},
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    interner::Interner,
    lens::Lens,
    planted::Bug,
    requested_fields::RequestedFields,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId(usize);

impl ObjectId {
    /// Sorts before all others.
    pub(crate) const FIRST: Self = Self(0);
}

#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) feed: FeedId,
    pub(crate) name: NamespacedName,
    pub(crate) facts: Facts,
    /// Set for our own kinds.
    pub(crate) own: Option<OwnFingerprint>,
    /// The number of the list in which it was last seen, for mark and sweep.
    round: u64,
    /// The API server confirmed our delete; the watch has not reported it yet.
    pub(crate) deleted_by_us: bool,
    /// After a write of ours: the resourceVersion that the watch reported last.
    last_observed: Option<ResourceVersion>,
}

impl StoredObject {
    /// The object has this resourceVersion by the response to our write; the watch has not reported it yet.
    pub(crate) fn record_write(&mut self, version: ResourceVersion) {
        let last_observed = mem::replace(&mut self.facts.resource_version, version);
        self.last_observed.get_or_insert(last_observed);
        self.own.iter_mut().for_each(OwnFingerprint::invalidate);
    }

    /// Merges a watch event that is older than our last write but newer than the last event. Our writes have
    /// a resourceVersion precondition, so only we wrote in between: owners and version are known better,
    /// everything else is new. Returns the previous facts if they differ.
    fn merge_older(&mut self, mut facts: Facts) -> Option<Facts> {
        let last_observed = self
            .last_observed
            .as_mut()
            .filter(|last_observed| !facts.resource_version.is_before(last_observed))?;
        *last_observed = mem::replace(&mut facts.resource_version, self.facts.resource_version.clone());
        facts.owners.clone_from(&self.facts.owners);
        facts.deleting |= self.deleted_by_us;
        (facts != self.facts).then(|| mem::replace(&mut self.facts, facts))
    }
}

#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) cluster: Cluster,
    pub(crate) kind: GroupKind,
    pub(crate) served: Option<ServedResource>,
    pub(crate) unreadable: Option<Unreadable>,
    /// The initial list has completed.
    pub(crate) listed: bool,
    /// A list has started and not completed, or the rules for the kind have changed since.
    listing: bool,
    lens: Arc<Lens>,
    /// The union of what its users want.
    requested: Arc<RequestedFields>,
    users: usize,
    round: u64,
    objects: HashMap<Arc<str>, BTreeMap<Arc<str>, ObjectId>>,
}

impl Feed {
    /// The initial list has completed, or the kind cannot be read.
    pub(crate) fn is_known(&self) -> bool {
        self.listed || self.unreadable.is_some() || Bug::PublishBeforeListed.is_planted()
    }

    /// A relist is in progress: some objects are from the new list, the others from before. Such a state may
    /// never have existed in the cluster.
    pub(crate) fn is_torn(&self) -> bool {
        self.listing && self.unreadable.is_none()
    }

    /// Sorted by name.
    pub(crate) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = ObjectId> {
        self.objects.get(namespace).into_iter().flat_map(BTreeMap::values).copied()
    }

    fn find(&self, name: &NamespacedName) -> Option<ObjectId> {
        self.objects.get(&name.namespace)?.get(&name.name).copied()
    }

    fn all(&self) -> Vec<ObjectId> {
        let mut all: Vec<_> = self.objects.values().flat_map(BTreeMap::values).copied().collect();
        all.sort_unstable();
        all
    }
}

/// The effect of a watch event on the store.
#[derive(Debug)]
pub(crate) enum StoreUpdate {
    /// New or changed, with the previous facts.
    Changed(ObjectId, Option<Box<(Facts, Option<OwnFingerprint>)>>),
    VersionOnly(ObjectId),
    /// Older than our last write, but newer than the last event: the facts were merged. With the previous
    /// facts.
    OlderThanOurWrite(ObjectId, Box<Facts>),
    /// Older than what is stored; ignored.
    Stale,
}

/// Emits `Follow`, or updates the lens of one that this step has emitted already.
fn follow(id: FeedId, feed: &Feed, effects: &mut Vec<Effect>) {
    let pending = effects.iter_mut().find_map(|effect| match effect {
        Effect::Follow { feed, lens, .. } if *feed == id => Some(lens),
        _ => None,
    });
    match pending {
        Some(lens) => *lens = Arc::clone(&feed.lens),
        None => effects.push(Effect::Follow {
            feed: id,
            cluster: feed.cluster.clone(),
            kind: feed.kind.clone(),
            lens: Arc::clone(&feed.lens),
        }),
    }
}

#[derive(Debug, Default)]
pub(crate) struct Feeds {
    by_id: BTreeMap<FeedId, Feed>,
    by_kind: HashMap<(Cluster, GroupKind), FeedId>,
    objects: Slab<StoredObject>,
    /// Feeds without users. They end with the step, unless one gets a user before.
    unused: BTreeSet<FeedId>,
    rules: Arc<UserRules>,
    /// Why HealthRules cannot be read.
    rules_unreadable: Option<Unreadable>,
    /// By discovery in the hub.
    discovered_in_hub: Option<Arc<DiscoveredKinds>>,
    interner: Interner,
    last_id: u32,
}

impl Feeds {
    pub(crate) fn get(&self, feed: FeedId) -> Option<&Feed> {
        self.by_id.get(&feed)
    }

    pub(crate) fn get_mut(&mut self, feed: FeedId) -> Option<&mut Feed> {
        self.by_id.get_mut(&feed)
    }

    pub(crate) fn of_kind(&self, cluster: &Cluster, kind: &GroupKind) -> Option<(FeedId, &Feed)> {
        let id = *self.by_kind.get(&(cluster.clone(), kind.clone()))?;
        Some((id, self.by_id.get(&id)?))
    }

    pub(crate) fn object(&self, id: ObjectId) -> Option<&StoredObject> {
        self.objects.get(id.0)
    }

    pub(crate) fn object_mut(&mut self, id: ObjectId) -> Option<&mut StoredObject> {
        self.objects.get_mut(id.0)
    }

    pub(crate) fn find(
        &self,
        cluster: &Cluster,
        kind: &GroupKind,
        name: &NamespacedName,
    ) -> Option<ObjectId> {
        self.of_kind(cluster, kind)?.1.find(name)
    }

    /// Those kinds that are not listed yet, or whose relist is in progress.
    pub(crate) fn inconsistent_kinds<'a>(
        &self,
        kinds: impl Iterator<Item = (&'a GroupKind, FeedId)>,
    ) -> Vec<GroupKind> {
        let is_consistent = |feed: &Feed| feed.is_known() && !feed.is_torn();
        kinds
            .filter(|(_, feed)| !self.get(*feed).is_some_and(is_consistent))
            .map(|(kind, _)| kind.clone())
            .collect()
    }

    pub(crate) fn mark_deleted(&mut self, object: &ObjectKey, uid: &str) {
        let found = self.find(&object.cluster, &object.kind, &object.name);
        let stored = found.and_then(|id| self.object_mut(id)).filter(|stored| *stored.facts.uid == *uid);
        if let Some(stored) = stored {
            stored.facts.deleting = true;
            stored.deleted_by_us = true;
        }
    }

    /// We wrote to an object of ours: the next watch event is a change, even if it shows the content from before.
    pub(crate) fn expect_change(&mut self, object: &ObjectKey) {
        let found = self.find(&object.cluster, &object.kind, &object.name);
        if let Some(stored) = found.and_then(|id| self.object_mut(id)) {
            stored.own.iter_mut().for_each(OwnFingerprint::invalidate);
        }
    }

    pub(crate) fn size(&self) -> (usize, usize) {
        (self.by_id.len(), self.objects.len())
    }

    /// Kinds of the hub whose initial list has not completed. Other clusters may be unreachable for days, and
    /// do not delay readiness.
    pub(crate) fn unknown(&self) -> Vec<GroupKind> {
        let unknown = self.by_id.values().filter(|feed| feed.cluster.is_hub() && !feed.is_known());
        unknown.map(|feed| feed.kind.clone()).collect()
    }

    /// True if all kinds are listed and no relist is in progress.
    pub(crate) fn are_consistent(&self) -> bool {
        self.by_id.values().all(|feed| feed.is_known() && !feed.is_torn())
    }

    /// The same for one cluster.
    pub(crate) fn are_consistent_in(&self, cluster: &Cluster) -> bool {
        let mut here = self.by_id.values().filter(|feed| feed.cluster == *cluster);
        here.all(|feed| feed.is_known() && !feed.is_torn())
    }

    /// Adds a user to the feed of a kind, and starts the feed if there is none. If the user wants more than
    /// the lens keeps, the kind is relisted; until then, stored objects lack what is new.
    pub(crate) fn acquire(
        &mut self,
        cluster: &Cluster,
        kind: &GroupKind,
        requested: &RequestedFields,
        effects: &mut Vec<Effect>,
    ) -> FeedId {
        let key = (cluster.clone(), kind.clone());
        if let Some(id) = self.by_kind.get(&key)
            && let Some(feed) = self.by_id.get_mut(id)
        {
            feed.users += 1;
            self.unused.remove(id);
            if !feed.requested.covers(requested) {
                feed.requested = Arc::new(feed.requested.and(requested));
                feed.lens = Arc::new(Lens::with(kind, Arc::clone(&self.rules), Arc::clone(&feed.requested)));
                follow(*id, feed, effects);
            }
            return *id;
        }
        self.last_id += 1;
        let id = FeedId(self.last_id);
        let requested = Arc::new(requested.clone());
        let feed = Feed {
            cluster: cluster.clone(),
            kind: kind.clone(),
            served: None,
            unreadable: None,
            listed: false,
            listing: false,
            lens: Arc::new(Lens::with(kind, Arc::clone(&self.rules), Arc::clone(&requested))),
            requested,
            users: 1,
            round: 0,
            objects: HashMap::new(),
        };
        follow(id, &feed, effects);
        self.by_id.insert(id, feed);
        self.by_kind.insert(key, id);
        id
    }

    pub(crate) fn release(&mut self, id: FeedId) {
        if Bug::LeakWatch.is_planted() {
            return;
        }
        let Some(feed) = self.by_id.get_mut(&id) else { return };
        feed.users -= 1;
        if feed.users == 0 {
            self.unused.insert(id);
        }
    }

    pub(crate) fn take_unused(&mut self) -> BTreeSet<FeedId> {
        mem::take(&mut self.unused)
    }

    /// Ends a feed and drops its objects.
    pub(crate) fn drop_feed(&mut self, id: FeedId, effects: &mut Vec<Effect>) {
        if let Some(feed) = self.by_id.remove(&id) {
            self.by_kind.remove(&(feed.cluster.clone(), feed.kind.clone()));
            for object in feed.all() {
                self.objects.try_remove(object.0);
            }
            effects.push(Effect::Leave { feed: id, cluster: feed.cluster });
        }
    }

    pub(crate) fn rules(&self) -> &Arc<UserRules> {
        &self.rules
    }

    pub(crate) fn rules_unreadable(&self) -> Option<&Unreadable> {
        self.rules_unreadable.as_ref()
    }

    /// `None` before discovery has answered.
    pub(crate) fn served_in_hub(&self) -> Option<&HashMap<GroupKind, ServedResource>> {
        self.discovered_in_hub.as_deref().map(|kinds| &kinds.served)
    }

    /// Whether kinds of this API group may be missing in what discovery found in the hub.
    pub(crate) fn is_group_unavailable(&self, group: &str) -> bool {
        self.discovered_in_hub.as_deref().is_none_or(|kinds| kinds.unavailable_groups.contains(group))
    }

    pub(crate) fn set_discovered_in_hub(&mut self, kinds: Arc<DiscoveredKinds>) {
        self.discovered_in_hub = Some(kinds);
    }

    /// Replaces the HealthRules. Kinds for which the rules differ are relisted. `unreadable`: the rules stand
    /// for those that cannot be read.
    pub(crate) fn set_rules(
        &mut self,
        rules: Arc<UserRules>,
        unreadable: Option<Unreadable>,
        effects: &mut Vec<Effect>,
    ) {
        self.rules_unreadable = unreadable;
        let before = mem::replace(&mut self.rules, rules);
        for (id, feed) in &mut self.by_id {
            if !self.rules.same_for(&before, &feed.kind.group, &feed.kind.kind) {
                feed.lens =
                    Arc::new(Lens::with(&feed.kind, Arc::clone(&self.rules), Arc::clone(&feed.requested)));
                // From here on, verdicts by the old rules and the new ones would mix.
                feed.listing |= feed.listed;
                follow(*id, feed, effects);
            }
        }
    }

    pub(crate) fn relist_all(&self, effects: &mut Vec<Effect>) {
        for (id, feed) in &self.by_id {
            follow(*id, feed, effects);
        }
    }

    pub(crate) fn of_cluster(&self, cluster: &Cluster) -> Vec<FeedId> {
        self.by_id.iter().filter(|(_, feed)| feed.cluster == *cluster).map(|(id, _)| *id).collect()
    }

    /// The cluster has a new source, which follows no kind yet.
    pub(crate) fn follow_cluster(&self, cluster: &Cluster, effects: &mut Vec<Effect>) {
        for (id, feed) in self.by_id.iter().filter(|(_, feed)| feed.cluster == *cluster) {
            follow(*id, feed, effects);
        }
    }

    pub(crate) fn forget_versions_of(&mut self, cluster: &Cluster) {
        for feed in self.of_cluster(cluster) {
            self.forget_versions(feed);
        }
    }

    /// Accepts any resourceVersion from now on: the cluster was replaced or restored.
    pub(crate) fn forget_versions(&mut self, id: FeedId) {
        for object in self.all(id) {
            if let Some(stored) = self.objects.get_mut(object.0) {
                stored.facts.resource_version = ResourceVersion::unknown();
                stored.deleted_by_us = false;
                stored.last_observed = None;
            }
        }
    }

    /// As before the initial list.
    pub(crate) fn await_list(&mut self, id: FeedId) {
        if let Some(feed) = self.by_id.get_mut(&id) {
            (feed.listed, feed.unreadable) = (false, None);
        }
    }

    pub(crate) fn begin_list(&mut self, id: FeedId) {
        if let Some(feed) = self.by_id.get_mut(&id) {
            feed.round += 1;
            feed.listing = true;
        }
    }

    /// Sweeps: returns the objects that the list did not contain.
    pub(crate) fn end_list(&mut self, id: FeedId) -> Vec<ObjectId> {
        let Some(feed) = self.by_id.get_mut(&id) else { return Vec::new() };
        (feed.listed, feed.listing) = (true, false);
        feed.unreadable = None;
        let round = feed.round;
        let is_unmarked = |id: &ObjectId| self.objects.get(id.0).is_some_and(|object| object.round != round);
        if Bug::KeepUnlisted.is_planted() {
            return Vec::new();
        }
        feed.all().into_iter().filter(is_unmarked).collect()
    }

    pub(crate) fn all(&self, id: FeedId) -> Vec<ObjectId> {
        self.by_id.get(&id).map(Feed::all).unwrap_or_default()
    }

    /// Stores an object. If the name belonged to an object with another uid, the caller must have removed
    /// that first.
    pub(crate) fn put(
        &mut self,
        id: FeedId,
        name: NamespacedName,
        mut facts: Facts,
        own: Option<OwnFingerprint>,
    ) -> Option<StoreUpdate> {
        let feed = self.by_id.get_mut(&id)?;
        if let Some(id) = feed.find(&name)
            && let Some(stored) = self.objects.get_mut(id.0)
        {
            stored.round = feed.round;
            if facts.resource_version.is_before(&stored.facts.resource_version) {
                self.interner.intern_labels(&mut facts.labels);
                let before = stored.merge_older(facts);
                return Some(before.map_or(StoreUpdate::Stale, |before| {
                    StoreUpdate::OlderThanOurWrite(id, Box::new(before))
                }));
            }
            stored.last_observed = None;
            // A watch event from before the deletion may arrive after our delete was confirmed.
            facts.deleting |= stored.deleted_by_us;
            stored.facts.resource_version = facts.resource_version.clone();
            if stored.facts == facts && stored.own == own {
                return Some(StoreUpdate::VersionOnly(id));
            }
            if facts.labels == stored.facts.labels {
                facts.labels = stored.facts.labels.clone();
            } else {
                self.interner.intern_labels(&mut facts.labels);
            }
            let facts = mem::replace(&mut stored.facts, facts);
            let own = mem::replace(&mut stored.own, own);
            return Some(StoreUpdate::Changed(id, Some(Box::new((facts, own)))));
        }
        let name = NamespacedName { namespace: self.interner.intern(&name.namespace), name: name.name };
        self.interner.intern_labels(&mut facts.labels);
        let (round, deleted_by_us, last_observed) = (feed.round, false, None);
        let stored =
            StoredObject { feed: id, name: name.clone(), facts, own, round, deleted_by_us, last_observed };
        let object = ObjectId(self.objects.insert(stored));
        feed.objects.entry(name.namespace).or_default().insert(name.name, object);
        Some(StoreUpdate::Changed(object, None))
    }

    /// The stored object of this name if it has another uid, which means that it was deleted and created
    /// again.
    pub(crate) fn find_recreated(&self, id: FeedId, name: &NamespacedName, uid: &str) -> Option<ObjectId> {
        let object = self.by_id.get(&id)?.find(name)?;
        let is_other = |stored: &&StoredObject| *stored.facts.uid != *uid && !Bug::IgnoreUid.is_planted();
        self.object(object).filter(is_other).map(|_| object)
    }

    pub(crate) fn find_in(&self, id: FeedId, name: &NamespacedName) -> Option<ObjectId> {
        self.by_id.get(&id)?.find(name)
    }

    /// Groups must not count the object any more.
    pub(crate) fn remove(&mut self, id: ObjectId) -> Option<StoredObject> {
        let stored = self.objects.try_remove(id.0)?;
        if let Some(feed) = self.by_id.get_mut(&stored.feed)
            && let Some(names) = feed.objects.get_mut(&stored.name.namespace)
        {
            names.remove(&stored.name.name);
            if names.is_empty() {
                feed.objects.remove(&stored.name.namespace);
            }
        }
        Some(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds of all `Follow` effects.
    fn followed(effects: &mut Vec<Effect>) -> Vec<String> {
        let kind = |effect: Effect| match effect {
            Effect::Follow { kind, .. } => Some(kind.to_string()),
            _ => None,
        };
        mem::take(effects).into_iter().filter_map(kind).collect()
    }

    #[test]
    fn a_kind_is_relisted_only_if_a_user_wants_more() {
        let (mut feeds, mut effects, hub) = (Feeds::default(), Vec::new(), Cluster::hub());
        let replicas = RequestedFields::paths([&["spec", "replicas"][..]]);
        let phase = RequestedFields::paths([&["status", "phase"][..]]);
        feeds.acquire(&hub, &GroupKind::pod(), &RequestedFields::default(), &mut effects);
        feeds.acquire(&hub, &GroupKind::new("apps", "Deployment"), &replicas, &mut effects);
        assert_eq!(followed(&mut effects), ["Pod", "Deployment.apps"]);
        feeds.acquire(&hub, &GroupKind::pod(), &phase, &mut effects);
        assert_eq!(followed(&mut effects), ["Pod"], "no other kind");
        feeds.acquire(&hub, &GroupKind::pod(), &phase, &mut effects);
        assert_eq!(followed(&mut effects), [""; 0], "the lens keeps it already");
        let pods = feeds.acquire(&hub, &GroupKind::pod(), &replicas, &mut effects);
        assert_eq!(followed(&mut effects), ["Pod"]);
        let requested = &feeds.get(pods).unwrap().requested;
        assert!(requested.covers(&phase) && requested.covers(&replicas), "the union is kept");
    }
}
