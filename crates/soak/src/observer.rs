//! Watches the API server directly, records all changes, and checks that the controllers leave the fields of
//! other writers alone.

use std::{
    cell::{RefCell, RefMut},
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    rc::Rc,
    time::Instant,
};

use anyhow::{Context as _, Result};
use bellwether_api::{Application, ApplicationStatus};
use bellwether_engine::NamespacedName;
use bellwether_simulation::object::Object;
use kube::Client;
use rand::{Rng, seq::IteratorRandom as _};
use tokio::task::JoinSet;

use crate::{
    alarm::Alarms,
    history::{History, Revision},
    objects::{self, ANCHOR, APPLICATION, ApiResource, HEALTH_RULE, Kind, LAST_WRITTEN, Objects},
    watch::{Gone, WatchEvent, follow},
};

/// The conditions that the controller writes. Other writers own all other conditions.
const OWN: [&str; 7] =
    ["Ready", "Settled", "Installed", "Resolved", "HealthCheckValid", "Adopted", "DependencyCycle"];

/// Not `Send`, because the oracle's objects are not.
#[derive(Clone)]
pub(crate) struct Observer(Rc<RefCell<Observations>>);

pub(crate) struct Observations {
    alarms: Alarms,
    pub(crate) history: History,
    pub(crate) applications: Objects,
    /// The uids of deleted Applications.
    pub(crate) gone: HashSet<String>,
    /// Statuses to check.
    pub(crate) published: VecDeque<Published>,
    /// Deleted members to check.
    pub(crate) deleted: VecDeque<Deleted>,
    /// The uids of objects that the load has deleted.
    condemned: HashSet<String>,
    /// Whether the CRD of Widgets is deleted now.
    widgets_removed: bool,
    watch: BTreeMap<WatchTarget, WatchState>,
    pub(crate) publications: usize,
}

/// A status that a controller has written.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) name: NamespacedName,
    pub(crate) app: Application,
    pub(crate) revision: Revision,
    pub(crate) seen: Instant,
}

/// A member that is deleted or being deleted.
pub(crate) struct Deleted {
    pub(crate) object: Rc<Object>,
    pub(crate) seen: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchTarget {
    Objects(Kind),
    Applications,
    Rules,
}

#[derive(Clone, Copy)]
struct WatchState {
    since: Option<Instant>,
    revision: Revision,
}

impl WatchTarget {
    fn api_resource(self) -> ApiResource {
        match self {
            Self::Objects(kind) => kind.api_resource(),
            Self::Applications => APPLICATION,
            Self::Rules => HEALTH_RULE,
        }
    }
}

impl Observer {
    /// Starts the watches. They end with the tasks.
    pub(crate) fn begin(client: &Client, alarms: &Alarms, tasks: &mut JoinSet<()>) -> Self {
        let observer = Self(Rc::new(RefCell::new(Observations::new(alarms))));
        let objects = Kind::ALL.map(WatchTarget::Objects);
        for target in objects.into_iter().chain([WatchTarget::Applications, WatchTarget::Rules]) {
            let (observer, client, alarms) = (observer.clone(), client.clone(), alarms.clone());
            tasks.spawn_local(async move {
                follow(&client, target.api_resource(), |event| {
                    if let Err(error) = observer.seen().handle(target, event) {
                        alarms.raise(&format!("the observer cannot decode an object: {error:#}"));
                    }
                })
                .await;
            });
        }
        observer
    }

    /// Records that the load deletes this object.
    pub(crate) fn condemn(&self, uid: &str) {
        self.seen().condemned.insert(uid.to_owned());
    }

    pub(crate) fn widgets_removed(&self, removed: bool) {
        self.seen().widgets_removed = removed;
    }

    pub(crate) fn publications(&self) -> usize {
        self.seen().publications
    }

    /// The numbers of members and of Applications.
    pub(crate) fn object_counts(&self) -> (usize, usize) {
        let seen = self.seen();
        let members = Kind::MEMBERS.into_iter().flat_map(|kind| seen.history.now(kind));
        (members.map(Objects::len).sum(), seen.applications.len())
    }

    pub(crate) fn any_member(&self, kind: Kind, random: &mut impl Rng) -> Option<Rc<Object>> {
        self.seen().history.now(kind).flat_map(Objects::values).choose(random).cloned()
    }

    /// The objects of a kind that an object owns.
    pub(crate) fn children(&self, kind: Kind, owner: &Object) -> Vec<Rc<Object>> {
        let seen = self.seen();
        let objects = seen.history.now_in(kind, &owner.name.namespace);
        let objects = objects.into_iter().flat_map(Objects::values);
        objects.filter(|object| object.owners().any(|uid| uid == owner.uid())).cloned().collect()
    }

    pub(crate) fn any_application(&self, random: &mut impl Rng) -> Option<Rc<Object>> {
        self.seen().applications.values().choose(random).cloned()
    }

    pub(crate) fn revision_at(&self, time: Instant) -> Revision {
        self.seen().history.revision_at(time)
    }

    pub(crate) fn seen(&self) -> RefMut<'_, Observations> {
        self.0.borrow_mut()
    }
}

impl Observations {
    pub(crate) fn new(alarms: &Alarms) -> Self {
        Self {
            alarms: alarms.clone(),
            history: History::default(),
            applications: BTreeMap::new(),
            gone: HashSet::new(),
            published: VecDeque::new(),
            deleted: VecDeque::new(),
            condemned: HashSet::new(),
            widgets_removed: false,
            watch: BTreeMap::new(),
            publications: 0,
        }
    }

    /// Since when the current watch runs, and the last revision that it has reported.
    pub(crate) fn watched(&self, target: WatchTarget) -> (Option<Instant>, Revision) {
        self.watch.get(&target).map_or((None, 0), |watch| (watch.since, watch.revision))
    }

    fn handle(&mut self, target: WatchTarget, event: WatchEvent) -> Result<()> {
        let at = Instant::now();
        let watch = self.watch.entry(target).or_insert(WatchState { since: None, revision: 0 });
        match event {
            WatchEvent::Connected(connected) => watch.since = connected.then_some(at),
            WatchEvent::Bookmark(revision) => {
                watch.revision = revision;
                self.history.tick(revision, at);
            }
            WatchEvent::Changed(revision, object, gone) => {
                watch.revision = revision;
                self.history.tick(revision, at);
                self.see(target, revision, &object, gone, false)?;
            }
            WatchEvent::Listed(revision, items) => {
                let before = std::mem::replace(&mut watch.revision, revision);
                self.history.tick(revision, at);
                self.see_all(target, before, revision, &items)?;
            }
            WatchEvent::NotServed => {
                let before = watch.revision;
                self.see_all(target, before, self.history.latest(), &[])?;
            }
        }
        Ok(())
    }

    /// Handles a list. Changes since revision `before` may be missing.
    fn see_all(
        &mut self,
        target: WatchTarget,
        before: Revision,
        now: Revision,
        items: &[Rc<Object>],
    ) -> Result<()> {
        let names: BTreeSet<_> = items.iter().map(|item| item.name.clone()).collect();
        match target {
            WatchTarget::Objects(kind) => {
                if before > 0 {
                    self.history.note_gap(kind, before, now);
                }
                let known = self.history.now(kind).flat_map(Objects::keys);
                let gone: Vec<_> = known.filter(|name| !names.contains(name)).cloned().collect();
                for name in gone {
                    self.history.note(kind, &name, now, None);
                }
            }
            WatchTarget::Applications => {
                let gone: Vec<_> =
                    self.applications.keys().filter(|name| !names.contains(name)).cloned().collect();
                for name in gone {
                    self.gone.extend(self.applications.remove(&name).map(|app| app.uid().to_owned()));
                }
            }
            WatchTarget::Rules if items.is_empty() => self.history.note_rule(now, Instant::now(), None),
            WatchTarget::Rules => {}
        }
        for item in items.iter().filter(|item| item.version() > before) {
            self.see(target, item.version(), item, Gone::No, true)?;
        }
        Ok(())
    }

    /// Handles a change of one object. If it was `listed`, it may stand for several changes.
    fn see(
        &mut self,
        target: WatchTarget,
        revision: Revision,
        object: &Rc<Object>,
        gone: Gone,
        listed: bool,
    ) -> Result<()> {
        match target {
            WatchTarget::Objects(kind) => self.see_object(kind, revision, object, gone),
            WatchTarget::Applications => return self.see_application(revision, object, gone, listed),
            WatchTarget::Rules => {
                let rule = (gone == Gone::No).then(|| Rc::clone(object));
                self.history.note_rule(revision, Instant::now(), rule);
            }
        }
        Ok(())
    }

    fn see_object(&mut self, kind: Kind, revision: Revision, object: &Rc<Object>, gone: Gone) {
        if !kind.is_member() {
            let now = (gone == Gone::No).then(|| Rc::clone(object));
            self.history.note(kind, &object.name, revision, now);
            return;
        }
        // Objects that the load has not written are not members.
        let Some(written) = object.metadata()["annotations"][LAST_WRITTEN].as_str() else { return };
        let what = format!("{} {}", kind.name(), object.name);
        let is = objects::summary_of(kind, &object.value);
        if is != written {
            self.alarms.raise(&format!(
                "{what}: content is {is:?} at revision {revision}, the load wrote {written:?}"
            ));
        }
        let mut owners = object.metadata()["ownerReferences"].as_array().into_iter().flatten();
        if objects::has_anchor(&object.name.name) && !owners.any(|owner| owner["name"] == ANCHOR) {
            self.alarms.raise(&format!("{what}: the owner reference of another writer is missing"));
        }
        // For objects with finalizers, the state at the time of the delete request counts.
        let before = self.history.now_in(kind, &object.name.namespace);
        let before = before.and_then(|objects| objects.get(&object.name));
        let was_deleting = before.is_some_and(|it| it.uid() == object.uid() && it.is_deleting());
        let by_load = self.condemned.contains(object.uid()) || (kind == Kind::Widget && self.widgets_removed);
        if (gone == Gone::Yes || object.is_deleting()) && !was_deleting && !by_load {
            self.deleted.push_back(Deleted { object: Rc::clone(object), seen: Instant::now() });
        }
        let now = (gone == Gone::No).then(|| Rc::clone(object));
        self.history.note(kind, &object.name, revision, now);
    }

    fn see_application(
        &mut self,
        revision: Revision,
        object: &Rc<Object>,
        gone: Gone,
        listed: bool,
    ) -> Result<()> {
        let name = object.name.clone();
        let app = object.application().with_context(|| format!("invalid Application {name}"))?.clone();
        if gone == Gone::Yes {
            self.applications.remove(&name);
            self.gone.insert(object.uid().to_owned());
            return Ok(());
        }
        let before = self.applications.insert(name.clone(), Rc::clone(object));
        if let Some(other) = before.as_ref().filter(|before| before.uid() != object.uid()) {
            self.gone.insert(other.uid().to_owned());
        }
        let before = before.filter(|before| before.uid() == object.uid());
        let (was, is) = (before.and_then(|before| before.application().map(parts)), parts(&app));
        if was.as_ref().is_some_and(|was| was.0 == is.0) || is.0 == ApplicationStatus::default() {
            return Ok(());
        }
        // Statuses from a list are not checked: the spec may have changed since they were written.
        if listed {
            return Ok(());
        }
        if let Some((_, foreign)) = was
            && foreign != is.1
        {
            self.alarms.raise(&format!(
                "Application {name}: a status write at revision {revision} changed the conditions of other writers from \
                 {foreign:?} to {:?}",
                is.1
            ));
        }
        self.publications += 1;
        self.published.push_back(Published { name, app, revision, seen: Instant::now() });
        Ok(())
    }
}

/// Splits a status into the part of the controller and the conditions of other writers.
fn parts(app: &Application) -> (ApplicationStatus, Vec<String>) {
    let mut own = app.status.clone().unwrap_or_default();
    let is_bellwether = |kind: &str| OWN.contains(&kind);
    let foreign = own.conditions.iter().filter(|it| !is_bellwether(&it.type_));
    let foreign = foreign.map(|it| format!("{} {} {}", it.type_, it.status, it.message)).collect();
    own.conditions.retain(|it| is_bellwether(&it.type_));
    (own, foreign)
}
