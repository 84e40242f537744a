//! Somebody who watches at the API server itself, sees all that is published, and looks after what belongs to others.

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
    cast::{self, ANCHOR, APPLICATION, HEALTH_RULE, Kind, Objects, Place, SAYS},
    chronicle::{Chronicle, Revision},
    watch::{Gone, Told, follow},
};

/// The conditions that the controller writes. All others are those of others.
const OWN: [&str; 7] =
    ["Ready", "Settled", "Installed", "Resolved", "HealthCheckValid", "Adopted", "DependencyCycle"];

/// What the witness has seen. The oracle's objects are of one thread, and so is this.
#[derive(Clone)]
pub(crate) struct Witness(Rc<RefCell<Seen>>);

/// All that was seen.
pub(crate) struct Seen {
    alarms: Alarms,
    pub(crate) chronicle: Chronicle,
    /// The Applications as they are.
    pub(crate) applications: Objects,
    /// The identities of those that are gone.
    pub(crate) gone: HashSet<String>,
    /// What was published and is still to be judged.
    pub(crate) published: VecDeque<Published>,
    /// What was deleted, and is still to be explained.
    pub(crate) deleted: VecDeque<Deleted>,
    /// What the load has asked to be deleted.
    condemned: HashSet<String>,
    /// Whether Widgets go because their kind does.
    widgets_go: bool,
    hearing: BTreeMap<Subject, Hearing>,
    pub(crate) publications: usize,
}

/// A status that somebody else than the load has written.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) name: NamespacedName,
    pub(crate) app: Application,
    pub(crate) revision: Revision,
    pub(crate) seen: Instant,
}

/// A member that is gone.
pub(crate) struct Deleted {
    pub(crate) object: Rc<Object>,
    pub(crate) seen: Instant,
}

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Members(Kind),
    Applications,
    Rules,
}

/// How well something is watched.
#[derive(Clone, Copy)]
struct Hearing {
    since: Option<Instant>,
    revision: Revision,
}

impl Subject {
    fn place(self) -> Place {
        match self {
            Self::Members(kind) => kind.place(),
            Self::Applications => APPLICATION,
            Self::Rules => HEALTH_RULE,
        }
    }
}

impl Witness {
    /// Watches from now on, for as long as the tasks live.
    pub(crate) fn begin(client: &Client, alarms: &Alarms, tasks: &mut JoinSet<()>) -> Self {
        let witness = Self(Rc::new(RefCell::new(Seen::new(alarms))));
        let members = Kind::ALL.map(Subject::Members);
        for subject in members.into_iter().chain([Subject::Applications, Subject::Rules]) {
            let (witness, client, alarms) = (witness.clone(), client.clone(), alarms.clone());
            tasks.spawn_local(async move {
                follow(&client, subject.place(), |told| {
                    if let Err(error) = witness.seen().hear(subject, told) {
                        alarms.raise(&format!("the witness does not understand what it sees: {error:#}"));
                    }
                })
                .await;
            });
        }
        witness
    }

    /// What the load asks to be deleted is nobody else's doing.
    pub(crate) fn condemn(&self, uid: &str) {
        self.seen().condemned.insert(uid.to_owned());
    }

    /// Widgets go because their kind does, or do not any more.
    pub(crate) fn widgets_go(&self, go: bool) {
        self.seen().widgets_go = go;
    }

    /// How many statuses were published so far.
    pub(crate) fn publications(&self) -> usize {
        self.seen().publications
    }

    /// How many members and Applications there are.
    pub(crate) fn census(&self) -> (usize, usize) {
        let seen = self.seen();
        let members = Kind::ALL.into_iter().flat_map(|kind| seen.chronicle.now(kind));
        (members.map(Objects::len).sum(), seen.applications.len())
    }

    /// A member of a kind, if there is one.
    pub(crate) fn any_member(&self, kind: Kind, random: &mut impl Rng) -> Option<Rc<Object>> {
        self.seen().chronicle.now(kind).flat_map(Objects::values).choose(random).cloned()
    }

    /// An Application, if there is one.
    pub(crate) fn any_application(&self, random: &mut impl Rng) -> Option<Rc<Object>> {
        self.seen().applications.values().choose(random).cloned()
    }

    /// The revision that was the latest at a time.
    pub(crate) fn revision_at(&self, time: Instant) -> Revision {
        self.seen().chronicle.revision_at(time)
    }

    pub(crate) fn seen(&self) -> RefMut<'_, Seen> {
        self.0.borrow_mut()
    }
}

impl Seen {
    /// Nothing yet.
    pub(crate) fn new(alarms: &Alarms) -> Self {
        Self {
            alarms: alarms.clone(),
            chronicle: Chronicle::default(),
            applications: BTreeMap::new(),
            gone: HashSet::new(),
            published: VecDeque::new(),
            deleted: VecDeque::new(),
            condemned: HashSet::new(),
            widgets_go: false,
            hearing: BTreeMap::new(),
            publications: 0,
        }
    }

    /// How long all that happens to something has been heard of without a break, and up to which revision.
    pub(crate) fn heard(&self, subject: Subject) -> (Option<Instant>, Revision) {
        self.hearing.get(&subject).map_or((None, 0), |hearing| (hearing.since, hearing.revision))
    }

    fn hear(&mut self, subject: Subject, told: Told) -> Result<()> {
        let at = Instant::now();
        let hearing = self.hearing.entry(subject).or_insert(Hearing { since: None, revision: 0 });
        match told {
            Told::Hears(hears) => hearing.since = hears.then_some(at),
            Told::Nothing(revision) => {
                hearing.revision = revision;
                self.chronicle.tick(revision, at);
            }
            Told::One(revision, object, gone) => {
                hearing.revision = revision;
                self.chronicle.tick(revision, at);
                self.see(subject, revision, &object, gone, false)?;
            }
            Told::All(revision, items) => {
                let before = std::mem::replace(&mut hearing.revision, revision);
                self.chronicle.tick(revision, at);
                self.see_all(subject, before, revision, &items)?;
            }
            Told::NotServed => {
                let before = hearing.revision;
                self.see_all(subject, before, self.chronicle.latest(), &[])?;
            }
        }
        Ok(())
    }

    /// What happened since `before` was not seen.
    fn see_all(
        &mut self,
        subject: Subject,
        before: Revision,
        now: Revision,
        items: &[Rc<Object>],
    ) -> Result<()> {
        let names: BTreeSet<_> = items.iter().map(|item| item.name.clone()).collect();
        match subject {
            Subject::Members(kind) => {
                if before > 0 {
                    self.chronicle.note_gap(kind, before, now);
                }
                let known = self.chronicle.now(kind).flat_map(Objects::keys);
                let gone: Vec<_> = known.filter(|name| !names.contains(name)).cloned().collect();
                for name in gone {
                    self.chronicle.note(kind, &name, now, None);
                }
            }
            Subject::Applications => {
                let gone: Vec<_> =
                    self.applications.keys().filter(|name| !names.contains(name)).cloned().collect();
                for name in gone {
                    self.gone.extend(self.applications.remove(&name).map(|app| app.uid().to_owned()));
                }
            }
            Subject::Rules if items.is_empty() => self.chronicle.note_rule(now, None),
            Subject::Rules => {}
        }
        for item in items.iter().filter(|item| item.version() > before) {
            self.see(subject, item.version(), item, Gone::No, true)?;
        }
        Ok(())
    }

    /// One object has changed. After a list, more than once perhaps.
    fn see(
        &mut self,
        subject: Subject,
        revision: Revision,
        object: &Rc<Object>,
        gone: Gone,
        listed: bool,
    ) -> Result<()> {
        match subject {
            Subject::Members(kind) => self.see_member(kind, revision, object, gone),
            Subject::Applications => return self.see_application(revision, object, gone, listed),
            Subject::Rules => {
                self.chronicle.note_rule(revision, (gone == Gone::No).then(|| Rc::clone(object)));
            }
        }
        Ok(())
    }

    fn see_member(&mut self, kind: Kind, revision: Revision, object: &Rc<Object>, gone: Gone) {
        // What the load has not made is no member of anything.
        let Some(says) = object.metadata()["annotations"][SAYS].as_str() else { return };
        let what = format!("{} {}", kind.name(), object.name);
        let is = cast::as_written(kind, &object.value);
        if is != says {
            self.alarms
                .raise(&format!("{what} was written as {says:?} and is {is:?} at revision {revision}"));
        }
        let mut owners = object.metadata()["ownerReferences"].as_array().into_iter().flatten();
        if cast::has_anchor(&object.name.name) && !owners.any(|owner| owner["name"] == ANCHOR) {
            self.alarms.raise(&format!("{what} has lost the owner that somebody else gave it"));
        }
        // Some linger when they are deleted: what counts is how they were when somebody did it.
        let before = self.chronicle.now_in(kind, &object.name.namespace);
        let before = before.and_then(|objects| objects.get(&object.name));
        let was_deleting = before.is_some_and(|it| it.uid() == object.uid() && it.is_deleting());
        let by_load = self.condemned.contains(object.uid()) || (kind == Kind::Widget && self.widgets_go);
        if (gone == Gone::Yes || object.is_deleting()) && !was_deleting && !by_load {
            self.deleted.push_back(Deleted { object: Rc::clone(object), seen: Instant::now() });
        }
        let now = (gone == Gone::No).then(|| Rc::clone(object));
        self.chronicle.note(kind, &object.name, revision, now);
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
        // What was written while nobody looked is not judged: the spec may have changed since.
        if listed {
            return Ok(());
        }
        if let Some((_, foreign)) = was
            && foreign != is.1
        {
            self.alarms.raise(&format!(
                "Application {name}: the conditions of others were {foreign:?} and are {:?} after a status was written, at \
                 revision {revision}",
                is.1
            ));
        }
        self.publications += 1;
        self.published.push_back(Published { name, app, revision, seen: Instant::now() });
        Ok(())
    }
}

/// What the controller says in a status, and which conditions others have in it.
fn parts(app: &Application) -> (ApplicationStatus, Vec<String>) {
    let mut own = app.status.clone().unwrap_or_default();
    let is_own = |kind: &str| OWN.contains(&kind);
    let foreign = own.conditions.iter().filter(|it| !is_own(&it.type_));
    let foreign = foreign.map(|it| format!("{} {} {}", it.type_, it.status, it.message)).collect();
    own.conditions.retain(|it| is_own(&it.type_));
    (own, foreign)
}
