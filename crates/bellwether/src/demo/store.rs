//! The demo's cluster in memory: where its objects are, and what is told to those who follow them.

use std::{collections::BTreeMap, mem, sync::Arc};

use bellwether_engine::{
    Change, FeedEvent, FeedId, GroupKind, Lens, LookContext, NamespacedName, ObservedObject, Outcome, Served,
    Slot, Source, Unreadable,
};
use bellwether_memory_cluster::{MemoryCluster, Object, identity, merge, served};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Where nearly everything happens.
pub(super) const NAMESPACE: &str = "default";

/// A kind that there is.
struct KindEntry {
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
) -> KindEntry {
    KindEntry { group, kind, version, plural, namespace }
}

const KINDS: &[KindEntry] = &[
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
    cluster: MemoryCluster,
    feeds: BTreeMap<FeedId, Arc<Lens>>,
    /// What has not been told yet. What the log of the cluster has is newer.
    news: Vec<(FeedId, FeedEvent)>,
    now: Timestamp,
}

impl Store {
    /// One with nothing in it.
    pub(super) fn new(now: Timestamp) -> Self {
        let kinds = KINDS.iter().map(|known| {
            let kind = GroupKind::new(known.group, known.kind);
            (kind, served(&[known.version], known.plural, !known.namespace.is_empty()))
        });
        // Those who play tell by them who is older.
        let uid = |number| format!("00000000-0000-4000-8000-{number:012x}");
        let cluster = MemoryCluster::new(kinds.collect(), uid);
        Self { cluster, feeds: BTreeMap::new(), news: Vec::new(), now }
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
        self.cluster.revision
    }

    pub(super) fn get(&self, kind: &GroupKind, name: &str) -> Option<&Value> {
        self.cluster.get(kind, &located(kind, name)).map(|object| &object.value)
    }

    /// All objects of a kind, by their names.
    pub(super) fn all(&self, kind: &GroupKind) -> Vec<Value> {
        self.cluster.of_kind(kind).map(|object| object.value.clone()).collect()
    }

    /// Applies a manifest: the object is made, or its fields become those of the manifest.
    pub(super) fn apply(&mut self, manifest: &Value) {
        let (kind, name) = identity(manifest);
        if self.get(&kind, &name.name).is_some() {
            self.patch(&kind, &name.name, manifest);
        } else {
            self.create(manifest.clone());
        }
    }

    /// Makes an object. It gets the defaults that an API server would give it.
    pub(super) fn create(&mut self, mut object: Value) {
        merge(&mut object, &json!({ "metadata": { "creationTimestamp": self.time() } }));
        let namespace = namespace(&identity(&object).0);
        if !namespace.is_empty() {
            merge(&mut object, &json!({ "metadata": { "namespace": namespace } }));
        }
        self.cluster.put(object);
    }

    /// Merges a patch into an object that is there. Those who play write specs and statuses at once.
    pub(super) fn patch(&mut self, kind: &GroupKind, name: &str, patch: &Value) {
        self.cluster.edit(kind, &located(kind, name), |object| merge(object, patch));
    }

    /// Deletes an object, if it is there. A Pod ends its containers first; whoever runs it removes it then.
    pub(super) fn delete(&mut self, kind: &GroupKind, name: &str) {
        let time = self.time();
        // What is not there need not be deleted.
        let _ = self.cluster.delete(kind, &located(kind, name), None, &time);
    }

    /// An object is there no longer.
    pub(super) fn remove(&mut self, kind: &GroupKind, name: &str) {
        self.cluster.remove(kind, &located(kind, name));
    }

    /// The garbage collector deletes what is owned only by what is gone.
    pub(super) fn collect_garbage(&mut self) {
        let orphans = self.cluster.garbage(|_| false).into_iter();
        for garbage in orphans.filter(|it| it.solid.is_empty() && !it.object.is_deleting()) {
            self.delete(&garbage.object.kind, &garbage.object.name.name);
        }
    }

    /// What has not been told yet.
    pub(super) fn news(&mut self) -> Vec<(FeedId, FeedEvent)> {
        self.tell();
        mem::take(&mut self.news)
    }

    /// Tells those who follow its kind what has become of each object that has changed.
    fn tell(&mut self) {
        for entry in mem::take(&mut self.cluster.log) {
            let object = &entry.object;
            for (feed, lens) in self.feeds.iter().filter(|(_, lens)| *lens.kind() == object.kind) {
                let news = if entry.gone {
                    Some(FeedEvent::Deleted(object.name.clone()))
                } else {
                    self.look(object, lens).map(|(name, seen)| FeedEvent::Applied(name, Box::new(seen)))
                };
                self.news.extend(news.map(|news| (*feed, news)));
            }
        }
    }

    /// The objects of a kind, as they look through a lens at this moment.
    pub(super) fn seen(&self, kind: &GroupKind, lens: &Lens) -> Vec<(NamespacedName, ObservedObject)> {
        self.cluster.of_kind(kind).filter_map(|object| self.look(object, lens)).collect()
    }

    fn look(&self, object: &Object, lens: &Lens) -> Option<(NamespacedName, ObservedObject)> {
        object.seen(lens, LookContext { now: self.now, has_status: Some(true) })
    }

    /// Makes a change that the engine wants, if the object is still the one that it is meant for.
    pub(super) fn write(&mut self, slot: &Slot, change: &Change) -> Outcome {
        let time = self.time();
        self.cluster.write(slot, change, &time)
    }
}

/// All that there is of a kind is told when it is followed, and what changes when somebody asks for news.
impl Source for Store {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        let Some(served) = self.served(kind) else {
            self.news.push((feed, FeedEvent::Unreadable(Unreadable::NotServed)));
            return;
        };
        // What has changed before is in the list.
        self.tell();
        let seen =
            self.seen(kind, &lens).into_iter().map(|(name, seen)| FeedEvent::Applied(name, Box::new(seen)));
        let all = [FeedEvent::Served(served), FeedEvent::ListStarted]
            .into_iter()
            .chain(seen)
            .chain([FeedEvent::ListCompleted]);
        self.news.extend(all.map(|news| (feed, news)));
        self.feeds.insert(feed, lens);
    }

    fn leave(&mut self, feed: FeedId) {
        self.feeds.remove(&feed);
        self.news.retain(|(other, _)| *other != feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<Served> {
        self.cluster.kinds.get(kind).cloned()
    }
}

/// The whole name of an object of a kind.
fn located(kind: &GroupKind, name: &str) -> NamespacedName {
    NamespacedName::new(namespace(kind), name)
}

/// Where the objects of a kind are.
fn namespace(kind: &GroupKind) -> &'static str {
    let known = KINDS.iter().find(|known| *known.group == *kind.group && *known.kind == *kind.kind);
    known.map_or(NAMESPACE, |known| known.namespace)
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Effect, Engine};

    use super::*;

    fn application() -> GroupKind {
        GroupKind::own("Application")
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

    /// News in a word each.
    fn words(store: &mut Store) -> Vec<String> {
        let word = |(_, news): (FeedId, FeedEvent)| match news {
            FeedEvent::Applied(name, seen) => format!("{} {}", name.name, seen.facts.version.as_str()),
            FeedEvent::Deleted(name) => format!("{} is gone", name.name),
            FeedEvent::Served(served) => served.plural.to_string(),
            FeedEvent::Unreadable(why) => why.to_string(),
            news => format!("{news:?}"),
        };
        store.news().into_iter().map(word).collect()
    }

    #[test]
    fn objects_are_where_their_kind_is() {
        let mut store = with_one();
        store.apply(&json!({
            "apiVersion": "net.example.com/v1", "kind": "Fabric", "metadata": { "name": "core" },
        }));
        let created = |kind: &GroupKind, name: &str| {
            let metadata = &store.get(kind, name).expect("it is there")["metadata"];
            (metadata["namespace"].clone(), metadata["creationTimestamp"].clone())
        };
        let time = json!("1970-01-01T00:00:00Z");
        assert_eq!(created(&application(), "web"), (json!(NAMESPACE), time.clone()));
        assert_eq!(created(&GroupKind::new("net.example.com", "Fabric"), "core"), (Value::Null, time));
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
        store.follow(feed, &GroupKind::new("acme.io", "Widget"), lens);
        assert_eq!(words(&mut store), ["the cluster does not serve it"]);
    }
}
