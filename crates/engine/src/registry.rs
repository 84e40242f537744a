//! The groups of one grouping, the feeds that they use, and the groups to evaluate.

use std::collections::{BTreeSet, HashMap};

use slab::Slab;

use crate::{
    effect::Write,
    effect_queue::EffectQueue,
    event::Outcome,
    facts::{Facts, ResourceVersion},
    feeds::Feeds,
    group_ref::GroupRef,
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind},
    publication::Publication,
    requested_fields::RequestedFields,
    selector_index::remove_from_set,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupId(usize);

/// A group whose status is published in its own object.
pub(crate) trait Published {
    fn publication(&mut self) -> &mut Publication;
}

#[derive(Debug)]
pub(crate) struct Registry<T> {
    groups: Slab<T>,
    by_name: HashMap<GroupRef, GroupId>,
    users: HashMap<FeedId, BTreeSet<GroupId>>,
    /// The groups to evaluate at the end of the step.
    dirty: BTreeSet<GroupId>,
    /// The required kinds are listed. Before that, no other kind is followed and nothing is published.
    synced: bool,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            groups: Slab::new(),
            by_name: HashMap::new(),
            users: HashMap::new(),
            dirty: BTreeSet::new(),
            synced: false,
        }
    }
}

impl<T> Registry<T> {
    pub(crate) fn get(&self, id: GroupId) -> Option<&T> {
        self.groups.get(id.0)
    }

    pub(crate) fn get_mut(&mut self, id: GroupId) -> Option<&mut T> {
        self.groups.get_mut(id.0)
    }

    pub(crate) fn id(&self, group: &GroupRef) -> Option<GroupId> {
        self.by_name.get(group).copied()
    }

    pub(crate) fn named(&self, group: &GroupRef) -> Option<&T> {
        self.get(self.id(group)?)
    }

    pub(crate) fn ids(&self) -> Vec<GroupId> {
        self.groups.iter().map(|(id, _)| GroupId(id)).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.groups.iter().map(|(_, group)| group)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.groups.iter_mut().map(|(_, group)| group)
    }

    pub(crate) fn insert(&mut self, name: GroupRef, group: T) -> GroupId {
        let id = GroupId(self.groups.insert(group));
        self.by_name.insert(name, id);
        id
    }

    /// The caller releases the feeds of the group.
    pub(crate) fn remove(&mut self, name: &GroupRef, queue: &mut EffectQueue) -> Option<(GroupId, T)> {
        queue.group_changed(name);
        let id = self.by_name.remove(name)?;
        self.dirty.remove(&id);
        Some((id, self.groups.try_remove(id.0)?))
    }

    /// Marks a group for evaluation.
    pub(crate) fn mark_dirty(&mut self, id: GroupId) {
        self.dirty.insert(id);
    }

    pub(crate) fn mark_all_dirty(&mut self, ids: impl IntoIterator<Item = GroupId>) {
        self.dirty.extend(ids);
    }

    pub(crate) fn mark_users_dirty(&mut self, feed: FeedId) {
        self.dirty.extend(self.users.get(&feed).into_iter().flatten());
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced
    }

    /// Returns all groups, to follow their kinds.
    pub(crate) fn sync(&mut self) -> Vec<GroupId> {
        self.synced = true;
        self.ids()
    }

    pub(crate) fn users(&self, feed: FeedId) -> Vec<GroupId> {
        self.users.get(&feed).into_iter().flatten().copied().collect()
    }

    pub(crate) fn uses(&self, feed: FeedId) -> bool {
        self.users.contains_key(&feed)
    }

    pub(crate) fn feeds(&self) -> usize {
        self.users.len()
    }

    pub(crate) fn follow(
        &mut self,
        id: GroupId,
        cluster: &Cluster,
        kind: &GroupKind,
        requested: &RequestedFields,
        cx: &mut GroupingContext<'_>,
    ) -> FeedId {
        let feed = cx.feeds.acquire(cluster, kind, requested, &mut cx.queue.effects);
        self.users.entry(feed).or_default().insert(id);
        feed
    }

    /// Returns whether this was the last group of the grouping that used the feed.
    pub(crate) fn leave(&mut self, feed: FeedId, id: GroupId, feeds: &mut Feeds) -> bool {
        let was_used = self.uses(feed);
        remove_from_set(&mut self.users, &feed, &id);
        feeds.release(feed);
        was_used && !self.uses(feed)
    }
}

impl<T: Published> Registry<T> {
    pub(crate) fn version_changed(&mut self, group: &GroupRef, facts: &Facts) {
        if let Some(id) = self.id(group)
            && let Some(group) = self.get_mut(id)
            && group.publication().observe_version(facts)
        {
            self.mark_dirty(id);
        }
    }

    /// Takes the next group to evaluate, and reports it as changed.
    pub(crate) fn next_dirty(&mut self, queue: &mut EffectQueue) -> Option<GroupId> {
        let id = self.dirty.pop_first()?;
        if let Some(group) = self.get_mut(id) {
            queue.group_changed(group.publication().group());
        }
        Some(id)
    }

    /// A relist started, which changes the queried status of these groups without an evaluation.
    pub(crate) fn users_changed(&mut self, feed: FeedId, queue: &mut EffectQueue) {
        for id in self.users(feed) {
            if let Some(group) = self.get_mut(id) {
                queue.group_changed(group.publication().group());
            }
        }
    }

    pub(crate) fn timer_fired(&mut self, group: &GroupRef) {
        if let Some(id) = self.id(group)
            && let Some(group) = self.get_mut(id)
        {
            group.publication().retry();
            self.mark_dirty(id);
        }
    }

    pub(crate) fn status_written(
        &mut self,
        group: &GroupRef,
        write: &Write,
        outcome: &Outcome,
        cx: &mut GroupingContext<'_>,
    ) -> Option<ResourceVersion> {
        let id = self.id(group)?;
        let publication = self.get_mut(id)?.publication();
        let version = publication.written(write, outcome, cx.now, cx.queue);
        cx.queue.group_changed(group);
        if publication.is_behind(outcome) {
            self.mark_dirty(id);
        }
        version
    }
}
