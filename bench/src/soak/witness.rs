//! Somebody who watches at the API server itself, sees all that is published, and looks after what belongs to others.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use anyhow::{Context as _, Result};
use bellwether_api::ApplicationStatus;
use kube::Client;
use rand::{Rng, seq::IteratorRandom as _};
use serde_json::Value as Json;
use tokio::task::JoinSet;

use super::{
    alarm::Alarms,
    cast::{self, ANCHOR, APPLICATION, HEALTH_RULE, Kind, Place, SAYS},
    chronicle::{Chronicle, Revision},
    fact::{Eye, Fact},
    rules,
    truth::App,
    watch::{Gone, Told, follow, revision},
};

/// The conditions that the controller writes. All others are those of others.
const OWN: [&str; 7] =
    ["Ready", "Settled", "Installed", "Resolved", "HealthCheckValid", "Adopted", "DependencyCycle"];

/// What the witness has seen.
#[derive(Clone)]
pub struct Witness(Arc<Mutex<Seen>>);

/// All that was seen.
pub(super) struct Seen {
    alarms: Alarms,
    eye: Arc<Eye>,
    pub(super) chronicle: Chronicle,
    /// The Applications as they are.
    pub(super) applications: BTreeMap<(String, String), App>,
    /// The identities of those that are gone.
    pub(super) gone: HashSet<String>,
    /// What was published and is still to be judged.
    pub(super) published: VecDeque<Published>,
    /// What was deleted, and is still to be explained.
    pub(super) deleted: VecDeque<Deleted>,
    /// What the load has asked to be deleted.
    condemned: HashSet<String>,
    /// Whether Widgets go because their kind does.
    widgets_go: bool,
    hearing: BTreeMap<Subject, Hearing>,
    pub(super) publications: usize,
}

/// A status that somebody else than the load has written.
#[derive(Clone)]
pub(super) struct Published {
    pub(super) app: App,
    pub(super) revision: Revision,
    pub(super) seen: Instant,
}

/// A member that is gone.
pub(super) struct Deleted {
    pub(super) what: String,
    pub(super) fact: Fact,
    pub(super) seen: Instant,
}

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
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
    pub fn begin(client: &Client, alarms: &Alarms, tasks: &mut JoinSet<()>) -> Result<Self> {
        let witness = Self(Arc::new(Mutex::new(Seen {
            alarms: alarms.clone(),
            eye: Arc::new(Eye::new()?),
            chronicle: Chronicle::default(),
            applications: BTreeMap::new(),
            gone: HashSet::new(),
            published: VecDeque::new(),
            deleted: VecDeque::new(),
            condemned: HashSet::new(),
            widgets_go: false,
            hearing: BTreeMap::new(),
            publications: 0,
        })));
        let members = Kind::ALL.map(Subject::Members);
        for subject in members.into_iter().chain([Subject::Applications, Subject::Rules]) {
            let (seen, client, alarms) = (witness.clone(), client.clone(), alarms.clone());
            tasks.spawn(async move {
                follow(&client, subject.place(), |told| {
                    if let Err(error) = seen.lock().hear(subject, told) {
                        alarms.raise(&format!("the witness does not understand what it sees: {error:#}"));
                    }
                })
                .await;
            });
        }
        Ok(witness)
    }

    /// What the load asks to be deleted is nobody else's doing.
    pub(super) fn condemn(&self, uid: &str) {
        self.lock().condemned.insert(uid.to_owned());
    }

    /// Widgets go because their kind does, or do not any more.
    pub(super) fn widgets_go(&self, go: bool) {
        self.lock().widgets_go = go;
    }

    /// How many statuses were published so far.
    pub fn publications(&self) -> usize {
        self.lock().publications
    }

    /// How many members and Applications there are.
    pub fn census(&self) -> (usize, usize) {
        let seen = self.lock();
        let members = Kind::ALL.into_iter().flat_map(|kind| seen.chronicle.now(kind));
        (members.map(|(_, objects)| objects.len()).sum(), seen.applications.len())
    }

    /// A member of a kind, if there is one.
    pub(super) fn any_member(
        &self,
        kind: Kind,
        random: &mut impl Rng,
    ) -> Option<(String, String, Arc<Fact>)> {
        let seen = self.lock();
        let members = seen
            .chronicle
            .now(kind)
            .flat_map(|(namespace, objects)| objects.iter().map(move |(name, fact)| (namespace, name, fact)));
        let (namespace, name, fact) = members.choose(random)?;
        Some((namespace.to_owned(), name.clone(), Arc::clone(fact)))
    }

    /// An Application, if there is one.
    pub(super) fn any_application(&self, random: &mut impl Rng) -> Option<App> {
        self.lock().applications.values().choose(random).cloned()
    }

    /// The revision that was the latest at a time.
    pub(super) fn revision_at(&self, time: Instant) -> Revision {
        self.lock().chronicle.revision_at(time)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// How long all that happens to something has been heard of without a break, and up to which revision.
    pub(super) fn heard(&self, subject: Subject) -> (Option<Instant>, Revision) {
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

    /// Nobody saw what happened before.
    fn see_all(&mut self, subject: Subject, before: Revision, now: Revision, items: &[Json]) -> Result<()> {
        let names: BTreeSet<_> = items.iter().map(name).collect();
        match subject {
            Subject::Members(kind) => {
                if before > 0 {
                    self.chronicle.note_gap(kind, before, now);
                }
                let known = self.chronicle.now(kind).flat_map(|(namespace, objects)| {
                    objects.keys().map(move |name| (namespace.to_owned(), name.clone()))
                });
                for (namespace, name) in known.filter(|key| !names.contains(key)).collect::<Vec<_>>() {
                    self.chronicle.note(kind, &namespace, &name, now, None);
                }
            }
            Subject::Applications => {
                let gone: Vec<_> =
                    self.applications.keys().filter(|key| !names.contains(key)).cloned().collect();
                for key in gone {
                    self.gone.extend(self.applications.remove(&key).map(|app| app.uid));
                }
            }
            Subject::Rules if items.is_empty() => self.chronicle.note_rule(now, 0),
            Subject::Rules => {}
        }
        for item in items {
            let changed = revision(item)?;
            if changed > before {
                self.see(subject, changed, item, Gone::No, true)?;
            }
        }
        Ok(())
    }

    /// One object has changed. After a list, more than once perhaps.
    fn see(
        &mut self,
        subject: Subject,
        revision: Revision,
        object: &Json,
        gone: Gone,
        listed: bool,
    ) -> Result<()> {
        match subject {
            Subject::Members(kind) => self.see_member(kind, revision, object, gone),
            Subject::Applications => self.see_application(revision, object, gone, listed),
            Subject::Rules => {
                let choice = if gone == Gone::Yes { 0 } else { rules::in_force(object) };
                self.chronicle.note_rule(revision, choice);
                Ok(())
            }
        }
    }

    fn see_member(&mut self, kind: Kind, revision: Revision, object: &Json, gone: Gone) -> Result<()> {
        let (namespace, name) = name(object);
        // What the load has not made is no member of anything.
        let Some(says) = object["metadata"]["annotations"][SAYS].as_str() else { return Ok(()) };
        let what = format!("{} {namespace}/{name}", kind.name());
        let fact = self.eye.look(kind, object).with_context(|| what.clone())?;
        let is = cast::as_written(kind, object);
        if is != says {
            self.alarms
                .raise(&format!("{what} was written as {says:?} and is {is:?} at revision {revision}"));
        }
        if cast::has_anchor(&name) && !fact.owners.iter().any(|owner| owner.name == ANCHOR) {
            self.alarms.raise(&format!("{what} has lost the owner that somebody else gave it"));
        }
        // Some linger when they are deleted: what counts is how they were when somebody did it.
        let before = self.chronicle.now_in(kind, &namespace).and_then(|objects| objects.get(&name));
        let was_deleting = before.is_some_and(|before| before.uid == fact.uid && before.deleting);
        let by_load = self.condemned.contains(&fact.uid) || (kind == Kind::Widget && self.widgets_go);
        if (gone == Gone::Yes || fact.deleting) && !was_deleting && !by_load {
            self.deleted.push_back(Deleted { what, fact: fact.clone(), seen: Instant::now() });
        }
        self.chronicle.note(kind, &namespace, &name, revision, (gone == Gone::No).then_some(fact));
        Ok(())
    }

    fn see_application(&mut self, revision: Revision, object: &Json, gone: Gone, listed: bool) -> Result<()> {
        let key = name(object);
        let app = App::read(object).with_context(|| format!("Application {}/{}", key.0, key.1))?;
        if gone == Gone::Yes {
            self.applications.remove(&key);
            self.gone.insert(app.uid);
            return Ok(());
        }
        let before = self.applications.insert(key, app.clone());
        if let Some(other) = before.as_ref().filter(|before| before.uid != app.uid) {
            self.gone.insert(other.uid.clone());
        }
        let before = before.filter(|before| before.uid == app.uid);
        let (was, is) = (before.as_ref().map(|before| parts(&before.status)), parts(&app.status));
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
                "Application {}/{}: the conditions of others were {foreign:?} and are {:?} after a status was written, at \
                 revision {revision}",
                app.namespace, app.name, is.1
            ));
        }
        self.publications += 1;
        self.published.push_back(Published { app, revision, seen: Instant::now() });
        Ok(())
    }
}

/// What the controller says in a status, and which conditions others have in it.
fn parts(status: &ApplicationStatus) -> (ApplicationStatus, Vec<String>) {
    let mut own = status.clone();
    own.conditions.retain(|condition| OWN.contains(&condition.type_.as_str()));
    let foreign = status.conditions.iter().filter(|condition| !OWN.contains(&condition.type_.as_str()));
    let foreign = foreign.map(|it| format!("{} {} {}", it.type_, it.status, it.message)).collect();
    (own, foreign)
}

/// The namespace and the name of an object.
fn name(object: &Json) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}
