//! Rollups: components of any kind, anywhere in the cluster, that operators look after, and the worst of what they say.
//!
//! `choice.rs` reads which objects a spec means, and `index.rs` finds the Rollups that mean an object; `word.rs` is what one
//! component says, by the policies of `policies.rs`; `sources.rs` counts that; `one.rs` weighs it; `status.rs` puts it into
//! words, and `triple.rs` says what three conditions mean together.

mod choice;
mod circle;
mod index;
mod one;
mod policies;
mod sources;
mod status;
mod triple;
mod view;
mod word;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
};

use bellwether_api::{RollupSpec, RollupStatus};
use jiff::Timestamp;
use slab::Slab;

use crate::{
    desk::Desk,
    effect::Change,
    event::Outcome,
    facts::{Facts, Version, Written},
    feeds::{Feeds, ObjectId, Stored},
    id::{Cluster, FeedId, Kind, Name, ObjectKey},
    lens::Scope,
    needs::Needs,
    planted::Bug,
    publication::Publication,
    room::Room,
};

use choice::Choice;
use index::{Index, Seat};
use one::Rollup;
pub use view::rollup_mistakes;

/// A Rollup of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct RollupId(usize);

/// All Rollups.
#[derive(Debug, Default)]
pub(crate) struct Rollups {
    all: Slab<Rollup>,
    by_name: HashMap<Name, RollupId>,
    index: Index,
    /// Which choices mean an object.
    counting: HashMap<ObjectId, Box<[Seat]>>,
    /// Which Rollups are components of which.
    circles: Needs,
    /// Who uses a feed.
    users: HashMap<FeedId, BTreeSet<RollupId>>,
    /// Feeds that are needed once less.
    left: Vec<FeedId>,
    /// Whether kinds may be followed: not before our own are known.
    open: bool,
    dirty: BTreeSet<RollupId>,
    /// When they were last looked at.
    now: Timestamp,
}

impl Rollups {
    /// Our own kinds are known: from now on those of the components are followed.
    pub(crate) fn open(&mut self, room: &mut Room<'_>) {
        if !self.open {
            self.open = true;
            for id in self.all.iter().map(|(id, _)| RollupId(id)).collect::<Vec<_>>() {
                self.settle_in(id, room);
            }
        }
    }

    /// Somebody has set the clock: how long something has lasted is another question now.
    pub(crate) fn clock_set(&mut self) {
        self.dirty.extend(self.all.iter().map(|(id, _)| RollupId(id)));
    }

    /// A Rollup is there, or has changed.
    pub(crate) fn set(
        &mut self,
        name: &Name,
        facts: &Facts,
        written: &Written<RollupSpec, RollupStatus>,
        room: &mut Room<'_>,
    ) {
        let Written { generation, spec, status, .. } = written;
        if let Some(id) = self.by_name.get(name).copied()
            && let Some(rollup) = self.all.get_mut(id.0)
        {
            let is_same = rollup.spec == *spec && rollup.deleting == facts.deleting;
            rollup.deleting = facts.deleting;
            if rollup.publication.seen(facts, *generation, status, room.desk) {
                rollup.remember(status);
                self.dirty.insert(id);
            }
            if !is_same && let Some(rollup) = self.all.get_mut(id.0) {
                rollup.spec = spec.clone();
                self.settle_in(id, room);
            }
            return;
        }
        let object = ObjectKey { cluster: Cluster::hub(), kind: Kind::own("Rollup"), name: name.clone() };
        let publication = Publication::new(object, &status::MANNER, facts, *generation, status);
        let mut rollup = Rollup::new(name, publication, facts.deleting, spec.clone());
        rollup.remember(status);
        let id = RollupId(self.all.insert(rollup));
        self.by_name.insert(name.clone(), id);
        self.settle_in(id, room);
    }

    /// The version of a Rollup has changed, and nothing else.
    pub(crate) fn same(&mut self, name: &Name, facts: &Facts) {
        if let Some(id) = self.by_name.get(name)
            && let Some(rollup) = self.all.get_mut(id.0)
            && rollup.publication.seen_again(facts)
        {
            self.dirty.insert(*id);
        }
    }

    /// A Rollup is gone.
    pub(crate) fn remove(&mut self, name: &Name, feeds: &Feeds, desk: &mut Desk) {
        let Some(id) = self.by_name.get(name).copied() else { return };
        self.move_out(id, feeds);
        self.by_name.remove(name);
        self.dirty.remove(&id);
        let rollup = self.all.remove(id.0);
        rollup.publication.withdraw(desk);
        for feed in rollup.needs.into_values() {
            self.let_go_of(feed, id);
        }
    }

    /// An object is there, or has changed.
    pub(crate) fn object_changed(&mut self, object: ObjectId, room: &Room<'_>) {
        let Some(stored) = room.feeds.object(object) else { return };
        let seats = self.seats(stored);
        self.count(object, seats, room);
    }

    /// An object is about to be forgotten, because it is gone.
    pub(crate) fn object_gone(&mut self, object: ObjectId, room: &Room<'_>) {
        self.count(object, BTreeSet::new(), room);
    }

    /// A kind has become readable or unreadable, or all of it is known now.
    pub(crate) fn feed_changed(&mut self, feed: FeedId, room: &Room<'_>) {
        for id in self.users.get(&feed).cloned().unwrap_or_default() {
            let (Some(rollup), Some(known)) = (self.all.get_mut(id.0), room.feeds.get(feed)) else {
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
            self.dirty.insert(id);
        }
    }

    /// All of a kind has been told once more: whoever waited for the end of it looks again.
    pub(crate) fn list_complete(&mut self, feed: FeedId) {
        self.dirty.extend(self.users.get(&feed).into_iter().flatten());
    }

    /// It is time to look at a Rollup again.
    pub(crate) fn wake(&mut self, name: &Name) {
        if let Some(id) = self.by_name.get(name)
            && let Some(rollup) = self.all.get_mut(id.0)
        {
            rollup.publication.try_again();
            self.dirty.insert(*id);
        }
    }

    /// Asks for whatever follows from what has changed. Gives back the feeds that are needed once less.
    pub(crate) fn flush(&mut self, room: &mut Room<'_>) -> Vec<FeedId> {
        self.now = room.now;
        if self.open {
            while let Some(id) = self.dirty.pop_first() {
                let Some(rollup) = self.all.get_mut(id.0) else { continue };
                if !rollup.is_known(room.feeds) {
                    continue;
                }
                rollup.forget_the_past();
                let weighed = rollup.weigh(room.now);
                rollup.shown = Some(weighed.triple());
                if rollup.deleting {
                    rollup.publication.withdraw(room.desk);
                    continue;
                }
                if let Some(until) = weighed.until().filter(|_| !Bug::ForgetHeldTurn.is_planted()) {
                    room.desk.at(until, rollup.timer());
                }
                let statuses = status::statuses(rollup, &weighed, room.feeds);
                rollup.publication.want(statuses, false, room.now, room.desk);
            }
        }
        mem::take(&mut self.left)
    }

    /// What is to be written about a Rollup.
    pub(crate) fn change(&self, name: &Name, feeds: &Feeds, now: Timestamp) -> Option<Change> {
        let rollup = self.all.get(self.by_name.get(name)?.0)?;
        if !self.open || rollup.deleting || !rollup.is_known(feeds) {
            return None;
        }
        rollup.publication.change(&status::render(rollup, feeds, now))
    }

    /// A write of the status of a Rollup has ended. Gives back the version that the Rollup has now, if that is news.
    pub(crate) fn status_written(
        &mut self,
        name: &Name,
        change: &Change,
        outcome: &Outcome,
        room: &mut Room<'_>,
    ) -> Option<Version> {
        let id = *self.by_name.get(name)?;
        let rollup = self.all.get_mut(id.0)?;
        let version = rollup.publication.written(change, outcome, room.now, room.desk);
        if rollup.publication.is_behind(outcome) {
            self.dirty.insert(id);
        }
        version
    }

    /// How much is noted of what belongs to whom.
    pub(crate) fn notes(&self) -> usize {
        let rollups: usize = self.all.iter().map(|(_, rollup)| rollup.notes()).sum();
        rollups + self.counting.len() + self.users.len()
    }

    /// The choices that mean an object. No Rollup is a component of itself.
    fn seats(&self, stored: &Stored) -> BTreeSet<Seat> {
        let mut seats = self.index.candidates(stored.feed, &stored.name, &stored.facts.labels);
        seats.retain(|(id, index)| {
            self.all.get(id.0).is_some_and(|rollup| {
                let what = rollup.choices.get(*index).map(|choice| &choice.what);
                (*stored.facts.uid != *rollup.uid() || Bug::CountItself.is_planted())
                    && what.is_some_and(|what| what.is_it(&stored.name, &stored.facts.labels))
            })
        });
        seats
    }

    /// Counts an object for those whose choices mean it, and for nobody else.
    fn count(&mut self, object: ObjectId, seats: BTreeSet<Seat>, room: &Room<'_>) {
        let before: BTreeSet<_> = self.counting.remove(&object).into_iter().flatten().collect();
        if before.is_empty() && seats.is_empty() {
            return;
        }
        let concerned: BTreeSet<_> = before.iter().chain(&seats).map(|(id, _)| *id).collect();
        let mut above = Vec::new();
        for id in concerned {
            let Some(rollup) = self.all.get_mut(id.0) else { continue };
            let of = |seats: &BTreeSet<Seat>| -> BTreeSet<usize> {
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
            self.dirty.insert(id);
        }
        if !seats.is_empty() {
            self.counting.insert(object, seats.into_iter().collect());
        }
        for id in above {
            self.look_for_circles(id, room.feeds);
        }
    }

    /// The spec of a Rollup is new: finds out all over what its components are.
    fn settle_in(&mut self, id: RollupId, room: &mut Room<'_>) {
        if !self.open {
            return;
        }
        self.move_out(id, room.feeds);
        let Some(rollup) = self.all.get_mut(id.0) else { return };
        let (wanted, mistakes) = choice::wanted(&rollup.name.name, &rollup.spec);
        rollup.mistakes = mistakes;
        let mut before = mem::take(&mut rollup.needs);
        for (place, kind, what) in wanted {
            let feed = match rollup.needs.get(&kind) {
                Some(feed) => *feed,
                None => before.remove(&kind).unwrap_or_else(|| {
                    let (scope, effects) = (Scope { operator: true }, &mut room.desk.effects);
                    let feed = room.feeds.acquire(&Cluster::hub(), &kind, scope, room.rules, effects);
                    self.users.entry(feed).or_default().insert(id);
                    feed
                }),
            };
            rollup.needs.insert(kind.clone(), feed);
            let anchor = self.index.insert(feed, (id, rollup.choices.len()), &what);
            rollup.choices.push(Choice {
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
        let needed: Vec<_> = rollup.needs.values().copied().collect();
        for feed in before.into_values() {
            self.let_go_of(feed, id);
        }
        let objects: BTreeMap<_, _> = needed
            .iter()
            .flat_map(|feed| room.feeds.all(*feed))
            .filter_map(|object| Some((object, self.seats(room.feeds.object(object)?))))
            .collect();
        for (object, seats) in objects {
            self.count(object, seats, room);
        }
        if let Some(rollup) = self.all.get_mut(id.0) {
            for index in 0..rollup.choices.len() {
                rollup.look_for(index, room.feeds, room.now);
            }
            rollup.count_mistakes();
        }
        self.dirty.insert(id);
    }

    /// Counts nothing for a Rollup any more.
    fn move_out(&mut self, id: RollupId, feeds: &Feeds) {
        let Some(rollup) = self.all.get_mut(id.0) else { return };
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

    fn let_go_of(&mut self, feed: FeedId, id: RollupId) {
        crate::anchors::take(&mut self.users, &feed, id);
        if !Bug::KeepKind.is_planted() {
            self.left.push(feed);
        }
    }
}
