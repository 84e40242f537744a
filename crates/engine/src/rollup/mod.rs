//! Rollups: components of any kind, anywhere in the cluster, that operators look after, and the worst of what they say.
//!
//! `component_entry.rs` reads which objects a spec means, and `index.rs` finds the Rollups that mean an object; `component_report.rs` is what one
//! component says, by the policies of `policies.rs`; `component_reports.rs` counts that; `rollup_state.rs` weighs it; `status.rs` puts it into
//! words, and `triple.rs` says what three conditions mean together.

mod component_entry;
mod component_report;
mod component_reports;
mod cycle;
mod deciding;
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
    census::Census,
    context::Context,
    dependency_graph::DependencyGraph,
    effect::Change,
    event::Outcome,
    facts::{Facts, OwnManifest, OwnObject, ResourceVersion},
    feeds::{Feeds, ObjectId, StoredObject},
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    id::{Cluster, FeedId, GroupKind, NamespacedName},
    planted::Bug,
    publication::Publication,
    registry::{GroupId, Registry},
    view::{Claim, Group, GroupStatus},
    wanted::Wanted,
};

use component_entry::ComponentEntry;
use index::{ComponentIndex, EntryId};
use rollup_state::Rollup;
pub use view::rollup_mistakes;

/// All Rollups.
#[derive(Debug, Default)]
pub(crate) struct Rollups {
    all: Registry<Rollup>,
    index: ComponentIndex,
    /// Which choices mean an object.
    counting: HashMap<ObjectId, Box<[EntryId]>>,
    /// Which Rollups are components of which.
    circles: DependencyGraph,
}

impl Grouping for Rollups {
    fn reads(&self, kind: OwnKind) -> bool {
        kind == OwnKind::Rollup
    }

    fn base(&self) -> &'static [OwnKind] {
        &[OwnKind::Rollup]
    }

    /// Components may be anywhere.
    fn is_namespaced(&self) -> bool {
        false
    }

    fn sync(&mut self, room: &mut Context<'_>) {
        for id in self.all.sync() {
            self.settle_in(id, room);
        }
    }

    /// How long something has lasted is another question now.
    fn clock_set(&mut self, _by: SignedDuration) {
        let all = self.all.ids();
        self.all.touch_all(all);
    }

    fn set(&mut self, name: &NamespacedName, facts: &Facts, own: &OwnObject, room: &mut Context<'_>) {
        let OwnObject::Rollup(written) = own else { return };
        let OwnManifest { generation, spec, status, .. } = &**written;
        let group = GroupRef::new(OwnKind::Rollup, name.clone());
        let Some(id) = self.all.id(&group) else {
            let publication = Publication::new(group.clone(), &status::MANNER, facts, *generation, status);
            let mut rollup = Rollup::new(publication, facts.deleting, spec.clone());
            rollup.remember(status);
            let id = self.all.insert(group, rollup);
            return self.settle_in(id, room);
        };
        let Some(rollup) = self.all.get_mut(id) else { return };
        let is_same = rollup.spec == *spec && rollup.deleting == facts.deleting;
        rollup.deleting = facts.deleting;
        if rollup.publication.seen(facts, *generation, status, room.desk) {
            rollup.remember(status);
            self.all.touch(id);
        }
        let is_synced = self.all.is_synced();
        let Some(rollup) = self.all.get_mut(id) else { return };
        if !is_same {
            rollup.spec = spec.clone();
            self.settle_in(id, room);
        } else if is_synced {
            rollup.forget_strangers();
        }
    }

    fn seen_again(&mut self, group: &GroupRef, facts: &Facts) {
        self.all.seen_again(group, facts);
    }

    fn remove(&mut self, group: &GroupRef, room: &mut Context<'_>) {
        let Some(id) = self.all.id(group) else { return };
        self.move_out(id, room.feeds);
        let Some((_, rollup)) = self.all.remove(group, room.desk) else { return };
        rollup.publication.withdraw(room.desk);
        for feed in rollup.needs.into_values() {
            self.all.leave(feed, id, room.feeds);
        }
    }

    fn object_changed(&mut self, object: ObjectId, _before: Option<&Facts>, room: &mut Context<'_>) {
        let Some(stored) = room.feeds.object(object) else { return };
        let seats = self.seats(stored);
        self.recount(object, seats, room);
    }

    fn object_gone(&mut self, object: ObjectId, room: &mut Context<'_>) {
        self.recount(object, BTreeSet::new(), room);
    }

    fn feed_changed(&mut self, feed: FeedId, _readability: bool, room: &mut Context<'_>) {
        for id in self.all.users(feed) {
            let (Some(rollup), Some(known)) = (self.all.get_mut(id), room.feeds.get(feed)) else {
                continue;
            };
            for index in 0..rollup.choices.len() {
                if rollup.choices.get(index).is_some_and(|choice| choice.feed == feed) {
                    rollup.look_for(index, room.feeds, room.now);
                }
            }
            for object in rollup.objects() {
                if let Some(stored) = room.feeds.object(object).filter(|stored| stored.feed == feed) {
                    rollup.count(object, stored, known);
                }
            }
            self.all.touch(id);
        }
    }

    fn list_started(&mut self, feed: FeedId, room: &mut Context<'_>) {
        self.all.users_changed(feed, room.desk);
    }

    fn list_completed(&mut self, feed: FeedId) {
        self.all.touch_users(feed);
    }

    fn wake(&mut self, group: &GroupRef) {
        self.all.wake(group);
    }

    fn flush(&mut self, room: &mut Context<'_>) {
        if !self.all.is_synced() {
            return;
        }
        while let Some(id) = self.all.next_dirty(room.desk) {
            let Some(rollup) = self.all.get_mut(id) else { continue };
            if !rollup.is_known(room.feeds) {
                continue;
            }
            if rollup.shown.is_none() {
                // What has come back before we began may go once more.
                rollup.forget_the_past();
            }
            let weighed = rollup.weigh(room.now);
            rollup.shown = Some(weighed.triple());
            if let Some(next) = weighed.next().filter(|_| !Bug::ForgetHeldTurn.is_planted()) {
                room.desk.at(next, rollup.publication.timer());
            }
            if rollup.deleting {
                rollup.publication.withdraw(room.desk);
                continue;
            }
            let statuses = status::statuses(rollup, &weighed, room.feeds);
            rollup.publication.want(statuses, false, room.now, room.desk);
        }
    }

    fn status(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<Change> {
        let rollup = self.all.named(group)?;
        if !self.all.is_synced() || rollup.deleting || !rollup.is_known(feeds) {
            return None;
        }
        rollup.publication.change(&status::render(rollup, feeds, now))
    }

    fn status_written(
        &mut self,
        group: &GroupRef,
        change: &Change,
        outcome: &Outcome,
        room: &mut Context<'_>,
    ) -> Option<ResourceVersion> {
        let id = self.all.id(group)?;
        if matches!(outcome, Outcome::Done(_)) {
            self.all.get_mut(id)?.forget_the_past();
        }
        self.all.status_written(group, change, outcome, room)
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
        self.view_as_one(group, feeds, now)
    }

    fn claims(&self, kind: &GroupKind, name: &NamespacedName, facts: &Facts) -> Vec<Claim> {
        self.all_claims(kind, name, facts)
    }

    fn count(&self, census: &mut Census) {
        census.rollups = self.by_health();
        let rollups: usize = self.all.iter().map(Rollup::notes).sum();
        census.notes += rollups + self.counting.len() + self.all.feeds();
    }
}

impl Rollups {
    /// The choices that mean an object. No Rollup is a component of itself.
    fn seats(&self, stored: &StoredObject) -> BTreeSet<EntryId> {
        let mut seats = self.index.candidates(stored.feed, &stored.name, &stored.facts.labels);
        seats.retain(|(id, index)| {
            self.all.get(*id).is_some_and(|rollup| {
                let what = rollup.choices.get(*index).map(|choice| &choice.what);
                (*stored.facts.uid != *rollup.uid() || Bug::CountItself.is_planted())
                    && what.is_some_and(|what| what.is_it(&stored.name, &stored.facts.labels))
            })
        });
        seats
    }

    /// Counts an object for those whose choices mean it, and for nobody else.
    fn recount(&mut self, object: ObjectId, seats: BTreeSet<EntryId>, room: &Context<'_>) {
        let before: BTreeSet<_> = self.counting.remove(&object).into_iter().flatten().collect();
        if before.is_empty() && seats.is_empty() {
            return;
        }
        let concerned: BTreeSet<_> = before.iter().chain(&seats).map(|(id, _)| *id).collect();
        let mut above = Vec::new();
        for id in concerned {
            let Some(rollup) = self.all.get_mut(id) else { continue };
            let of = |seats: &BTreeSet<EntryId>| -> BTreeSet<usize> {
                seats.iter().filter(|(other, _)| *other == id).map(|(_, index)| *index).collect()
            };
            let (before, after) = (of(&before), of(&seats));
            // An object and what was said while it was lacking have one name: one goes before the other comes.
            if after.is_empty() {
                rollup.forget(object);
            }
            for index in before.symmetric_difference(&after) {
                if let Some(choice) = rollup.choices.get_mut(*index) {
                    choice.matched = if after.contains(index) {
                        choice.matched + 1
                    } else {
                        choice.matched.saturating_sub(1)
                    };
                }
                rollup.look_for(*index, room.feeds, room.now);
            }
            if let Some(stored) = room.feeds.object(object)
                && let Some(feed) = room.feeds.get(stored.feed)
            {
                if !after.is_empty() {
                    rollup.count(object, stored, feed);
                }
                if feed.kind.is_rollup() {
                    let is_news = if after.is_empty() {
                        rollup.below.remove(&stored.name)
                    } else {
                        rollup.below.insert(stored.name.clone())
                    };
                    above.extend(is_news.then_some(id));
                }
            }
            self.all.touch(id);
        }
        if !seats.is_empty() {
            self.counting.insert(object, seats.into_iter().collect());
        }
        for id in above {
            self.look_for_circles(id, room.feeds);
        }
    }

    /// The spec of a Rollup is new: finds out all over what its components are.
    fn settle_in(&mut self, id: GroupId, room: &mut Context<'_>) {
        if !self.all.is_synced() {
            return;
        }
        self.move_out(id, room.feeds);
        let Some(rollup) = self.all.get_mut(id) else { return };
        let (wanted, mistakes) = component_entry::wanted(&rollup.name.name, &rollup.spec);
        rollup.mistakes = mistakes;
        let mut before = mem::take(&mut rollup.needs);
        let mut needs = BTreeMap::new();
        for (_, kind, _) in &wanted {
            if !needs.contains_key(kind) {
                let feed = before.remove(kind);
                let feed = feed.unwrap_or_else(|| {
                    self.all.follow(id, &Cluster::hub(), kind, &Wanted::conditions(), room)
                });
                needs.insert(kind.clone(), feed);
            }
        }
        let Some(rollup) = self.all.get_mut(id) else { return };
        for (place, kind, what) in wanted {
            let Some(feed) = needs.get(&kind).copied() else { continue };
            let anchor = self.index.insert(feed, (id, rollup.choices.len()), &what);
            rollup.choices.push(ComponentEntry {
                place,
                kind,
                feed,
                what,
                anchor,
                matched: 0,
                lack: None,
                since: None,
            });
        }
        let needed: Vec<_> = needs.values().copied().collect();
        rollup.needs = needs;
        for feed in before.into_values() {
            self.all.leave(feed, id, room.feeds);
        }
        let objects: BTreeMap<_, _> = needed
            .iter()
            .flat_map(|feed| room.feeds.all(*feed))
            .filter_map(|object| Some((object, self.seats(room.feeds.object(object)?))))
            .collect();
        for (object, seats) in objects {
            self.recount(object, seats, room);
        }
        if let Some(rollup) = self.all.get_mut(id) {
            for index in 0..rollup.choices.len() {
                rollup.look_for(index, room.feeds, room.now);
            }
            rollup.count_mistakes();
            rollup.forget_strangers();
        }
        self.all.touch(id);
    }

    /// Counts nothing for a Rollup any more.
    fn move_out(&mut self, id: GroupId, feeds: &Feeds) {
        let Some(rollup) = self.all.get_mut(id) else { return };
        for (index, choice) in rollup.choices.iter().enumerate() {
            self.index.remove(choice.feed, (id, index), &choice.what, &choice.anchor);
        }
        for object in rollup.clear() {
            if let Some(seats) = self.counting.get_mut(&object) {
                *seats = seats.iter().copied().filter(|(other, _)| *other != id).collect();
                if seats.is_empty() {
                    self.counting.remove(&object);
                }
            }
        }
        self.look_for_circles(id, feeds);
    }
}
