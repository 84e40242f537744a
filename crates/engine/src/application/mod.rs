//! Applications: the objects of a namespace that belong together.
//!
//! `index.rs` finds the Applications that an object concerns; `members.rs` counts; `ownership.rs`, `dependencies.rs` and
//! `health_check.rs` have a promise each; `status.rs` puts into words what has become of them all.

mod app;
mod dependencies;
mod health_check;
mod index;
mod members;
mod ownership;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use bellwether_api::{ApplicationSpec, ApplicationStatus, ConditionStatus, DependencyStatus, State};
use bellwether_health::user::UserRules;
use jiff::Timestamp;
use slab::Slab;

use crate::{
    desk::Desk,
    effect::{Change, Part, Slot, Turn},
    event::Outcome,
    facts::{Facts, Written},
    feeds::{Feed, Feeds, ObjectId, Stored},
    id::{Cluster, FeedId, Kind, Name, ObjectKey},
    lens::Lens,
    patch, said,
    selector::Selector,
};

use app::{App, Component, Need, Presence};
use dependencies::Dependencies;
use index::Index;
use members::{Members, Share, Whose};

/// An Application of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AppId(usize);

/// What the Applications work with.
pub(crate) struct Room<'a> {
    pub(crate) feeds: &'a mut Feeds,
    pub(crate) desk: &'a mut Desk,
    pub(crate) rules: &'a Arc<UserRules>,
    pub(crate) now: Timestamp,
}

/// All Applications.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    apps: Slab<App>,
    by_name: HashMap<Name, AppId>,
    by_uid: HashMap<Box<str>, AppId>,
    index: Index,
    dependencies: Dependencies,
    /// Which Applications count an object.
    counting: HashMap<ObjectId, Vec<AppId>>,
    /// Which objects have an Application among their owners, by its uid.
    owned: HashMap<Box<str>, BTreeSet<ObjectId>>,
    /// Objects whose owners could not be changed, and the Applications that say so.
    refused: BTreeMap<(Kind, Name), BTreeSet<AppId>>,
    /// Who uses a feed.
    users: HashMap<FeedId, BTreeSet<AppId>>,
    /// Whether kinds may be followed: not before all Applications and rules are known.
    open: bool,
    dirty: BTreeSet<AppId>,
}

impl Applications {
    /// All Applications and rules are known: from now on their kinds are followed.
    pub(crate) fn open(&mut self, room: &mut Room<'_>) {
        if !self.open {
            self.open = true;
            for id in self.apps.iter().map(|(id, _)| AppId(id)).collect::<Vec<_>>() {
                self.settle_in(id, room);
            }
        }
    }

    /// An Application is there, or has changed.
    pub(crate) fn set(
        &mut self,
        name: &Name,
        facts: &Facts,
        written: &Written<ApplicationSpec, ApplicationStatus>,
        room: &mut Room<'_>,
    ) {
        if let Some(id) = self.by_name.get(name).copied()
            && let Some(app) = self.apps.get_mut(id.0)
        {
            let same = app.spec == written.spec && app.deleting == facts.deleting;
            app.version = facts.version.clone();
            app.generation = written.generation;
            app.deleting = facts.deleting;
            app.stored = written.status.clone();
            // Somebody else wrote that, and said so.
            if !room.desk.has_asked(&status_slot(name)) {
                app.recorded = said::status(&app.stored.conditions, "Ready");
            }
            self.dirty.insert(id);
            if !same {
                app.spec = written.spec.clone();
                app.selector = Selector::new(&written.spec.selector);
                self.settle_in(id, room);
            }
            return;
        }
        let app = App {
            name: name.clone(),
            uid: facts.uid.clone(),
            version: facts.version.clone(),
            generation: written.generation,
            deleting: facts.deleting,
            selector: Selector::new(&written.spec.selector),
            spec: written.spec.clone(),
            stored: written.status.clone(),
            needs: BTreeMap::new(),
            leaving: BTreeMap::new(),
            entry: index::Entry::default(),
            components: Vec::new(),
            members: Members::default(),
            check: health_check::Check::default(),
            refused: BTreeMap::new(),
            cycle: None,
            remembered: remembered(&written.status),
            recorded: said::status(&written.status.conditions, "Ready"),
            shown: None,
        };
        self.by_uid.insert(app.uid.clone(), AppId(self.apps.vacant_key()));
        let id = AppId(self.apps.insert(app));
        self.by_name.insert(name.clone(), id);
        self.touch_all(&self.dependencies.needing(name));
        self.settle_in(id, room);
    }

    /// The version of an Application has changed, and nothing else.
    pub(crate) fn same(&mut self, name: &Name, facts: &Facts) {
        if let Some(id) = self.by_name.get(name)
            && let Some(app) = self.apps.get_mut(id.0)
        {
            app.version = facts.version.clone();
            self.dirty.insert(*id);
        }
    }

    /// An Application is gone.
    pub(crate) fn remove(&mut self, name: &Name, room: &mut Room<'_>) {
        let Some(id) = self.by_name.remove(name) else { return };
        self.move_out(id);
        let mut app = self.apps.remove(id.0);
        self.dirty.remove(&id);
        self.by_uid.remove(&app.uid);
        self.dependencies.set(name, &[]);
        self.touch_circle(name);
        // Its members are the garbage collector's now, and so is the Pod of its health check.
        room.desk.want(status_slot(name), None);
        self.refused.values_mut().for_each(|apps| _ = apps.remove(&id));
        app.check.forget(room.desk);
        for object in self.owned.get(&app.uid).cloned().unwrap_or_default() {
            self.look_at_owners(object, room);
        }
        let feeds: Vec<_> =
            app.needs.values().map(|need| need.feed).chain(app.leaving.values().copied()).collect();
        app.needs.clear();
        for feed in feeds {
            self.let_go_of(feed, id, room);
        }
    }

    /// An object is there, or has changed.
    pub(crate) fn object_changed(&mut self, object: ObjectId, before: Option<&Facts>, room: &mut Room<'_>) {
        let Some(stored) = room.feeds.object(object) else { return };
        let Some(feed) = room.feeds.get(stored.feed) else { return };
        if feed.cluster != Cluster::hub() {
            return;
        }
        self.note_owners(object, before, Some(&stored.facts));
        let member_of = self.member_of(feed, stored);
        for app in self.counting.remove(&object).unwrap_or_default() {
            if !member_of.contains(&app)
                && let Some(known) = self.apps.get_mut(app.0)
            {
                known.members.remove(Whose::Object(object));
                self.dirty.insert(app);
            }
        }
        // What appears while a kind is followed is new; what a first list names has been there for who knows how long.
        let is_news = feed.listed;
        for id in &member_of {
            if let Some(app) = self.apps.get_mut(id.0) {
                count(app, object, stored, feed, is_news, room.now);
                self.dirty.insert(*id);
            }
        }
        if !member_of.is_empty() {
            self.counting.insert(object, member_of);
        }
        let (kind, name) = (feed.kind.clone(), stored.name.clone());
        self.look_for(&kind, &name, room);
        self.look_at_owners(object, room);
    }

    /// Only the version of an object has changed. A change of its owners that was in vain may be tried again.
    pub(crate) fn object_same(&mut self, object: ObjectId, room: &mut Room<'_>) {
        let Some(stored) = room.feeds.object(object) else { return };
        if stored.facts.application.is_some() || !stored.facts.owners.is_empty() {
            self.look_at_owners(object, room);
        }
    }

    /// An object is about to be forgotten, because it is gone.
    pub(crate) fn object_gone(&mut self, object: ObjectId, room: &mut Room<'_>) {
        let Some(stored) = room.feeds.object(object) else { return };
        let Some(feed) = room.feeds.get(stored.feed) else { return };
        self.note_owners(object, Some(&stored.facts), None);
        for app in self.counting.remove(&object).unwrap_or_default() {
            if let Some(known) = self.apps.get_mut(app.0) {
                known.members.remove(Whose::Object(object));
                self.dirty.insert(app);
            }
        }
        room.desk.want(ownership::slot(&feed.cluster, &feed.kind, &stored.name), None);
    }

    /// An object is gone and forgotten: somebody may miss it.
    pub(crate) fn object_missing(&mut self, kind: &Kind, name: &Name, room: &mut Room<'_>) {
        self.accept(kind, name);
        self.look_for(kind, name, room);
    }

    /// A kind has become readable or unreadable, or all of it is known now.
    pub(crate) fn feed_changed(&mut self, feed: FeedId, room: &mut Room<'_>) {
        for id in self.users.get(&feed).cloned().unwrap_or_default() {
            self.recount(id, feed, room);
            self.dirty.insert(id);
        }
    }

    /// A write has ended.
    pub(crate) fn written(&mut self, slot: &Slot, change: &Change, outcome: &Outcome, room: &mut Room<'_>) {
        match change {
            Change::Status { patch, .. } => self.status_written(&slot.object.name, patch, outcome, room),
            Change::Owners { .. } => self.owners_written(&slot.object, change, outcome, room),
            Change::Create { manifest, dry_run } => {
                let owner = &manifest["metadata"]["ownerReferences"][0]["uid"];
                if let Some(id) = owner.as_str().and_then(|uid| self.by_uid.get(uid))
                    && let Some(app) = self.apps.get_mut(id.0)
                    && health_check::written(&mut app.check, &slot.object.name, *dry_run, outcome, room.now)
                {
                    self.dirty.insert(*id);
                }
            }
            Change::Delete { uid } => {
                let object = &slot.object;
                if let (Some(id), Outcome::Done(_)) =
                    (room.feeds.find(&object.cluster, &object.kind, &object.name), outcome)
                    && let Some(stored) = room.feeds.object_mut(id)
                    && stored.facts.uid == *uid
                {
                    stored.facts.deleting = true;
                }
            }
        }
    }

    /// It is time to look at the health check of an Application again.
    pub(crate) fn wake(&mut self, name: &Name) {
        self.touch(name);
    }

    /// Asks for whatever follows from what has changed.
    pub(crate) fn flush(&mut self, room: &mut Room<'_>) {
        if !self.open {
            return;
        }
        while let Some(id) = self.dirty.pop_first() {
            self.leave_kinds(id, room);
            self.look_after_health_check(id, room);
            let Some(app) = self.apps.get(id.0).filter(|app| app.is_known(room.feeds)) else { continue };
            let wanted = status::render(app, room.feeds, self.needed(app), room.now);
            room.desk.want(status_slot(&app.name), publish(app, &wanted));
            let shown = said::status(&wanted.conditions, "Ready");
            if shown != app.shown {
                self.touch_all(&self.dependencies.needing(&app.name));
                if let Some(app) = self.apps.get_mut(id.0) {
                    app.shown = shown;
                }
            }
        }
    }

    /// The spec of an Application is new: finds out all over what belongs to it.
    fn settle_in(&mut self, id: AppId, room: &mut Room<'_>) {
        if !self.open {
            return;
        }
        let mut concerned: BTreeSet<_> = self.move_out(id).into_iter().collect();
        self.choose_kinds(id, room);
        let Some(app) = self.apps.get_mut(id.0) else { return };
        let name = app.name.clone();
        app.components = App::named(&app.spec);
        let named =
            app.components.iter().map(|component| (component.kind.clone(), Arc::clone(&component.name)));
        app.entry = self.index.insert(&name.namespace, id, &app.selector, named.collect());
        let feeds: Vec<_> = app.needs.values().filter(|need| need.counts).map(|need| need.feed).collect();
        for feed in feeds.into_iter().filter_map(|feed| room.feeds.get(feed)) {
            for object in feed.in_namespace(&name.namespace) {
                let Some(stored) = room.feeds.object(object) else { continue };
                concerned.insert(object);
                if app.membership(&stored.facts).is_ok() {
                    count(app, object, stored, feed, false, room.now);
                    let counting = self.counting.entry(object).or_default();
                    counting.push(id);
                    counting.sort_unstable();
                }
            }
        }
        for index in 0..app.components.len() {
            look_for(app, index, room);
        }
        self.dependencies.set(&name, &app.spec.dependencies);
        concerned.extend(self.owned.get(&app.uid).into_iter().flatten());
        self.touch_circle(&name);
        for object in concerned {
            self.look_at_owners(object, room);
        }
        self.dirty.insert(id);
    }

    /// Counts nothing for an Application any more. Gives back what was counted.
    fn move_out(&mut self, id: AppId) -> Vec<ObjectId> {
        let Some(app) = self.apps.get_mut(id.0) else { return Vec::new() };
        self.index.remove(&app.name.namespace, id, std::mem::take(&mut app.entry));
        let members = std::mem::take(&mut app.members);
        for (kind, name, state, since) in members.times() {
            app.remembered.insert((kind, name), (state, since));
        }
        let objects = members.objects();
        for object in &objects {
            if let Some(counting) = self.counting.get_mut(object) {
                counting.retain(|other| *other != id);
                if counting.is_empty() {
                    self.counting.remove(object);
                }
            }
        }
        objects
    }

    /// Follows the kinds that the spec of an Application asks for, and no others, except to let go of what it owns.
    fn choose_kinds(&mut self, id: AppId, room: &mut Room<'_>) {
        let Some(app) = self.apps.get_mut(id.0) else { return };
        let wishes = app.wishes();
        let mut before: BTreeMap<_, _> =
            std::mem::take(&mut app.needs).into_iter().map(|(kind, need)| (kind, need.feed)).collect();
        before.append(&mut app.leaving);
        let left_behind: Vec<_> =
            app.left_behind().into_iter().filter(|kind| !wishes.contains_key(kind)).collect();
        let (desk, rules, feeds, users) = (&mut room.desk, room.rules, &mut room.feeds, &mut self.users);
        let mut follow = |kind: &Kind| {
            let lens = || Arc::new(Lens::new(kind, Arc::clone(rules)));
            let feed = feeds.acquire(&Cluster::hub(), kind, lens, &mut desk.effects);
            users.entry(feed).or_default().insert(id);
            feed
        };
        for (kind, wish) in wishes {
            let feed = before.remove(&kind).unwrap_or_else(|| follow(&kind));
            app.needs.insert(kind, Need { feed, versions: wish.versions, counts: wish.counts });
        }
        for kind in left_behind {
            before.entry(kind).or_insert_with_key(&mut follow);
        }
        app.leaving = before;
    }

    /// Follows no longer what an Application had to let go of, as far as it has.
    fn leave_kinds(&mut self, id: AppId, room: &mut Room<'_>) {
        let Some(app) = self.apps.get_mut(id.0) else { return };
        if app.leaving.is_empty() {
            return;
        }
        let owned = self.owned.get(&app.uid);
        let has_left = |feed: FeedId| {
            let is_of =
                |object: &ObjectId| room.feeds.object(*object).is_some_and(|stored| stored.feed == feed);
            room.feeds.get(feed).is_none_or(Feed::is_known) && !owned.into_iter().flatten().any(is_of)
        };
        let left: Vec<_> = app
            .leaving
            .iter()
            .filter(|(_, feed)| has_left(**feed))
            .map(|(kind, feed)| (kind.clone(), *feed))
            .collect();
        for (kind, feed) in left {
            if let Some(app) = self.apps.get_mut(id.0) {
                app.leaving.remove(&kind);
            }
            self.let_go_of(feed, id, room);
        }
    }

    fn let_go_of(&mut self, feed: FeedId, id: AppId, room: &mut Room<'_>) {
        if let Some(users) = self.users.get_mut(&feed) {
            users.remove(&id);
            if users.is_empty() {
                self.users.remove(&feed);
                // Nobody counts these any more; only their owners may still be noted.
                for object in room.feeds.all(feed) {
                    if let Some(stored) = room.feeds.object(object) {
                        note_owners(&mut self.owned, object, Some(&stored.facts), None);
                    }
                }
            }
        }
        room.feeds.release(feed, &mut room.desk.effects);
    }

    /// The Applications that count an object.
    fn member_of(&self, feed: &Feed, stored: &Stored) -> Vec<AppId> {
        let counts = |id: &AppId| {
            let app = self.apps.get(id.0);
            app.is_some_and(|app| app.counts(&feed.kind) && app.membership(&stored.facts).is_ok())
        };
        self.index
            .candidates(&stored.name.namespace, &stored.facts.labels)
            .into_iter()
            .filter(counts)
            .collect()
    }

    /// Looks whether a component is there, for all that name it.
    fn look_for(&mut self, kind: &Kind, name: &Name, room: &Room<'_>) {
        for id in self.index.naming(kind, name) {
            let Some(app) = self.apps.get_mut(id.0) else { continue };
            let is_it = |component: &Component| component.kind == *kind && component.name == name.name;
            for index in 0..app.components.len() {
                if app.components.get(index).is_some_and(is_it) {
                    look_for(app, index, room);
                }
            }
            self.dirty.insert(id);
        }
    }

    /// Counts again what an Application has of a kind.
    fn recount(&mut self, id: AppId, feed: FeedId, room: &Room<'_>) {
        let (Some(app), Some(known)) = (self.apps.get_mut(id.0), room.feeds.get(feed)) else { return };
        for object in known.in_namespace(&app.name.namespace.clone()) {
            if app.members.get(Whose::Object(object)).is_some()
                && let Some(stored) = room.feeds.object(object)
            {
                count(app, object, stored, known, true, room.now);
            }
        }
        for index in 0..app.components.len() {
            if app.components.get(index).is_some_and(|component| component.kind == known.kind) {
                look_for(app, index, room);
            }
        }
    }

    /// Asks for the owners that an object should have.
    fn look_at_owners(&mut self, object: ObjectId, room: &mut Room<'_>) {
        let Some(stored) = room.feeds.object(object) else { return };
        let Some(feed) = room.feeds.get(stored.feed) else { return };
        let facts = &stored.facts;
        let slot = ownership::slot(&feed.cluster, &feed.kind, &stored.name);
        let is_ours_to_say = !facts.deleting
            && !stored.name.namespace.is_empty()
            && !health_check::is_health_check(facts)
            && feed.unreadable.is_none();
        if !is_ours_to_say {
            return room.desk.want(slot, None);
        }
        let counting = self.counting.get(&object).map(Vec::as_slice).unwrap_or_default();
        let counting = counting.iter().filter_map(|id| self.apps.get(id.0));
        let owner = counting.clone().find(|app| app.adopts(facts) && !app.deleting);
        let owners = ownership::applications(facts).filter_map(|uid| self.apps.get(self.by_uid.get(uid)?.0));
        // What is being deleted takes with it what it owns: that was agreed.
        let strangers: Vec<_> = owners
            .filter(|app| !app.deleting && app.name.namespace == stored.name.namespace)
            .filter(|app| owner.is_none_or(|owner| owner.uid != app.uid))
            .collect();
        let change = ownership::change(facts, owner, &strangers);
        if change.is_none() {
            let (kind, name) = (feed.kind.clone(), stored.name.clone());
            self.accept(&kind, &name);
        }
        room.desk.want(slot, change);
    }

    fn note_owners(&mut self, object: ObjectId, before: Option<&Facts>, now: Option<&Facts>) {
        let touched = note_owners(&mut self.owned, object, before, now);
        let is_check = now.or(before).is_some_and(health_check::is_health_check);
        for uid in touched {
            if let Some(id) = self.by_uid.get(&uid)
                && (is_check || self.apps.get(id.0).is_some_and(|app| !app.leaving.is_empty()))
            {
                self.dirty.insert(*id);
            }
        }
    }

    /// Looks after the Pod of a health check, once it is known which Pods there are.
    fn look_after_health_check(&mut self, id: AppId, room: &mut Room<'_>) {
        let Some(app) = self.apps.get_mut(id.0) else { return };
        let feed =
            app.needs.get(&Kind::pod()).map(|need| need.feed).or(app.leaving.get(&Kind::pod()).copied());
        let Some((id, feed)) = feed.and_then(|id| Some((id, room.feeds.get(id)?))) else { return };
        if !feed.listed || feed.unreadable.is_some() {
            return;
        }
        let owned = self.owned.get(&app.uid).into_iter().flatten().filter_map(|id| room.feeds.object(*id));
        let pods: Vec<_> = owned
            .filter(|stored| stored.feed == id && health_check::is_health_check(&stored.facts))
            .map(|stored| (stored.name.clone(), &stored.facts))
            .collect();
        let namesake = |name: &Name| room.feeds.find_in(id, name).is_some();
        health_check::look_after(app, &pods, namesake, room.now, room.desk);
    }

    /// What is to be said of the Applications that one needs.
    fn needed(&self, app: &App) -> Vec<DependencyStatus> {
        let dependency = |name: &String| {
            let key = Name { namespace: Arc::clone(&app.name.namespace), name: name.as_str().into() };
            let other = self.by_name.get(&key).and_then(|id| self.apps.get(id.0));
            let ready = other
                .and_then(|other| other.shown.or_else(|| said::status(&other.stored.conditions, "Ready")));
            DependencyStatus {
                name: name.clone(),
                installed: other.is_some(),
                ready: ready.unwrap_or(ConditionStatus::Unknown),
            }
        };
        app.spec.dependencies.iter().map(dependency).collect()
    }

    fn status_written(
        &mut self,
        name: &Name,
        patch: &serde_json::Value,
        outcome: &Outcome,
        room: &mut Room<'_>,
    ) {
        let Some(id) = self.by_name.get(name).copied() else { return };
        let Some(app) = self.apps.get_mut(id.0) else { return };
        if let Outcome::Done(version) = outcome
            && let Some(after) = patch::applied(&app.stored, patch)
        {
            if let Some(turn) = turn(app, &after) {
                app.recorded = Some(turn.to);
                room.desk.effects.push(crate::effect::Effect::Record(turn));
            }
            if let Some(version) = version
                && app.version.is_before(version)
            {
                app.version = version.clone();
                app.stored = after;
                let object = room.feeds.find(&Cluster::hub(), &Kind::own("Application"), name);
                if let Some(stored) = object.and_then(|object| room.feeds.object_mut(object)) {
                    stored.facts.version = version.clone();
                }
            }
        }
        self.dirty.insert(id);
    }

    fn owners_written(
        &mut self,
        object: &ObjectKey,
        change: &Change,
        outcome: &Outcome,
        room: &mut Room<'_>,
    ) {
        let Some(id) = room.feeds.find(&object.cluster, &object.kind, &object.name) else { return };
        let Some(stored) = room.feeds.object_mut(id) else { return };
        let Change::Owners { uid, owners, .. } = change else { return };
        match outcome {
            Outcome::Done(Some(version))
                if stored.facts.uid == *uid && stored.facts.version.is_before(version) =>
            {
                let before = stored.facts.clone();
                stored.facts.version = version.clone();
                stored.facts.owners = owners.iter().cloned().collect();
                let after = stored.facts.clone();
                self.note_owners(id, Some(&before), Some(&after));
            }
            Outcome::Refused(why) => {
                let facts = &stored.facts;
                let named = facts.application.as_ref().and_then(|app| {
                    let name = Name { namespace: Arc::clone(&object.name.namespace), name: (**app).into() };
                    self.by_name.get(&name).copied()
                });
                let owners = ownership::applications(facts).filter_map(|uid| self.by_uid.get(uid).copied());
                let concerned: BTreeSet<_> = owners.chain(named).collect();
                for id in &concerned {
                    if let Some(app) = self.apps.get_mut(id.0) {
                        app.refused
                            .insert((object.kind.clone(), Arc::clone(&object.name.name)), Arc::clone(why));
                        self.dirty.insert(*id);
                    }
                }
                self.refused.insert((object.kind.clone(), object.name.clone()), concerned);
                return;
            }
            _ => {}
        }
        self.look_at_owners(id, room);
    }

    /// There is nothing to complain about the owners of an object any more.
    fn accept(&mut self, kind: &Kind, name: &Name) {
        if self.refused.is_empty() {
            return;
        }
        for id in self.refused.remove(&(kind.clone(), name.clone())).into_iter().flatten() {
            if let Some(app) = self.apps.get_mut(id.0) {
                app.refused.remove(&(kind.clone(), Arc::clone(&name.name)));
                self.dirty.insert(id);
            }
        }
    }

    fn touch(&mut self, name: &Name) {
        if let Some(id) = self.by_name.get(name) {
            self.dirty.insert(*id);
        }
    }

    fn touch_all(&mut self, names: &[Name]) {
        for name in names {
            self.touch(name);
        }
    }

    /// What an Application needs has changed, or whether it is there: its circle may have opened or closed.
    fn touch_circle(&mut self, name: &Name) {
        self.touch_all(&self.dependencies.needing(name));
        for name in self.dependencies.upstream(name).into_iter().chain([name.clone()]) {
            let Some(id) = self.by_name.get(&name) else { continue };
            if let Some(app) = self.apps.get_mut(id.0) {
                let cycle = self.dependencies.cycle(&name);
                if app.cycle != cycle {
                    app.cycle = cycle;
                    self.dirty.insert(*id);
                }
            }
        }
    }
}

/// Counts an object as it is now.
fn count(app: &mut App, object: ObjectId, stored: &Stored, feed: &Feed, is_news: bool, now: Timestamp) {
    let verdict = &stored.facts.verdict;
    let state = if feed.unreadable.is_some() { State::Unknown } else { verdict.state };
    let whose = Whose::Object(object);
    let known = verdict.since.filter(|_| state == verdict.state);
    let share = Share {
        kind: feed.kind.clone(),
        name: Arc::clone(&stored.name.name),
        state,
        progress: verdict.progress,
        settled: stored.facts.settled,
        since: known.or_else(|| since(app, whose, &feed.kind, &stored.name.name, state, is_news, now)),
    };
    app.members.put(whose, share);
}

/// Looks whether a component is there, and counts it if it is not.
fn look_for(app: &mut App, index: usize, room: &Room<'_>) {
    let Some(component) = app.components.get(index) else { return };
    let Some(need) = app.needs.get(&component.kind) else { return };
    let Some(feed) = room.feeds.get(need.feed) else { return };
    let name = Name { namespace: Arc::clone(&app.name.namespace), name: Arc::clone(&component.name) };
    let found = room.feeds.find_in(need.feed, &name).and_then(|id| room.feeds.object(id));
    let presence = match (found.map(|stored| app.membership(&stored.facts)), &feed.unreadable) {
        (Some(Ok(())), _) => Presence::Here,
        (None, Some(crate::event::Unreadable::NotServed)) => Presence::Absent,
        (_, Some(_)) => Presence::Unknown,
        _ if !feed.listed || feed.served.as_ref().is_some_and(|served| !served.namespaced) => {
            Presence::Unknown
        }
        (Some(Err(stranger)), None) => Presence::Stranger(stranger),
        (None, None) => Presence::Absent,
    };
    let state = match presence {
        Presence::Here => None,
        Presence::Absent | Presence::Stranger(_) => Some(State::Missing),
        Presence::Unknown => Some(State::Unknown),
    };
    let is_news = component.presence == Presence::Here;
    let (kind, name, whose) = (component.kind.clone(), Arc::clone(&component.name), Whose::Component(index));
    match state {
        Some(state) => {
            let since = since(app, whose, &kind, &name, state, is_news, room.now);
            app.members.put(whose, Share { kind, name, state, progress: 0, settled: true, since });
        }
        None => {
            app.members.remove(whose);
        }
    }
    if let Some(component) = app.components.get_mut(index) {
        component.presence = presence;
    }
}

/// Since when something is in a state, if it does not say so itself: as was said before, or from now on if it has just
/// changed. What was found so may have been so for long.
fn since(
    app: &mut App,
    whose: Whose,
    kind: &Kind,
    name: &Arc<str>,
    state: State,
    is_news: bool,
    now: Timestamp,
) -> Option<Timestamp> {
    if let Some(before) = app.members.get(whose) {
        return if before.state == state { before.since } else { said::whole_seconds(now) };
    }
    let remembered = app.remembered.remove(&(kind.clone(), (**name).into()));
    let remembered = remembered.filter(|(before, _)| *before == state).map(|(_, since)| since);
    remembered.or_else(|| said::whole_seconds(now).filter(|_| is_news))
}

/// Since when objects were in which state, as was written.
fn remembered(status: &ApplicationStatus) -> HashMap<(Kind, Box<str>), (State, Timestamp)> {
    let time = |object: &bellwether_api::ObjectStatus| {
        let key = (Kind::new(&object.group, &object.kind), object.name.as_str().into());
        Some((key, (object.status, object.since.as_ref()?.0)))
    };
    status.objects.iter().filter_map(time).collect()
}

/// Notes which Applications own an object. Gives back those for which that has changed.
fn note_owners(
    owned: &mut HashMap<Box<str>, BTreeSet<ObjectId>>,
    object: ObjectId,
    before: Option<&Facts>,
    now: Option<&Facts>,
) -> BTreeSet<Box<str>> {
    let of = |facts: Option<&Facts>| -> BTreeSet<Box<str>> {
        facts.into_iter().flat_map(ownership::applications).cloned().collect()
    };
    let (before, now) = (of(before), of(now));
    for uid in before.difference(&now) {
        if let Some(objects) = owned.get_mut(uid) {
            objects.remove(&object);
            if objects.is_empty() {
                owned.remove(uid);
            }
        }
    }
    for uid in &now {
        owned.entry(uid.clone()).or_default().insert(object);
    }
    before.union(&now).cloned().collect()
}

/// What is to be written of a status.
fn publish(app: &App, wanted: &ApplicationStatus) -> Option<Change> {
    let conditions = app.stored.conditions.iter().map(|condition| condition.observed_generation);
    let observed = conditions.chain([app.stored.observed_generation]);
    if app.deleting || bellwether_conditions::is_outrun(observed, Some(app.generation)) {
        return None;
    }
    let patch = Arc::new(patch::between(&app.stored, wanted)?);
    let turns = app.stored.observed_generation != wanted.observed_generation
        || status::OWN
            .iter()
            .any(|kind| said::status(&app.stored.conditions, kind) != said::status(&wanted.conditions, kind));
    Some(Change::Status { uid: app.uid.clone(), version: app.version.clone(), patch, turns })
}

/// The turn of an Application whose status has become so.
fn turn(app: &App, after: &ApplicationStatus) -> Option<Turn> {
    let ready = after.conditions.iter().find(|condition| condition.type_ == "Ready")?;
    let to = said::status(&after.conditions, "Ready")?;
    (app.recorded != Some(to)).then(|| Turn {
        object: status_slot(&app.name).object,
        uid: app.uid.clone(),
        condition: "Ready",
        from: app.recorded,
        to,
        reason: ready.reason.as_str().into(),
        message: ready.message.as_str().into(),
        good: to == ConditionStatus::True,
    })
}

fn status_slot(name: &Name) -> Slot {
    let object = ObjectKey { cluster: Cluster::hub(), kind: Kind::own("Application"), name: name.clone() };
    Slot { object, part: Part::Status }
}
