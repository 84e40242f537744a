//! The kinds that are followed, and their objects: the one store of facts.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    sync::Arc,
};

use bellwether_health::user::UserRules;
use slab::Slab;

use crate::{
    effect::Effect,
    event::Unreadable,
    facts::{Facts, OwnFingerprint, ResourceVersion, Served},
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    interner::Interner,
    lens::Lens,
    planted::Bug,
    wanted::Wanted,
};

/// An object of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId(usize);

impl ObjectId {
    /// Before all others.
    pub(crate) const FIRST: Self = Self(0);
}

/// What is stored of an object.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) feed: FeedId,
    pub(crate) name: NamespacedName,
    pub(crate) facts: Facts,
    /// What was written in it, if it is one of ours that we understand.
    pub(crate) own: Option<OwnFingerprint>,
    /// The list in which it was last seen.
    round: u64,
    /// Whether we have deleted it, and were told so.
    pub(crate) deleted_by_us: bool,
    /// Which version was last told, if we have written since.
    last_observed: Option<ResourceVersion>,
}

impl StoredObject {
    /// We have written to it: it has this version now, which has not been told yet.
    pub(crate) fn record_write(&mut self, version: ResourceVersion) {
        let last_observed = mem::replace(&mut self.facts.version, version);
        self.last_observed.get_or_insert(last_observed);
        self.own.iter_mut().for_each(OwnFingerprint::invalidate);
    }

    /// Takes in what is told of the time before we wrote, if that is news still. Whoever wrote in between was us as well, so
    /// that its owners are known better.
    fn merge_older(&mut self, mut facts: Facts) -> Option<Facts> {
        let last_observed =
            self.last_observed.as_mut().filter(|last_observed| !facts.version.is_before(last_observed))?;
        *last_observed = mem::replace(&mut facts.version, self.facts.version.clone());
        facts.owners.clone_from(&self.facts.owners);
        facts.deleting |= self.deleted_by_us;
        (facts != self.facts).then(|| mem::replace(&mut self.facts, facts))
    }
}

/// One kind in one cluster.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) cluster: Cluster,
    pub(crate) kind: GroupKind,
    pub(crate) served: Option<Served>,
    pub(crate) unreadable: Option<Unreadable>,
    /// Whether all its objects have been told once.
    pub(crate) listed: bool,
    /// Whether a list has begun and is not complete.
    listing: bool,
    lens: Arc<Lens>,
    /// What its users want to be kept, all together.
    wanted: Arc<Wanted>,
    users: usize,
    round: u64,
    objects: HashMap<Arc<str>, BTreeMap<Arc<str>, ObjectId>>,
}

impl Feed {
    /// Whether it is known what there is, or that this cannot be known.
    pub(crate) fn is_known(&self) -> bool {
        self.listed || self.unreadable.is_some() || Bug::PublishBeforeListed.is_planted()
    }

    /// Whether what is known of it is of two times: a part of a list has been told, and the rest is as it was before.
    pub(crate) fn is_torn(&self) -> bool {
        self.listing && self.unreadable.is_none()
    }

    /// The objects of a namespace, in the order of their names.
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

/// What became of an object.
#[derive(Debug)]
pub(crate) enum StoreUpdate {
    /// It is new, or not what it was. The facts that it had are given.
    Changed(ObjectId, Option<Box<(Facts, Option<OwnFingerprint>)>>),
    /// It only has another version: nothing that is kept has changed.
    Same(ObjectId),
    /// What was told is older than what we have written, and newer than what was told before: nobody has changed it since
    /// but us. The facts that it had are given.
    OlderThanOurWrite(ObjectId, Box<Facts>),
    /// What was told is older than what is known.
    Stale,
}

/// Asks to follow a feed through its lens. What has been asked for before, and is not done yet, is not asked for twice.
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

/// All feeds, and the objects in them.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    by_id: BTreeMap<FeedId, Feed>,
    by_kind: HashMap<(Cluster, GroupKind), FeedId>,
    objects: Slab<StoredObject>,
    /// The feeds that have lost their last user.
    unused: BTreeSet<FeedId>,
    /// The rules of users that objects are judged by.
    rules: Arc<UserRules>,
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

    /// Those among some kinds of which not all is known yet, or not of one time.
    pub(crate) fn not_whole<'a>(
        &self,
        kinds: impl Iterator<Item = (&'a GroupKind, FeedId)>,
    ) -> Vec<GroupKind> {
        let is_whole = |feed: &Feed| feed.is_known() && !feed.is_torn();
        kinds
            .filter(|(_, feed)| !self.get(*feed).is_some_and(is_whole))
            .map(|(kind, _)| kind.clone())
            .collect()
    }

    /// An object was deleted by us: a watch tells so later.
    pub(crate) fn mark_deleted(&mut self, object: &ObjectKey, uid: &str) {
        let found = self.find(&object.cluster, &object.kind, &object.name);
        let stored = found.and_then(|id| self.object_mut(id)).filter(|stored| *stored.facts.uid == *uid);
        if let Some(stored) = stored {
            stored.facts.deleting = true;
            stored.deleted_by_us = true;
        }
    }

    /// How many feeds and objects there are.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.by_id.len(), self.objects.len())
    }

    /// The kinds of the hub of which it is not known yet what there is. Another cluster may be away for days: what is said of
    /// the rest does not wait for it.
    pub(crate) fn unknown(&self) -> Vec<GroupKind> {
        let unknown = self.by_id.values().filter(|feed| feed.cluster.is_hub() && !feed.is_known());
        unknown.map(|feed| feed.kind.clone()).collect()
    }

    /// Whether of each kind it is known what there is, all of it of one time.
    pub(crate) fn are_whole(&self) -> bool {
        self.by_id.values().all(|feed| feed.is_known() && !feed.is_torn())
    }

    /// Follows a kind, or goes on following it, for one more user. What that one wants to know and nobody did before is
    /// not known of an object until it has been listed again.
    pub(crate) fn acquire(
        &mut self,
        cluster: &Cluster,
        kind: &GroupKind,
        wanted: &Wanted,
        effects: &mut Vec<Effect>,
    ) -> FeedId {
        let key = (cluster.clone(), kind.clone());
        if let Some(id) = self.by_kind.get(&key)
            && let Some(feed) = self.by_id.get_mut(id)
        {
            feed.users += 1;
            self.unused.remove(id);
            if !feed.wanted.covers(wanted) {
                feed.wanted = Arc::new(feed.wanted.and(wanted));
                feed.lens = Arc::new(Lens::with(kind, Arc::clone(&self.rules), Arc::clone(&feed.wanted)));
                follow(*id, feed, effects);
            }
            return *id;
        }
        self.last_id += 1;
        let id = FeedId(self.last_id);
        let wanted = Arc::new(wanted.clone());
        let feed = Feed {
            cluster: cluster.clone(),
            kind: kind.clone(),
            served: None,
            unreadable: None,
            listed: false,
            listing: false,
            lens: Arc::new(Lens::with(kind, Arc::clone(&self.rules), Arc::clone(&wanted))),
            wanted,
            users: 1,
            round: 0,
            objects: HashMap::new(),
        };
        follow(id, &feed, effects);
        self.by_id.insert(id, feed);
        self.by_kind.insert(key, id);
        id
    }

    /// One user less. A feed without users ends with the step, unless it gets one until then.
    pub(crate) fn release(&mut self, id: FeedId) {
        if Bug::KeepKind.is_planted() {
            return;
        }
        let Some(feed) = self.by_id.get_mut(&id) else { return };
        feed.users -= 1;
        if feed.users == 0 {
            self.unused.insert(id);
        }
    }

    /// The feeds without users.
    pub(crate) fn take_unused(&mut self) -> BTreeSet<FeedId> {
        mem::take(&mut self.unused)
    }

    /// Ends a feed, and forgets its objects.
    pub(crate) fn drop_feed(&mut self, id: FeedId, effects: &mut Vec<Effect>) {
        if let Some(feed) = self.by_id.remove(&id) {
            self.by_kind.remove(&(feed.cluster.clone(), feed.kind.clone()));
            for object in feed.all() {
                self.objects.try_remove(object.0);
            }
            effects.push(Effect::Leave { feed: id, cluster: feed.cluster });
        }
    }

    /// The rules of users that objects are judged by.
    pub(crate) fn rules(&self) -> &Arc<UserRules> {
        &self.rules
    }

    /// Judges objects by these rules from now on. The kinds for which they differ are listed again.
    pub(crate) fn set_rules(&mut self, rules: Arc<UserRules>, effects: &mut Vec<Effect>) {
        let before = mem::replace(&mut self.rules, rules);
        for (id, feed) in &mut self.by_id {
            if !self.rules.same_for(&before, &feed.kind.group, &feed.kind.kind) {
                feed.lens =
                    Arc::new(Lens::with(&feed.kind, Arc::clone(&self.rules), Arc::clone(&feed.wanted)));
                follow(*id, feed, effects);
            }
        }
    }

    /// Lists everything once more.
    pub(crate) fn relist_all(&self, effects: &mut Vec<Effect>) {
        for (id, feed) in &self.by_id {
            follow(*id, feed, effects);
        }
    }

    /// The feeds of a cluster.
    pub(crate) fn of_cluster(&self, cluster: &Cluster) -> Vec<FeedId> {
        self.by_id.iter().filter(|(_, feed)| feed.cluster == *cluster).map(|(id, _)| *id).collect()
    }

    /// A cluster has another source, of which nothing was asked yet.
    pub(crate) fn follow_cluster(&self, cluster: &Cluster, effects: &mut Vec<Effect>) {
        for (id, feed) in self.by_id.iter().filter(|(_, feed)| feed.cluster == *cluster) {
            follow(*id, feed, effects);
        }
    }

    /// Another cluster has the name of one that was known: its versions are not comparable with those of the other.
    pub(crate) fn forget_versions_of(&mut self, cluster: &Cluster) {
        for feed in self.of_cluster(cluster) {
            self.forget_versions(feed);
        }
    }

    /// Whatever versions are told from now on, they are not older than what is known.
    pub(crate) fn forget_versions(&mut self, id: FeedId) {
        for object in self.all(id) {
            if let Some(stored) = self.objects.get_mut(object.0) {
                stored.facts.version = ResourceVersion::unknown();
                stored.deleted_by_us = false;
                stored.last_observed = None;
            }
        }
    }

    /// A list begins: from now on, what is seen is marked.
    pub(crate) fn begin_list(&mut self, id: FeedId) {
        if let Some(feed) = self.by_id.get_mut(&id) {
            feed.round += 1;
            feed.listing = true;
        }
    }

    /// The list is complete: gives back what it did not name.
    pub(crate) fn end_list(&mut self, id: FeedId) -> Vec<ObjectId> {
        let Some(feed) = self.by_id.get_mut(&id) else { return Vec::new() };
        (feed.listed, feed.listing) = (true, false);
        feed.unreadable = None;
        let round = feed.round;
        let is_unmarked = |id: &ObjectId| self.objects.get(id.0).is_some_and(|object| object.round != round);
        if Bug::KeepWhatIsNotListed.is_planted() {
            return Vec::new();
        }
        feed.all().into_iter().filter(is_unmarked).collect()
    }

    /// All objects of a feed.
    pub(crate) fn all(&self, id: FeedId) -> Vec<ObjectId> {
        self.by_id.get(&id).map(Feed::all).unwrap_or_default()
    }

    /// Takes in what was told of an object. Another object under the same name must have been removed before.
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
            if facts.version.is_before(&stored.facts.version) {
                self.interner.intern_labels(&mut facts.labels);
                let before = stored.merge_older(facts);
                return Some(before.map_or(StoreUpdate::Stale, |before| {
                    StoreUpdate::OlderThanOurWrite(id, Box::new(before))
                }));
            }
            stored.last_observed = None;
            // News of the time before may come after the answer.
            facts.deleting |= stored.deleted_by_us;
            stored.facts.version = facts.version.clone();
            if stored.facts == facts && stored.own == own {
                return Some(StoreUpdate::Same(id));
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

    /// The object that has this name in a feed, if it is another one.
    pub(crate) fn namesake(&self, id: FeedId, name: &NamespacedName, uid: &str) -> Option<ObjectId> {
        let object = self.by_id.get(&id)?.find(name)?;
        let is_other = |stored: &&StoredObject| *stored.facts.uid != *uid && !Bug::IgnoreUid.is_planted();
        self.object(object).filter(is_other).map(|_| object)
    }

    pub(crate) fn find_in(&self, id: FeedId, name: &NamespacedName) -> Option<ObjectId> {
        self.by_id.get(&id)?.find(name)
    }

    /// Forgets an object. Nobody may count it any more.
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

    /// The kinds that are followed anew.
    fn followed(effects: &mut Vec<Effect>) -> Vec<String> {
        let kind = |effect: Effect| match effect {
            Effect::Follow { kind, .. } => Some(kind.to_string()),
            _ => None,
        };
        mem::take(effects).into_iter().filter_map(kind).collect()
    }

    #[test]
    fn a_kind_is_listed_again_only_for_who_wants_more_than_is_kept_of_it() {
        let (mut feeds, mut effects, hub) = (Feeds::default(), Vec::new(), Cluster::hub());
        let replicas = Wanted::paths([&["spec", "replicas"][..]]);
        let phase = Wanted::paths([&["status", "phase"][..]]);
        feeds.acquire(&hub, &GroupKind::pod(), &Wanted::default(), &mut effects);
        feeds.acquire(&hub, &GroupKind::new("apps", "Deployment"), &replicas, &mut effects);
        assert_eq!(followed(&mut effects), ["Pod", "Deployment.apps"]);
        feeds.acquire(&hub, &GroupKind::pod(), &phase, &mut effects);
        assert_eq!(followed(&mut effects), ["Pod"], "and nothing else");
        feeds.acquire(&hub, &GroupKind::pod(), &phase, &mut effects);
        assert_eq!(followed(&mut effects), [""; 0], "it is kept already");
        let pods = feeds.acquire(&hub, &GroupKind::pod(), &replicas, &mut effects);
        assert_eq!(followed(&mut effects), ["Pod"]);
        let wanted = &feeds.get(pods).unwrap().wanted;
        assert!(wanted.covers(&phase) && wanted.covers(&replicas), "the union is kept");
    }
}
