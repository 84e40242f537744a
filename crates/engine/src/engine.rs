//! The machine itself: what happens goes in, what is to be done comes out.

use std::sync::Arc;

use bellwether_health::user::UserRules;
use jiff::{SignedDuration, Timestamp};

use crate::{
    application::{Applications, Text},
    desk::{Desk, Timer},
    dialect::Dialect,
    effect::{Change, Effect, Part, Slot},
    event::{Event, News, Outcome, Unreadable},
    facts::{Facts, OurKind, Ours, Own, Seen},
    feeds::{Became, Feed, Feeds, ObjectId},
    id::{Cluster, FeedId, Kind, Name},
    lens::{Lens, Scope},
    rollup::Rollups,
    room::Room,
    rules::Rules,
    view::{Claim, Group, Insight},
};

/// A clock that is put back by less than this will soon be where it was.
const LONG_WAY_BACK: SignedDuration = SignedDuration::from_mins(1);

/// A deterministic machine: the same events in the same order give the same effects.
#[derive(Debug)]
pub struct Engine {
    feeds: Feeds,
    desk: Desk,
    rules: Rules,
    applications: Applications,
    rollups: Rollups,
    /// The feeds of our own kinds. Before they are known, no other is begun.
    base: Vec<FeedId>,
    open: bool,
}

/// How much an engine has to do with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Whether our own kinds are known.
    pub open: bool,
    /// How many Applications are ready, are not, and of how many nobody can tell.
    pub applications: [usize; 3],
    /// How many Rollups are healthy, how many give a warning, and how many are in error.
    pub rollups: [usize; 3],
    /// How many kinds are followed.
    pub feeds: usize,
    /// How many objects are kept.
    pub objects: usize,
    /// How many notes are kept besides: what belongs to whom, who owns what, what has been asked for.
    pub notes: usize,
    /// The kinds of which it is not known yet what there is.
    pub unknown: Vec<Kind>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// One that knows nothing. Its first step asks to follow our own kinds.
    pub fn new() -> Self {
        Self::of(&["Application", "HealthRule", "Rollup"])
    }

    /// One that is told of one namespace only. It leaves Rollups alone: their components may be anywhere, and what is
    /// elsewhere would seem not to be there.
    pub fn of_one_namespace() -> Self {
        Self::of(&["Application", "HealthRule"])
    }

    fn of(kinds: &[&str]) -> Self {
        let mut engine = Self {
            feeds: Feeds::default(),
            desk: Desk::default(),
            rules: Rules::default(),
            applications: Applications::default(),
            rollups: Rollups::default(),
            base: Vec::new(),
            open: false,
        };
        engine.base = kinds.iter().map(|kind| engine.follow(&Kind::own(kind))).collect();
        engine
    }

    /// One that looks after the Applications of `app.k8s.io` as well, where the cluster has them. Nothing of ours waits
    /// for them: what they own is never let go of, so that nobody can mistake it for a stranger's.
    #[must_use]
    pub fn with_app_k8s_io(mut self) -> Self {
        self.follow(&Dialect::AppK8sIo.kind());
        self
    }

    fn follow(&mut self, kind: &Kind) -> FeedId {
        let (rules, effects) = (self.rules.in_force(), &mut self.desk.effects);
        self.feeds.acquire(&Cluster::hub(), kind, Scope::default(), rules, effects)
    }

    /// Takes in what has happened, and says what follows from it.
    pub fn step(&mut self, now: Timestamp, events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
        for event in events {
            match event {
                Event::Feed(feed, news) => self.news(feed, news, now),
                Event::Written { slot, change, outcome } => self.written(&slot, &change, &outcome, now),
                Event::Tick => {}
            }
        }
        while let Some(timer) = self.desk.due(now) {
            match timer {
                Timer::Verdict(object) => self.grow_older(object, now),
                Timer::Owners(object) => {
                    let (applications, mut room) = self.room(now);
                    applications.try_owners_again(object, &mut room);
                }
                Timer::Own(OurKind::Application(dialect), name) => self.applications.wake(dialect, &name),
                Timer::Own(OurKind::HealthRule, name) => self.rules.wake(&name),
                Timer::Own(OurKind::Rollup, name) => self.rollups.wake(&name),
            }
        }
        if !self.open && self.base.iter().all(|feed| self.feeds.get(*feed).is_some_and(Feed::is_known)) {
            self.open = true;
            self.put_rules_in_force();
            let (applications, rollups, mut room) = self.rooms(now);
            applications.open(&mut room);
            rollups.open(&mut room);
        } else if self.open {
            self.put_rules_in_force();
        }
        if self.open {
            self.rules.flush(now, &mut self.desk);
        }
        let (applications, rollups, mut room) = self.rooms(now);
        applications.flush(&mut room);
        for feed in rollups.flush(&mut room) {
            applications.feed_left(feed, &mut room);
        }
        self.desk.clear()
    }

    /// What is to be written in a place at this moment, if anything is.
    pub fn change(&self, now: Timestamp, slot: &Slot) -> Option<Change> {
        match slot.part {
            Part::Status => match OurKind::of(&slot.object.kind)? {
                OurKind::HealthRule => self.rules.change(&slot.object.name, now),
                OurKind::Rollup => self.rollups.change(&slot.object.name, &self.feeds, now),
                OurKind::Application(dialect) => {
                    self.applications.change(dialect, &slot.object.name, &self.feeds, now)
                }
            },
            Part::Owners | Part::Existence => self.desk.asked(slot).cloned(),
        }
    }

    /// All groups of which something can be said, by their names: none as long as our own kinds are not known.
    pub fn groups(&self) -> Vec<Group> {
        if !self.open {
            return Vec::new();
        }
        let mut groups: Vec<_> =
            self.applications.groups(&self.feeds).chain(self.rollups.groups(&self.feeds)).collect();
        groups.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
        groups
    }

    /// How a group is as one, without its members; or that there is none, or why nobody can tell.
    pub fn outlook(&self, kind: &Kind, name: &Name) -> Insight {
        if !self.open {
            let base = self.base.iter().filter_map(|feed| self.feeds.get(*feed));
            return Insight::waits_for(base.filter(|feed| !feed.is_known()).map(|feed| feed.kind.clone()));
        }
        let found = match OurKind::of(kind) {
            Some(OurKind::Application(dialect)) => self.applications.outlook(dialect, name, &self.feeds),
            Some(OurKind::Rollup) => self.rollups.outlook(name, &self.feeds),
            Some(OurKind::HealthRule) | None => None,
        };
        found.unwrap_or_else(|| self.feeds.missed(kind))
    }

    /// Whether something can be said of all groups that there are: every kind that they need is known, and none is being
    /// listed again.
    pub fn is_whole(&self) -> bool {
        self.open && self.feeds.are_whole()
    }

    /// What the Applications of its namespace and the Rollups have to do with an object, whether its kind is followed or not.
    pub fn claims(&self, kind: &Kind, name: &Name, facts: &Facts) -> Vec<Claim> {
        let mut claims = self.applications.claims(kind, name, facts);
        claims.extend(self.rollups.claims(kind, name, facts));
        claims
    }

    /// What is kept of the objects of a kind, by the rules that are in force.
    pub fn lens(&self, kind: &Kind) -> Lens {
        Lens::new(kind, Arc::clone(self.rules.in_force()))
    }

    /// The rules of users that are in force.
    pub fn rules(&self) -> &UserRules {
        self.rules.in_force()
    }

    /// How much there is.
    pub fn census(&self) -> Census {
        let (feeds, objects) = self.feeds.size();
        Census {
            open: self.open,
            applications: self.applications.by_readiness(),
            rollups: self.rollups.by_health(),
            feeds,
            objects,
            notes: self.applications.notes() + self.rollups.notes() + self.desk.notes(),
            unknown: self.feeds.unknown(),
        }
    }

    /// Somebody has set the clock. What waits for so long from some moment on waits no longer and no shorter for that. What
    /// an hour has made of an object that has not passed yet is looked at again.
    pub fn clock_set(&mut self, by: SignedDuration) {
        self.desk.clock_set(by);
        self.applications.clock_set(by);
        self.rollups.clock_set();
        if by < -LONG_WAY_BACK {
            self.feeds.look_again(&mut self.desk.effects);
        }
    }

    fn rooms(&mut self, now: Timestamp) -> (&mut Applications, &mut Rollups, Room<'_>) {
        let room = Room { feeds: &mut self.feeds, desk: &mut self.desk, rules: self.rules.in_force(), now };
        (&mut self.applications, &mut self.rollups, room)
    }

    fn room(&mut self, now: Timestamp) -> (&mut Applications, Room<'_>) {
        let (applications, _, room) = self.rooms(now);
        (applications, room)
    }

    fn news(&mut self, id: FeedId, news: News, now: Timestamp) {
        let Some(feed) = self.feeds.get_mut(id) else { return };
        match news {
            News::Served(served) => {
                let is_news = feed.served.as_ref() != Some(&served);
                feed.served = Some(served);
                if is_news {
                    self.feed_changed(id, false, now);
                }
            }
            News::Unreadable(unreadable) => {
                let is_gone = unreadable == Unreadable::NotServed;
                feed.unreadable = Some(unreadable);
                // Where there is no kind, there are no objects.
                for object in if is_gone { self.feeds.all(id) } else { Vec::new() } {
                    self.gone(object, now);
                }
                self.feed_changed(id, true, now);
            }
            News::PutBack => self.feeds.forget_versions(id),
            News::Listing => self.feeds.begin_list(id),
            News::Listed => {
                let (was_listed, was_unreadable) = (feed.listed, feed.unreadable.is_some());
                for object in self.feeds.end_list(id) {
                    self.gone(object, now);
                }
                // Each object has been counted when it was seen; but of what they came to, nothing was said meanwhile.
                if was_listed && !was_unreadable {
                    self.applications.list_complete(id);
                    self.rollups.list_complete(id);
                } else {
                    self.feed_changed(id, was_unreadable, now);
                }
            }
            News::Seen(name, seen) => self.seen(id, name, *seen, now),
            News::Gone(name) => {
                if let Some(object) = self.feeds.find_in(id, &name) {
                    self.gone(object, now);
                }
            }
        }
    }

    fn feed_changed(&mut self, id: FeedId, readability: bool, now: Timestamp) {
        let (applications, rollups, mut room) = self.rooms(now);
        applications.feed_changed(id, &mut room);
        rollups.feed_changed(id, &room);
        if readability {
            applications.readability_changed(id, &mut room);
        }
    }

    fn seen(&mut self, feed: FeedId, name: Name, seen: Seen, now: Timestamp) {
        let Seen { facts, own } = seen;
        // Our kinds mean something in the cluster that we serve.
        let own = own.filter(|_| self.feeds.get(feed).is_some_and(|feed| feed.cluster == Cluster::hub()));
        if let Some(other) = self.feeds.namesake(feed, &name, &facts.uid) {
            self.gone(other, now);
        }
        match self.feeds.put(feed, name, facts, own.as_ref().map(Ours::of)) {
            Some(Became::Changed(object, before)) => {
                self.watch_the_clock(object);
                let (facts, before) = before.map(|before| *before).unzip();
                match (own, before.flatten()) {
                    (Some(own), _) => self.understood(object, &own, now),
                    (None, Some(before)) => self.forget(before.kind, object, now),
                    (None, None) => {}
                }
                self.changed(object, facts.as_ref(), now);
            }
            Some(Became::Overtaken(object, before)) => {
                self.watch_the_clock(object);
                self.changed(object, Some(&*before), now);
            }
            Some(Became::Same(object)) => self.same(object, now),
            Some(Became::Older) | None => {}
        }
    }

    /// One of our own objects is there, or is not what it was.
    fn understood(&mut self, object: ObjectId, own: &Own, now: Timestamp) {
        let Some(stored) = self.feeds.object(object) else { return };
        match own {
            Own::Application(written) => self.set(object, Text::Ours(written), now),
            Own::AppK8sIo(written) => self.set(object, Text::AppK8sIo(written), now),
            Own::HealthRule(written) => {
                self.rules.set(&stored.name, &stored.facts, written, &mut self.desk);
            }
            Own::Rollup(written) => {
                let (name, facts) = (stored.name.clone(), stored.facts.clone());
                let (_, rollups, mut room) = self.rooms(now);
                rollups.set(&name, &facts, written, &mut room);
            }
        }
    }

    fn set(&mut self, object: ObjectId, text: Text<'_>, now: Timestamp) {
        let Some(stored) = self.feeds.object(object) else { return };
        let (name, facts) = (stored.name.clone(), stored.facts.clone());
        let (applications, mut room) = self.room(now);
        applications.set(&name, &facts, text, &mut room);
    }

    /// An object is there, or is not what it was.
    fn changed(&mut self, object: ObjectId, before: Option<&Facts>, now: Timestamp) {
        let (applications, rollups, mut room) = self.rooms(now);
        applications.object_changed(object, before, &mut room);
        rollups.object_changed(object, &room);
    }

    /// One of our own objects is gone, or is no longer one that we understand.
    fn forget(&mut self, kind: OurKind, object: ObjectId, now: Timestamp) {
        let Some(name) = self.feeds.object(object).map(|stored| stored.name.clone()) else { return };
        match kind {
            OurKind::Application(dialect) => {
                let (applications, mut room) = self.room(now);
                applications.remove(dialect, &name, &mut room);
            }
            OurKind::HealthRule => self.rules.remove(&name, &mut self.desk),
            OurKind::Rollup => self.rollups.remove(&name, &self.feeds, &mut self.desk),
        }
    }

    /// An object has another version, and is what it was.
    fn same(&mut self, object: ObjectId, now: Timestamp) {
        let Some(stored) = self.feeds.object(object) else { return };
        match stored.own.map(|own| own.kind) {
            Some(OurKind::Application(dialect)) => {
                self.applications.same(dialect, &stored.name, &stored.facts);
            }
            Some(OurKind::HealthRule) => self.rules.same(&stored.name, &stored.facts),
            Some(OurKind::Rollup) => self.rollups.same(&stored.name, &stored.facts),
            None => {}
        }
        let (applications, mut room) = self.room(now);
        applications.object_same(object, &mut room);
    }

    fn gone(&mut self, object: ObjectId, now: Timestamp) {
        let (applications, rollups, mut room) = self.rooms(now);
        applications.object_gone(object, &mut room);
        rollups.object_gone(object, &room);
        if let Some(own) = self.feeds.object(object).and_then(|stored| stored.own) {
            self.forget(own.kind, object, now);
        }
        let Some(stored) = self.feeds.remove(object) else { return };
        let Some(kind) = self.feeds.get(stored.feed).map(|feed| feed.kind.clone()) else { return };
        let (applications, mut room) = self.room(now);
        applications.object_missing(&kind, &stored.name, &mut room);
    }

    fn written(&mut self, slot: &Slot, change: &Change, outcome: &Outcome, now: Timestamp) {
        // What was refused, did not get through, or met an API server that knows no such object, is still wanted and is
        // tried again. What met another version of the object is asked for again when that version is known here.
        let is_over = match change {
            Change::Status { .. } => return self.status_written(slot, change, outcome, now),
            Change::Owners { .. } => matches!(outcome, Outcome::Done(_)),
            Change::Create { .. } | Change::Delete { .. } => {
                matches!(outcome, Outcome::Done(_) | Outcome::Conflict)
            }
        };
        if is_over {
            self.desk.settle(slot, change);
        }
        let (applications, mut room) = self.room(now);
        applications.written(slot, change, outcome, &mut room);
    }

    fn status_written(&mut self, slot: &Slot, change: &Change, outcome: &Outcome, now: Timestamp) {
        let object = &slot.object;
        let version = match OurKind::of(&object.kind) {
            Some(OurKind::HealthRule) => {
                self.rules.status_written(&object.name, change, outcome, now, &mut self.desk)
            }
            Some(OurKind::Rollup) => {
                let (_, rollups, mut room) = self.rooms(now);
                rollups.status_written(&object.name, change, outcome, &mut room)
            }
            Some(OurKind::Application(dialect)) => {
                let (applications, mut room) = self.room(now);
                applications.status_written(dialect, &object.name, change, outcome, &mut room)
            }
            None => None,
        };
        if let Some(version) = version
            && let Some(stored) = self.feeds.find(&object.cluster, &object.kind, &object.name)
            && let Some(stored) = self.feeds.object_mut(stored)
        {
            stored.overtake(version);
        }
    }

    /// Judges by the rules in force, if they have changed.
    fn put_rules_in_force(&mut self) {
        let Some(before) = self.rules.enforce() else { return };
        let rules = self.rules.in_force();
        self.feeds.refocus(
            rules,
            |kind| !rules.same_for(&before, &kind.group, &kind.kind),
            &mut self.desk.effects,
        );
    }

    /// Looks again when the verdict on an object will have turned into another.
    fn watch_the_clock(&mut self, object: ObjectId) {
        if let Some(later) = self.feeds.object(object).and_then(|stored| stored.facts.verdict.later.as_ref())
        {
            self.desk.at(later.at, Timer::Verdict(object));
        }
    }

    /// Time has made another verdict of the one on an object, perhaps.
    fn grow_older(&mut self, object: ObjectId, now: Timestamp) {
        let Some(stored) = self.feeds.object_mut(object) else { return };
        let before = stored.facts.clone();
        let Some(later) = stored.facts.verdict.later.take_if(|later| later.at <= now) else { return };
        stored.facts.verdict = later.verdict;
        self.watch_the_clock(object);
        self.changed(object, Some(&before), now);
    }
}
