//! A cluster in memory: its objects, as an API server would keep them, and what is told to those who follow them.

use std::{collections::BTreeMap, mem, sync::Arc};

use bellwether_engine::{
    Change, Exists, FeedId, Kind, Lens, Light, Name, News, Outcome, Seen, Served, Slot, Source, Unreadable,
    Version,
};
use bellwether_model::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Where nearly everything happens.
pub(super) const NAMESPACE: &str = "default";

/// A kind that there is.
struct Known {
    group: &'static str,
    kind: &'static str,
    version: &'static str,
    /// The word for many of them.
    plural: &'static str,
    /// Where they are: each kind is in one namespace, or in none.
    namespace: &'static str,
}

const fn known(
    group: &'static str,
    kind: &'static str,
    version: &'static str,
    plural: &'static str,
    namespace: &'static str,
) -> Known {
    Known { group, kind, version, plural, namespace }
}

const KINDS: &[Known] = &[
    known("bellwether.dev", "Application", "v1alpha1", "applications", NAMESPACE),
    known("bellwether.dev", "HealthRule", "v1alpha1", "healthrules", ""),
    known("bellwether.dev", "Rollup", "v1alpha1", "rollups", ""),
    known("apps", "Deployment", "v1", "deployments", NAMESPACE),
    known("apps", "ReplicaSet", "v1", "replicasets", NAMESPACE),
    known("apps", "StatefulSet", "v1", "statefulsets", NAMESPACE),
    known("", "PersistentVolumeClaim", "v1", "persistentvolumeclaims", NAMESPACE),
    known("", "Pod", "v1", "pods", NAMESPACE),
    known("", "Service", "v1", "services", NAMESPACE),
    known("guests.example.com", "Hypervisor", "v1", "hypervisors", "guests"),
    known("disks.example.com", "DiskPool", "v1", "diskpools", "disks"),
    known("net.example.com", "Fabric", "v1", "fabrics", ""),
];

/// A cluster.
#[derive(Debug)]
pub(super) struct Store {
    objects: BTreeMap<(Kind, Name), Value>,
    /// The number of the last change.
    revision: u64,
    /// How many objects there have been.
    born: u64,
    feeds: BTreeMap<FeedId, Arc<Lens>>,
    /// What has not been told yet.
    news: Vec<(FeedId, News)>,
    now: Timestamp,
}

impl Store {
    /// One with nothing in it.
    pub(super) fn new(now: Timestamp) -> Self {
        let (objects, feeds, news) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { objects, revision: 0, born: 0, feeds, news, now }
    }

    /// What the time is from now on.
    pub(super) fn tell_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The time as objects have it: in whole seconds.
    pub(super) fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The number of the last change: what did not change it changed nothing.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn get(&self, kind: &Kind, name: &str) -> Option<&Value> {
        self.objects.get(&key(kind, name))
    }

    /// All objects of a kind, by their names.
    pub(super) fn all(&self, kind: &Kind) -> Vec<Value> {
        self.of(kind).cloned().collect()
    }

    fn of(&self, kind: &Kind) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |((other, _), _)| other == kind).map(|(_, object)| object)
    }

    /// Whether there is an object of this identity.
    pub(super) fn has(&self, uid: &str) -> bool {
        self.objects.values().any(|object| object["metadata"]["uid"] == *uid)
    }

    /// Every object with its kind and name.
    pub(super) fn everything(&self) -> impl Iterator<Item = (&Kind, &str, &Value)> {
        self.objects.iter().map(|((kind, name), object)| (kind, &*name.name, object))
    }

    /// Applies a manifest: the object is made, or its fields become those of the manifest.
    pub(super) fn apply(&mut self, manifest: &Value) {
        let (kind, name) = identity(manifest);
        if self.get(&kind, &name).is_some() {
            self.patch(&kind, &name, manifest);
        } else {
            self.create(manifest.clone());
        }
    }

    /// Makes an object. It gets an identity, and the defaults that an API server would give it.
    pub(super) fn create(&mut self, mut object: Value) {
        let (kind, name) = identity(&object);
        self.born += 1;
        self.revision += 1;
        let given = json!({
            "metadata": {
                "uid": format!("00000000-0000-4000-8000-{:012x}", self.born),
                "generation": 1,
                "resourceVersion": self.revision.to_string(),
                "creationTimestamp": self.time(),
            },
        });
        merge(&mut object, &given);
        let namespace = namespace(&kind);
        if !namespace.is_empty() {
            merge(&mut object, &json!({ "metadata": { "namespace": namespace } }));
        }
        self.objects.insert(key(&kind, &name), object);
        self.tell(&kind, &name);
    }

    /// Merges a patch into an object that is there. Another spec is another generation; what changes nothing has no new
    /// version.
    pub(super) fn patch(&mut self, kind: &Kind, name: &str, patch: &Value) {
        let Some(object) = self.objects.get_mut(&key(kind, name)) else { return };
        let before = object.clone();
        merge(object, patch);
        if *object == before {
            return;
        }
        self.revision += 1;
        let generation = before["metadata"]["generation"].as_i64().unwrap_or(1);
        let generation = generation + i64::from(object["spec"] != before["spec"]);
        let version = json!({
            "metadata": { "generation": generation, "resourceVersion": self.revision.to_string() },
        });
        merge(object, &version);
        self.tell(kind, name);
    }

    /// Deletes an object. A Pod ends its containers first; whoever runs it removes it then.
    pub(super) fn delete(&mut self, kind: &Kind, name: &str) {
        if *kind == Kind::pod() {
            let time = self.time();
            self.patch(kind, name, &json!({ "metadata": { "deletionTimestamp": time } }));
        } else {
            self.remove(kind, name);
        }
    }

    /// An object is there no longer.
    pub(super) fn remove(&mut self, kind: &Kind, name: &str) {
        if self.objects.remove(&key(kind, name)).is_some() {
            self.revision += 1;
            self.tell(kind, name);
        }
    }

    /// Tells those who follow its kind how an object is by now.
    fn tell(&mut self, kind: &Kind, name: &str) {
        let key = key(kind, name);
        let object = self.objects.get(&key);
        for (feed, lens) in self.feeds.iter().filter(|(_, lens)| lens.kind() == kind) {
            let news = match object {
                Some(object) => {
                    look(object, lens, self.now).map(|(name, seen)| News::Seen(name, Box::new(seen)))
                }
                None => Some(News::Gone(key.1.clone())),
            };
            self.news.extend(news.map(|news| (*feed, news)));
        }
    }

    /// What has not been told yet.
    pub(super) fn news(&mut self) -> Vec<(FeedId, News)> {
        mem::take(&mut self.news)
    }

    /// The objects of a kind, as they look through a lens at this moment.
    pub(super) fn seen(&self, kind: &Kind, lens: &Lens) -> Vec<(Name, Seen)> {
        self.of(kind).filter_map(|object| look(object, lens, self.now)).collect()
    }

    /// Makes a change that the engine wants, if the object is still the one that it is meant for.
    pub(super) fn write(&mut self, slot: &Slot, change: &Change) -> Outcome {
        let (kind, name) = (&slot.object.kind, &*slot.object.name.name);
        match change {
            Change::Status { uid, version, patch, .. } => {
                self.guarded(kind, name, (uid, version), &json!({ "status": &**patch }))
            }
            Change::Owners { uid, version, owners, requires } => {
                if let Some(owner) = requires.as_ref().filter(|owner| !self.is_there(owner)) {
                    let why = format!("{} {} is not there to take it over", owner.kind.kind, owner.name);
                    return Outcome::Failed(why.into());
                }
                let patch = json!({ "metadata": { "ownerReferences": &**owners } });
                self.guarded(kind, name, (uid, version), &patch)
            }
            Change::Create { .. } if self.get(kind, name).is_some() => Outcome::Conflict,
            Change::Create { dry_run: true, .. } => Outcome::Done(None),
            Change::Create { manifest, .. } => {
                self.create(Value::clone(manifest));
                Outcome::Done(self.version(kind, name))
            }
            Change::Replace { .. } | Change::Apply { .. } => {
                Outcome::Refused("the demo does not do that".into())
            }
            Change::Delete { uid } => match self.get(kind, name) {
                None => Outcome::Absent,
                Some(object) if object["metadata"]["uid"] != **uid => Outcome::Conflict,
                Some(_) => {
                    self.delete(kind, name);
                    Outcome::Done(None)
                }
            },
        }
    }

    fn guarded(
        &mut self,
        kind: &Kind,
        name: &str,
        (uid, version): (&str, &Version),
        patch: &Value,
    ) -> Outcome {
        let Some(object) = self.get(kind, name) else { return Outcome::Absent };
        let metadata = &object["metadata"];
        if metadata["uid"] != *uid || metadata["resourceVersion"] != *version.as_str() {
            return Outcome::Conflict;
        }
        self.patch(kind, name, patch);
        Outcome::Done(self.version(kind, name))
    }

    fn version(&self, kind: &Kind, name: &str) -> Option<Version> {
        self.get(kind, name)?["metadata"]["resourceVersion"].as_str().map(Version::new)
    }

    fn is_there(&self, owner: &Exists) -> bool {
        self.get(&owner.kind, &owner.name.name).is_some_and(|it| {
            it["metadata"]["uid"] == *owner.uid && it["metadata"]["deletionTimestamp"].is_null()
        })
    }
}

fn key(kind: &Kind, name: &str) -> (Kind, Name) {
    (kind.clone(), Name::new(namespace(kind), name))
}

/// Where the objects of a kind are.
fn namespace(kind: &Kind) -> &'static str {
    find(kind).map_or(NAMESPACE, |known| known.namespace)
}

fn find(kind: &Kind) -> Option<&'static Known> {
    KINDS.iter().find(|known| *known.group == *kind.group && *known.kind == *kind.kind)
}

/// All that there is of a kind is told when it is followed, and what changes when somebody asks for news.
impl Source for Store {
    fn follow(&mut self, feed: FeedId, kind: &Kind, lens: Arc<Lens>) {
        let Some(served) = self.served(kind) else {
            self.news.push((feed, News::Unreadable(Unreadable::NotServed)));
            return;
        };
        let seen = self.seen(kind, &lens).into_iter().map(|(name, seen)| News::Seen(name, Box::new(seen)));
        let all = [News::Served(served), News::Listing].into_iter().chain(seen).chain([News::Listed]);
        self.news.extend(all.map(|news| (feed, news)));
        self.feeds.insert(feed, lens);
    }

    fn leave(&mut self, feed: FeedId) {
        self.feeds.remove(&feed);
        self.news.retain(|(other, _)| *other != feed);
    }

    fn served(&self, kind: &Kind) -> Option<Served> {
        served(kind)
    }
}

/// The kind and the name of an object.
pub(super) fn identity(object: &Value) -> (Kind, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    (Kind::new(group, &text(&object["kind"])), text(&object["metadata"]["name"]))
}

fn served(kind: &Kind) -> Option<Served> {
    let known = find(kind)?;
    Some(Served {
        version: known.version.into(),
        versions: [known.version.into()].into(),
        plural: known.plural.into(),
        namespaced: !known.namespace.is_empty(),
        has_status: true,
    })
}

fn look(object: &Value, lens: &Lens, now: Timestamp) -> Option<(Name, Seen)> {
    let json = object.to_string();
    let object = Object::from_json(json.as_bytes(), lens.plan()).ok()?;
    Some(lens.look(&object, Light { now, has_status: Some(true) }))
}

/// The value after a merge patch, as RFC 7386 has it.
pub(super) fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Some(fields) = value.as_object_mut() else { return };
    for (key, patch) in patch {
        if patch.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.as_str()).or_insert(Value::Null), patch);
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Cluster, Dialect, Effect, Engine, ObjectKey, Part};

    use super::*;

    fn application() -> Kind {
        Kind::own("Application")
    }

    fn manifest() -> Value {
        json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "metadata": { "name": "web" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "components": {} },
        })
    }

    fn with_one() -> Store {
        let mut store = Store::new(Timestamp::UNIX_EPOCH);
        store.apply(&manifest());
        store
    }

    fn metadata(store: &Store) -> (String, i64, String) {
        let metadata = &store.get(&application(), "web").expect("it is there")["metadata"];
        let text = |field: &str| metadata[field].as_str().expect("a text").to_owned();
        (text("uid"), metadata["generation"].as_i64().expect("a number"), text("resourceVersion"))
    }

    #[test]
    fn another_spec_is_another_generation_and_any_change_another_version() {
        let mut store = with_one();
        let (uid, generation, version) = metadata(&store);
        assert_eq!((generation, &*version), (1, "1"));
        store.patch(&application(), "web", &json!({ "status": { "progress": 50 } }));
        assert_eq!(metadata(&store), (uid.clone(), 1, "2".to_owned()));
        store.patch(&application(), "web", &json!({ "spec": { "type": "shop" } }));
        assert_eq!(metadata(&store), (uid.clone(), 2, "3".to_owned()));
        store.apply(&manifest());
        assert_eq!(metadata(&store), (uid.clone(), 2, "3".to_owned()), "nothing has changed");
        store.remove(&application(), "web");
        store.apply(&manifest());
        let (other, generation, version) = metadata(&store);
        assert_ne!(other, uid, "it is another object");
        assert_eq!((generation, &*version), (1, "5"));
    }

    fn slot(kind: Kind, part: Part) -> Slot {
        let name = Name::new(NAMESPACE, "web");
        Slot { object: ObjectKey { cluster: Cluster::hub(), kind, name }, part }
    }

    #[test]
    fn a_status_is_written_to_the_object_and_the_version_that_it_is_meant_for() {
        let mut store = with_one();
        let (uid, _, version) = metadata(&store);
        let write = |store: &mut Store, uid: &str, version: &str| {
            let (uid, version) = (uid.into(), Version::new(version));
            let change = Change::Status {
                uid,
                version,
                patch: Arc::new(json!({ "progress": 7 })),
                told: Box::default(),
                claims: Box::default(),
            };
            store.write(&slot(application(), Part::Status), &change)
        };
        assert_eq!(write(&mut store, "another", &version), Outcome::Conflict);
        assert_eq!(write(&mut store, &uid, "0"), Outcome::Conflict);
        assert_eq!(metadata(&store).2, version, "nothing was written");
        assert_eq!(write(&mut store, &uid, &version), Outcome::Done(Some(Version::new("2"))));
        assert_eq!(store.get(&application(), "web").expect("it is there")["status"]["progress"], 7);
        store.remove(&application(), "web");
        assert_eq!(write(&mut store, &uid, "2"), Outcome::Absent);
    }

    #[test]
    fn nothing_is_handed_over_to_an_application_that_is_gone() {
        let mut store = with_one();
        let (owner, ..) = metadata(&store);
        store.apply(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" } }));
        let service = Kind::new("", "Service");
        let object = store.get(&service, "web").expect("it is there").clone();
        let change = |uid: &str| Change::Owners {
            uid: object["metadata"]["uid"].as_str().expect("a text").into(),
            version: Version::new(object["metadata"]["resourceVersion"].as_str().expect("a text")),
            owners: Arc::new([]),
            requires: Some(Box::new(Exists {
                kind: Dialect::Bellwether.kind(),
                version: Dialect::Bellwether.version().into(),
                plural: "applications".into(),
                name: Name::new(NAMESPACE, "web"),
                uid: uid.into(),
            })),
        };
        let slot = slot(service, Part::Owners);
        assert!(matches!(store.write(&slot, &change("another")), Outcome::Failed(_)));
        assert!(matches!(store.write(&slot, &change(&owner)), Outcome::Done(_)));
    }

    /// News in a word each.
    fn words(store: &mut Store) -> Vec<String> {
        let word = |(_, news): (FeedId, News)| match news {
            News::Seen(name, seen) => format!("{} {}", name.name, seen.facts.version.as_str()),
            News::Gone(name) => format!("{} is gone", name.name),
            News::Served(served) => served.plural.to_string(),
            News::Unreadable(why) => why.to_string(),
            news => format!("{news:?}"),
        };
        store.news().into_iter().map(word).collect()
    }

    #[test]
    fn who_follows_a_kind_is_told_what_there_is_and_what_becomes_of_it() {
        let mut store = with_one();
        let follows =
            Engine::new().step(Timestamp::UNIX_EPOCH, []).into_iter().find_map(|effect| match effect {
                Effect::Follow { feed, kind, lens, .. } if kind == application() => Some((feed, lens)),
                _ => None,
            });
        let (feed, lens) = follows.expect("the engine follows Applications");
        store.follow(feed, &application(), Arc::clone(&lens));
        assert_eq!(words(&mut store), ["applications", "Listing", "web 1", "Listed"]);
        store.patch(&application(), "web", &json!({ "spec": { "type": "shop" } }));
        store.apply(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" } }));
        store.delete(&application(), "web");
        assert_eq!(words(&mut store), ["web 2", "web is gone"], "of no other kind");
        store.leave(feed);
        store.apply(&manifest());
        assert_eq!(words(&mut store), [""; 0]);
        store.follow(feed, &Kind::new("acme.io", "Widget"), lens);
        assert_eq!(words(&mut store), ["the cluster does not serve it"]);
    }

    #[test]
    fn a_pod_ends_before_it_is_gone() {
        let mut store = Store::new(Timestamp::UNIX_EPOCH);
        store.apply(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" } }));
        store.delete(&Kind::pod(), "web");
        let pod = store.get(&Kind::pod(), "web").expect("it is still there");
        assert_eq!(pod["metadata"]["deletionTimestamp"], "1970-01-01T00:00:00Z");
        store.remove(&Kind::pod(), "web");
        assert!(store.get(&Kind::pod(), "web").is_none());
    }
}
