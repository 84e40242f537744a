//! Applications: the objects of a namespace that belong together.
//!
//! `index.rs` finds the Applications that an object concerns, `membership.rs` says what is counted of it; `ownership.rs`, `dependencies.rs` and
//! `health_check.rs` have a promise each; `status.rs` puts into words what has become of them all. Those of
//! `app.k8s.io` are no others once they are read (`text.rs`), until it comes to words (`app_k8s_io.rs`).

mod app;
mod app_k8s_io;
mod check;
mod dependencies;
mod health_check;
mod holdings;
mod index;
mod kinds;
mod membership;
mod ownership;
mod status;
mod text;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use bellwether_api::ConditionStatus;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize as _;
use slab::Slab;

use crate::{
    dialect::Dialect,
    effect::{Change, Slot},
    event::Outcome,
    facts::{Facts, Version},
    feeds::{Feeds, ObjectId},
    id::{Cluster, FeedId, Kind, Name},
    members::{Members, Whose},
    needs::Needs,
    publication::PATIENCE,
    room::Room,
};

use app::App;
use holdings::Holdings;
use index::Index;
use membership::{agree, count, remembered};
use ownership::Owned;

pub use check::LABEL as HEALTH_CHECK_LABEL;
pub(crate) use text::Text;

/// An Application of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AppId(usize);

/// All Applications.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    apps: Slab<App>,
    by_name: HashMap<(Dialect, Name), AppId>,
    by_uid: HashMap<Box<str>, AppId>,
    index: Index,
    dependencies: Needs,
    /// Which Applications count an object.
    counting: HashMap<ObjectId, Box<[AppId]>>,
    /// Which objects have an Application among their owners, by its uid.
    owned: HashMap<Box<str>, Owned>,
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

    /// Somebody has set the clock.
    pub(crate) fn clock_set(&mut self, by: SignedDuration) {
        for (_, app) in &mut self.apps {
            for time in app.check.times().into_iter().flatten() {
                *time = time.checked_add(by).unwrap_or(*time);
            }
            app.holdings.clock_set(by);
            app.publication.clock_set(by);
        }
    }

    /// An Application is there, or has changed.
    pub(crate) fn set(&mut self, name: &Name, facts: &Facts, text: Text<'_>, room: &mut Room<'_>) {
        let ((spec, old), status) = (text.spec(), text.status());
        if let Some(id) = self.id_of(text.dialect(), name)
            && let Some(app) = self.apps.get_mut(id.0)
        {
            let same = app.spec == spec && app.old == old && app.deleting == facts.deleting;
            if text.seen(&mut app.publication, facts, room.desk) {
                if let Some(status) = status {
                    agree(app, status, room.feeds);
                    // What is not counted yet is remembered until it is.
                    if !self.open || !app.is_known(room.feeds) {
                        app.remembered.extend(remembered(status, &name.namespace));
                    }
                }
                self.dirty.insert(id);
            }
            app.deleting = facts.deleting;
            if let Some(status) = status {
                self.announced(id, &status.owned_kinds, room);
            }
            if !same && let Some(app) = self.apps.get_mut(id.0) {
                app.selector = text::selector(&spec, old.as_ref());
                (app.spec, app.old) = (spec, old);
                self.settle_in(id, room);
            }
            return;
        }
        let app = App {
            name: name.clone(),
            publication: text.publication(name, facts),
            deleting: facts.deleting,
            selector: text::selector(&spec, old.as_ref()),
            spec,
            old,
            needs: BTreeMap::new(),
            leaving: BTreeMap::new(),
            entries: Vec::new(),
            components: Vec::new(),
            members: Members::default(),
            check: check::Check::default(),
            holdings: status.map(Holdings::of).unwrap_or_default(),
            refused: BTreeMap::new(),
            cycle: None,
            remembered: status.map(|status| remembered(status, &name.namespace)).unwrap_or_default(),
            shown: None,
        };
        self.by_uid.insert(facts.uid.clone(), AppId(self.apps.vacant_key()));
        let id = AppId(self.apps.insert(app));
        self.by_name.insert((text.dialect(), name.clone()), id);
        self.touch_dependents(id);
        self.settle_in(id, room);
    }

    /// The version of an Application has changed, and nothing else.
    pub(crate) fn same(&mut self, dialect: Dialect, name: &Name, facts: &Facts) {
        if let Some(id) = self.id_of(dialect, name)
            && let Some(app) = self.apps.get_mut(id.0)
            && app.publication.seen_again(facts)
        {
            self.dirty.insert(id);
        }
    }

    /// An Application is gone.
    pub(crate) fn remove(&mut self, dialect: Dialect, name: &Name, room: &mut Room<'_>) {
        let Some(id) = self.by_name.remove(&(dialect, name.clone())) else { return };
        let mut concerned: BTreeSet<_> = self.move_out(id).into_iter().collect();
        let mut app = self.apps.remove(id.0);
        self.dirty.remove(&id);
        self.by_uid.remove(app.uid());
        if dialect == Dialect::Bellwether {
            self.dependencies.set(name, Vec::new());
            self.touch_circle(name);
        }
        // Its members are the garbage collector's now, and so is the Pod of its health check.
        app.publication.withdraw(room.desk);
        for (kind, object) in std::mem::take(&mut app.refused).into_keys() {
            let key = (kind, Name { namespace: Arc::clone(&name.namespace), name: object });
            if let Some(apps) = self.refused.get_mut(&key) {
                apps.remove(&id);
                if apps.is_empty() {
                    self.refused.remove(&key);
                }
            }
        }
        app.check.forget(room.desk);
        // What was to be taken over is not any more.
        concerned.extend(self.owned.get(app.uid()).into_iter().flat_map(Owned::members));
        for object in concerned {
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
        self.note_owners(stored.feed, object, before, Some(&stored.facts));
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
            self.counting.insert(object, member_of.into());
        }
        let (kind, name) = (feed.kind.clone(), stored.name.clone());
        self.look_for(&kind, &name, room);
        self.look_at_owners(object, room);
    }

    /// Only the version of an object has changed. A change of its owners that was in vain may be tried again.
    pub(crate) fn object_same(&mut self, object: ObjectId, room: &mut Room<'_>) {
        let Some(stored) = room.feeds.object(object) else { return };
        let mut counting = self.counting.get(&object).into_iter().flatten();
        if stored.facts.application.is_some()
            || !stored.facts.owners.is_empty()
            || counting.any(|id| self.apps.get(id.0).is_some_and(App::adds_owner))
        {
            self.look_at_owners(object, room);
        }
    }

    /// An object is about to be forgotten, because it is gone.
    pub(crate) fn object_gone(&mut self, object: ObjectId, room: &mut Room<'_>) {
        let Some(stored) = room.feeds.object(object) else { return };
        let Some(feed) = room.feeds.get(stored.feed) else { return };
        self.note_owners(stored.feed, object, Some(&stored.facts), None);
        if check::is_health_check(&stored.facts) {
            room.desk.want(check::slot(&stored.name), None);
        }
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

    /// All of a kind has been told once more: whoever waited for the end of it looks again.
    pub(crate) fn list_complete(&mut self, feed: FeedId) {
        self.dirty.extend(self.users.get(&feed).into_iter().flatten());
    }

    /// A kind has become unreadable, so that its objects are not changed either; or readable, so that they are.
    pub(crate) fn readability_changed(&mut self, feed: FeedId, room: &mut Room<'_>) {
        for object in room.feeds.all(feed) {
            self.look_at_owners(object, room);
        }
    }

    /// A write of something else than a status has ended.
    pub(crate) fn written(&mut self, slot: &Slot, change: &Change, outcome: &Outcome, room: &mut Room<'_>) {
        match change {
            Change::Status { .. } => {}
            Change::Owners { .. } => self.owners_written(&slot.object, change, outcome, room),
            Change::Create { manifest, dry_run } => {
                let owner = &manifest["metadata"]["ownerReferences"][0]["uid"];
                if let Some(id) = owner.as_str().and_then(|uid| self.by_uid.get(uid))
                    && let Some(app) = self.apps.get_mut(id.0)
                    && app.check.written(&slot.object.name, *dry_run, outcome, room.now)
                {
                    self.dirty.insert(*id);
                }
            }
            Change::Delete { uid } => {
                let object = &slot.object;
                let Some(id) = room.feeds.find(&object.cluster, &object.kind, &object.name) else { return };
                let Some(stored) = room.feeds.object_mut(id).filter(|stored| stored.facts.uid == *uid) else {
                    return;
                };
                let owners = stored.facts.owners.iter().filter_map(|owner| self.by_uid.get(&owner.uid));
                match outcome {
                    Outcome::Done(_) => {
                        self.dirty.extend(owners);
                        (stored.facts.deleting, stored.doomed) = (true, true);
                    }
                    // It is another one by now, as will be seen; or it is not.
                    Outcome::Conflict => {
                        for app in owners.filter_map(|id| self.apps.get(id.0)) {
                            if let Ok(time) = room.now.checked_add(PATIENCE) {
                                room.desk.at(time, app.timer());
                            }
                        }
                    }
                    Outcome::Absent | Outcome::Refused(_) | Outcome::Failed(_) => {}
                }
            }
        }
    }

    /// It is time to look at an Application again.
    pub(crate) fn wake(&mut self, dialect: Dialect, name: &Name) {
        if let Some(id) = self.id_of(dialect, name)
            && let Some(app) = self.apps.get_mut(id.0)
        {
            app.publication.try_again();
            self.dirty.insert(id);
        }
    }

    /// Asks for whatever follows from what has changed.
    pub(crate) fn flush(&mut self, room: &mut Room<'_>) {
        if !self.open {
            return;
        }
        while let Some(id) = self.dirty.pop_first() {
            self.leave_kinds(id, room);
            self.look_after_health_check(id, room);
            let Some(app) = self.apps.get_mut(id.0).filter(|app| app.is_known(room.feeds)) else { continue };
            // All that was there has been counted: what is still remembered is no more.
            app.remembered = HashMap::new();
            let Some(app) = self.apps.get(id.0) else { continue };
            let needed = self.needed(app);
            let conditions = match &app.old {
                Some(old) => app_k8s_io::conditions(app, old, room.feeds),
                None => status::conditions(app, room.feeds, &needed).into(),
            };
            let conditions: Vec<_> =
                conditions.into_iter().map(|(kind, says)| (kind, says.map(|says| says.status))).collect();
            // Ready comes before all others.
            let shown = conditions.first().and_then(|(_, status)| *status);
            if shown != app.shown {
                self.touch_dependents(id);
            }
            let Some(app) = self.apps.get_mut(id.0) else { continue };
            app.shown = shown;
            if app.deleting {
                app.publication.withdraw(room.desk);
            } else {
                let is_urgent = app.holdings.has_to_be_told();
                app.publication.want(conditions, is_urgent, room.now, room.desk);
            }
        }
    }

    /// What is to be written about an Application.
    pub(crate) fn change(
        &self,
        dialect: Dialect,
        name: &Name,
        feeds: &Feeds,
        now: Timestamp,
    ) -> Option<Change> {
        let app = self.id_of(dialect, name).and_then(|id| self.apps.get(id.0))?;
        if !self.open || app.deleting || !app.is_known(feeds) {
            return None;
        }
        match &app.old {
            Some(old) => app.publication.change(&app_k8s_io::render(app, old, feeds, now)),
            None => app.publication.change(&status::render(app, feeds, self.needed(app), now)),
        }
    }

    /// How much is noted of what belongs to whom.
    pub(crate) fn notes(&self) -> usize {
        let of = |app: &App| app.members.total() + app.remembered.len() + app.refused.len();
        let apps: usize = self.apps.iter().map(|(_, app)| of(app)).sum();
        apps + self.counting.len() + self.owned.len() + self.refused.len() + self.users.len()
    }

    /// How many are ready, are not, and of how many nobody can tell.
    pub(crate) fn by_readiness(&self) -> [usize; 3] {
        let of = |wanted: ConditionStatus| {
            let shown = self.apps.iter().map(|(_, app)| app.shown.unwrap_or(ConditionStatus::Unknown));
            shown.filter(|shown| *shown == wanted).count()
        };
        [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown].map(of)
    }

    /// A write of the status of an Application has ended. Gives back the version that the Application has now, if that
    /// is news.
    pub(crate) fn status_written(
        &mut self,
        dialect: Dialect,
        name: &Name,
        change: &Change,
        outcome: &Outcome,
        room: &mut Room<'_>,
    ) -> Option<Version> {
        let id = self.id_of(dialect, name)?;
        let app = self.apps.get_mut(id.0)?;
        let version = app.publication.written(change, outcome, room.now, room.desk);
        if app.publication.is_behind(outcome) || app.holdings.has_to_be_told() {
            self.dirty.insert(id);
        }
        if let (Some(_), Change::Status { patch, .. }) = (&version, change)
            && let Some(named) = patch.get("ownedKinds")
        {
            self.announced(id, &Vec::deserialize(named).unwrap_or_default(), room);
        }
        version
    }

    /// The Application of this name in this dialect: there may be one in each.
    fn id_of(&self, dialect: Dialect, name: &Name) -> Option<AppId> {
        self.by_name.get(&(dialect, name.clone())).copied()
    }

    /// Our own Application of this name. Annotations and dependencies mean these.
    fn ours(&self, name: &Name) -> Option<AppId> {
        self.id_of(Dialect::Bellwether, name)
    }

    fn touch_all(&mut self, names: &[Name]) {
        for name in names {
            self.dirty.extend(self.ours(name));
        }
    }

    /// Something has become of an Application that others may need.
    fn touch_dependents(&mut self, id: AppId) {
        if let Some(app) = self.apps.get(id.0).filter(|app| app.dialect() == Dialect::Bellwether) {
            self.touch_all(&self.dependencies.needing(&app.name));
        }
    }
}
