//! Rollups: components of any kind anywhere in the cluster, and the worst of the conditions that their
//! operators report.
//!
//! `component_entry.rs` parses the spec, and `index.rs` finds the entries that an object matches.
//! `component_report.rs` is what one component contributes under the policies of `policies.rs`.
//! `component_reports.rs` tallies the reports, `rollup_state.rs` evaluates the tallies, and `status.rs`
//! renders the status. `triple.rs` interprets Available, Progressing and Degraded together.

mod component_entry;
mod component_report;
mod component_reports;
mod cycle;
mod index;
mod policies;
mod rollup_state;
mod status;
mod triple;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    dependency_graph::DependencyGraph,
    effect::Write,
    event::Outcome,
    facts::{Facts, OwnManifest, OwnObject, ResourceVersion},
    feeds::{Feeds, ObjectId, StoredObject},
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind, NamespacedName},
    planted::Bug,
    publication::Publication,
    registry::{GroupId, Registry},
    requested_fields::RequestedFields,
    stats::{EngineStats, GroupSamples},
    view::{Group, GroupRelation, GroupStatus},
};

use component_entry::ComponentEntry;
use index::{ComponentIndex, EntryId};
use rollup_state::RollupState;
pub use view::invalid_components;

#[derive(Debug, Default)]
pub(crate) struct Rollups {
    all: Registry<RollupState>,
    index: ComponentIndex,
    /// The entries that an object matches.
    memberships: HashMap<ObjectId, Box<[EntryId]>>,
    /// Rollups that are components of Rollups.
    graph: DependencyGraph,
    /// Rollups whose child Rollups changed since their cycles were found.
    cycles_due: BTreeSet<GroupId>,
}

impl Grouping for Rollups {
    fn handles(&self, kind: OwnKind) -> bool {
        kind == OwnKind::Rollup
    }

    fn required_kinds(&self) -> &'static [OwnKind] {
        &[OwnKind::Rollup]
    }

    /// Components can be in any namespace.
    fn is_namespaced(&self) -> bool {
        false
    }

    fn sync(&mut self, cx: &mut GroupingContext<'_>) {
        for id in self.all.sync() {
            self.apply_spec(id, cx);
        }
    }

    /// Damping compares times of components with the clock.
    fn clock_set(&mut self, _by: SignedDuration) {
        let all = self.all.ids();
        self.all.mark_all_dirty(all);
    }

    fn group_applied(
        &mut self,
        name: &NamespacedName,
        facts: &Facts,
        own: &OwnObject,
        cx: &mut GroupingContext<'_>,
    ) {
        let OwnObject::Rollup(written) = own else { return };
        let OwnManifest { generation, created, spec, status } = &**written;
        let group = GroupRef::new(OwnKind::Rollup, name.clone());
        let Some(id) = self.all.id(&group) else {
            let publication =
                Publication::new(group.clone(), &status::CONDITIONS, facts, (*generation, *created), status);
            let mut rollup = RollupState::new(publication, facts.deleting, spec.clone());
            rollup.load_stored_since(status);
            let id = self.all.insert(group, rollup);
            return self.apply_spec(id, cx);
        };
        let Some(rollup) = self.all.get_mut(id) else { return };
        let is_same = rollup.spec == *spec && rollup.deleting == facts.deleting;
        rollup.deleting = facts.deleting;
        if rollup.publication.observe(facts, *generation, status, cx.queue) {
            rollup.load_stored_since(status);
            self.all.mark_dirty(id);
        }
        let is_synced = self.all.is_synced();
        let Some(rollup) = self.all.get_mut(id) else { return };
        if !is_same {
            rollup.spec = spec.clone();
            self.apply_spec(id, cx);
        } else if is_synced {
            rollup.drop_unnamed();
        }
    }

    fn version_changed(&mut self, group: &GroupRef, facts: &Facts) {
        self.all.version_changed(group, facts);
    }

    fn remove(&mut self, group: &GroupRef, cx: &mut GroupingContext<'_>) {
        let Some(id) = self.all.id(group) else { return };
        self.remove_spec(id);
        self.find_due_cycles(cx.feeds);
        let Some((_, rollup)) = self.all.remove(group, cx.queue) else { return };
        rollup.publication.withdraw(cx.queue);
        for feed in rollup.kind_feeds.into_values() {
            self.all.leave(feed, id, cx.feeds);
        }
    }

    fn object_changed(&mut self, object: ObjectId, _before: Option<&Facts>, cx: &mut GroupingContext<'_>) {
        let Some(stored) = cx.feeds.object(object) else { return };
        let entry_ids = self.entry_ids(stored);
        self.update_members_of(object, entry_ids, cx);
    }

    fn before_object_removed(&mut self, object: ObjectId, cx: &mut GroupingContext<'_>) {
        self.update_members_of(object, BTreeSet::new(), cx);
    }

    fn feed_changed(&mut self, feed: FeedId, _readability: bool, cx: &mut GroupingContext<'_>) {
        for id in self.all.users(feed) {
            let (Some(rollup), Some(known)) = (self.all.get_mut(id), cx.feeds.get(feed)) else {
                continue;
            };
            for index in 0..rollup.entries.len() {
                if rollup.entries.get(index).is_some_and(|entry| entry.feed == feed) {
                    rollup.check_absence(index, cx.feeds, cx.now);
                }
            }
            for object in rollup.objects() {
                if let Some(stored) = cx.feeds.object(object).filter(|stored| stored.feed == feed) {
                    rollup.upsert_component(object, stored, known);
                }
            }
            self.all.mark_dirty(id);
        }
    }

    fn list_started(&mut self, feed: FeedId, cx: &mut GroupingContext<'_>) {
        self.all.users_changed(feed, cx.queue);
    }

    fn list_completed(&mut self, feed: FeedId, _cx: &mut GroupingContext<'_>) {
        self.all.mark_users_dirty(feed);
    }

    fn timer_fired(&mut self, group: &GroupRef) {
        self.all.timer_fired(group);
    }

    fn flush(&mut self, cx: &mut GroupingContext<'_>) {
        if !self.all.is_synced() {
            return;
        }
        self.find_due_cycles(cx.feeds);
        while let Some(id) = self.all.next_dirty(cx.queue) {
            let Some(rollup) = self.all.get_mut(id) else { continue };
            if !rollup.is_known(cx.feeds) {
                continue;
            }
            if rollup.last_evaluated.is_none() {
                // Stored times are obsolete after the first evaluation: a component that came back before our
                // start may be deleted again.
                rollup.clear_stored_since();
            }
            let evaluation = rollup.evaluate(cx.now);
            rollup.last_evaluated = Some(evaluation.triple());
            if let Some(next) = evaluation.next().filter(|_| !Bug::SetNoDampingTimer.is_planted()) {
                cx.queue.schedule(next, rollup.publication.timer());
            }
            let statuses = status::statuses(rollup, &evaluation, cx.feeds);
            let state = rollup.state(evaluation.triple());
            rollup.publication.request_write(statuses, Some(state), false, cx.now, cx.queue);
        }
    }

    fn status(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<Write> {
        let rollup = self.all.named(group)?;
        if !self.all.is_synced() || !rollup.is_known(feeds) {
            return None;
        }
        rollup.publication.render_write(&status::render(rollup, feeds, now))
    }

    fn status_written(
        &mut self,
        group: &GroupRef,
        write: &Write,
        outcome: &Outcome,
        cx: &mut GroupingContext<'_>,
    ) -> Option<ResourceVersion> {
        let id = self.all.id(group)?;
        if matches!(outcome, Outcome::Written(_)) {
            self.all.get_mut(id)?.clear_stored_since();
        }
        self.all.status_written(group, write, outcome, cx)
    }

    fn groups(&self, feeds: &Feeds, now: Timestamp) -> Vec<Group> {
        self.views(feeds, now)
    }

    fn group(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<Group> {
        let rollup = self.all.named(group).filter(|rollup| rollup.is_known(feeds))?;
        Some(view::view(rollup, feeds, now))
    }

    fn group_count(&self) -> usize {
        self.all.iter().count()
    }

    fn summary(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<GroupStatus> {
        self.status_summary(group, feeds, now)
    }

    fn needs(&self, feed: FeedId) -> bool {
        self.all.uses(feed)
    }

    fn relations(&self, kind: &GroupKind, name: &NamespacedName, facts: &Facts) -> Vec<GroupRelation> {
        self.all_claims(kind, name, facts)
    }

    fn add_samples(&self, feeds: &Feeds, samples: &mut GroupSamples) {
        for (rollup, triple) in self.all.iter().filter_map(|rollup| Some((rollup, rollup.last_evaluated?))) {
            samples.add(|| view::sample(rollup, feeds, triple));
        }
    }

    fn add_to_stats(&self, stats: &mut EngineStats) {
        stats.rollups = self.by_health();
        let rollups: usize = self.all.iter().map(RollupState::index_entries).sum();
        stats.index_entries += rollups + self.memberships.len() + self.all.feeds();
    }
}

impl Rollups {
    /// The entries that an object matches. A Rollup is never a component of itself.
    fn entry_ids(&self, stored: &StoredObject) -> BTreeSet<EntryId> {
        let mut entry_ids = self.index.candidates(stored.feed, &stored.name, &stored.facts.labels);
        entry_ids.retain(|(id, index)| {
            self.all.get(*id).is_some_and(|rollup| {
                let target = rollup.entries.get(*index).map(|entry| &entry.target);
                (*stored.facts.uid != *rollup.uid() || Bug::CountRollupItself.is_planted())
                    && target.is_some_and(|target| target.matches(&stored.name, &stored.facts.labels))
            })
        });
        entry_ids
    }

    /// Updates an object in all Rollups with an entry that it matched before or matches now.
    fn update_members_of(
        &mut self,
        object: ObjectId,
        entry_ids: BTreeSet<EntryId>,
        cx: &GroupingContext<'_>,
    ) {
        let before: BTreeSet<_> = self.memberships.remove(&object).into_iter().flatten().collect();
        if before.is_empty() && entry_ids.is_empty() {
            return;
        }
        let concerned: BTreeSet<_> = before.iter().chain(&entry_ids).map(|(id, _)| *id).collect();
        for id in concerned {
            let Some(rollup) = self.all.get_mut(id) else { continue };
            let of_rollup = |entry_ids: &BTreeSet<EntryId>| -> BTreeSet<usize> {
                entry_ids.iter().filter(|(other, _)| *other == id).map(|(_, index)| *index).collect()
            };
            let (before, after) = (of_rollup(&before), of_rollup(&entry_ids));
            // An object and the placeholder for its absence have the same name, so one must go before the
            // other comes.
            if after.is_empty() {
                rollup.forget(object);
            }
            for index in before.symmetric_difference(&after) {
                if let Some(entry) = rollup.entries.get_mut(*index) {
                    entry.matched = if after.contains(index) {
                        entry.matched + 1
                    } else {
                        entry.matched.saturating_sub(1)
                    };
                }
                rollup.check_absence(*index, cx.feeds, cx.now);
            }
            if let Some(stored) = cx.feeds.object(object)
                && let Some(feed) = cx.feeds.get(stored.feed)
            {
                if !after.is_empty() {
                    rollup.upsert_component(object, stored, feed);
                }
                if feed.kind.is_rollup() {
                    let is_new = if after.is_empty() {
                        rollup.child_rollups.remove(&stored.name)
                    } else {
                        rollup.child_rollups.insert(stored.name.clone())
                    };
                    self.cycles_due.extend(is_new.then_some(id));
                }
            }
            self.all.mark_dirty(id);
        }
        if !entry_ids.is_empty() {
            self.memberships.insert(object, entry_ids.into_iter().collect());
        }
    }

    /// Counts all components anew, after the spec changed.
    fn apply_spec(&mut self, id: GroupId, cx: &mut GroupingContext<'_>) {
        if !self.all.is_synced() {
            return;
        }
        self.remove_spec(id);
        let Some(rollup) = self.all.get_mut(id) else { return };
        let (parsed, invalid_entries) = component_entry::parse(&rollup.name.name, &rollup.spec);
        rollup.invalid_entries = invalid_entries;
        let mut before = mem::take(&mut rollup.kind_feeds);
        let mut kind_feeds = BTreeMap::new();
        for (_, kind, _) in &parsed {
            if !kind_feeds.contains_key(kind) {
                let feed = before.remove(kind);
                let feed = feed.unwrap_or_else(|| {
                    self.all.follow(id, &Cluster::hub(), kind, &RequestedFields::conditions(), cx)
                });
                kind_feeds.insert(kind.clone(), feed);
            }
        }
        let Some(rollup) = self.all.get_mut(id) else { return };
        for (index, kind, target) in parsed {
            let Some(feed) = kind_feeds.get(&kind).copied() else { continue };
            let selector_label = self.index.insert(feed, (id, rollup.entries.len()), &target);
            rollup.entries.push(ComponentEntry {
                index,
                kind,
                feed,
                target,
                selector_label,
                matched: 0,
                absence: None,
                since: None,
            });
        }
        let feeds: Vec<_> = kind_feeds.values().copied().collect();
        rollup.kind_feeds = kind_feeds;
        for feed in before.into_values() {
            self.all.leave(feed, id, cx.feeds);
        }
        let objects: BTreeMap<_, _> = feeds
            .iter()
            .flat_map(|feed| cx.feeds.all(*feed))
            .filter_map(|object| Some((object, self.entry_ids(cx.feeds.object(object)?))))
            .collect();
        for (object, entry_ids) in objects {
            self.update_members_of(object, entry_ids, cx);
        }
        if let Some(rollup) = self.all.get_mut(id) {
            for index in 0..rollup.entries.len() {
                rollup.check_absence(index, cx.feeds, cx.now);
            }
            rollup.count_invalid_entries();
            rollup.drop_unnamed();
        }
        self.all.mark_dirty(id);
    }

    /// Removes the Rollup from the index and drops its counts.
    fn remove_spec(&mut self, id: GroupId) {
        let Some(rollup) = self.all.get_mut(id) else { return };
        for (index, entry) in rollup.entries.iter().enumerate() {
            self.index.remove(entry.feed, (id, index), &entry.target, &entry.selector_label);
        }
        for object in rollup.clear() {
            if let Some(entry_ids) = self.memberships.get_mut(&object) {
                *entry_ids = entry_ids.iter().copied().filter(|(other, _)| *other != id).collect();
                if entry_ids.is_empty() {
                    self.memberships.remove(&object);
                }
            }
        }
        self.cycles_due.insert(id);
    }
}
