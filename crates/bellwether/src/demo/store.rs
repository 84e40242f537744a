//! The objects of a simulated cluster, and the feed events of their changes.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
};

use bellwether_engine::{
    ClusterSource, FeedEvent, FeedId, GroupKind, Lens, NamespacedName, ObservedObject, Outcome,
    ProjectionContext, ServedResource, Slot, Unreadable, Write,
};
use bellwether_memory_cluster::{MemoryCluster, Object, identity, merge, served};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Of all objects except those of the platform.
pub(super) const NAMESPACE: &str = "default";

struct KindEntry {
    group: &'static str,
    kind: &'static str,
    version: &'static str,
    plural: &'static str,
    /// Of all objects of the kind; empty if it is cluster-scoped.
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
    known("bellwether.dev", "BindingPolicy", "v1alpha1", "bindingpolicies", ""),
    known("bellwether.dev", "StatusCollector", "v1alpha1", "statuscollectors", ""),
    known("bellwether.dev", "CombinedStatus", "v1alpha1", "combinedstatuses", NAMESPACE),
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

#[derive(Debug)]
pub(super) struct Store {
    cluster: MemoryCluster,
    feeds: BTreeMap<FeedId, Arc<Lens>>,
    /// Events that were not taken yet. Changes in the log of the cluster are newer.
    events: Vec<(FeedId, FeedEvent)>,
    now: Timestamp,
}

impl Store {
    /// Empty.
    pub(super) fn new(now: Timestamp) -> Self {
        let kinds = KINDS.iter().map(|known| {
            let kind = GroupKind::new(known.group, known.kind);
            let served = served(&[known.version], known.plural, !known.namespace.is_empty());
            // All of a CombinedStatus is a status.
            let has_status = known.kind != "CombinedStatus";
            (kind, ServedResource { has_status, ..served })
        });
        // Ascending: the simulated controllers compare ages by UID.
        let uid = |number| format!("00000000-0000-4000-8000-{number:012x}");
        let cluster = MemoryCluster::new(kinds.collect(), uid);
        Self { cluster, feeds: BTreeMap::new(), events: Vec::new(), now }
    }

    pub(super) fn set_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// As discovery reports them.
    pub(super) fn kinds(&self) -> HashMap<GroupKind, ServedResource> {
        self.cluster.kinds.clone().into_iter().collect()
    }

    /// In whole seconds, as in `metav1.Time`.
    pub(super) fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The resourceVersion of the last change.
    pub(super) fn revision(&self) -> u64 {
        self.cluster.revision
    }

    pub(super) fn get(&self, kind: &GroupKind, name: &str) -> Option<&Value> {
        self.cluster.get(kind, &located(kind, name)).map(|object| &object.value)
    }

    /// By name.
    pub(super) fn all(&self, kind: &GroupKind) -> Vec<Value> {
        self.cluster.of_kind(kind).map(|object| object.value.clone()).collect()
    }

    /// Creates the object, or merges the manifest into it.
    pub(super) fn apply(&mut self, manifest: &Value) {
        let (kind, name) = identity(manifest);
        if self.get(&kind, &name.name).is_some() {
            self.patch(&kind, &name.name, manifest);
        } else {
            self.create(manifest.clone());
        }
    }

    /// Creates an object with its creation time and namespace.
    pub(super) fn create(&mut self, mut object: Value) {
        merge(&mut object, &json!({ "metadata": { "creationTimestamp": self.time() } }));
        let namespace = namespace(&identity(&object).0);
        if !namespace.is_empty() {
            merge(&mut object, &json!({ "metadata": { "namespace": namespace } }));
        }
        self.cluster.put(object);
    }

    /// Merges a patch into an object, spec and status alike.
    pub(super) fn patch(&mut self, kind: &GroupKind, name: &str, patch: &Value) {
        self.cluster.edit(kind, &located(kind, name), |object| merge(object, patch));
    }

    /// Deletes an object. A Pod gets a deletion timestamp, and the kubelet removes it later.
    pub(super) fn delete(&mut self, kind: &GroupKind, name: &str) {
        let time = self.time();
        // A missing object is not an error.
        let _ = self.cluster.delete(kind, &located(kind, name), None, &time);
    }

    /// Removes an object at once.
    pub(super) fn remove(&mut self, kind: &GroupKind, name: &str) {
        self.cluster.remove(kind, &located(kind, name));
    }

    /// Deletes the objects whose owners were all deleted.
    pub(super) fn collect_garbage(&mut self) {
        let orphans = self.cluster.garbage(|_| false).into_iter();
        for garbage in orphans.filter(|it| it.solid.is_empty() && !it.object.is_deleting()) {
            self.delete(&garbage.object.kind, &garbage.object.name.name);
        }
    }

    pub(super) fn take_events(&mut self) -> Vec<(FeedId, FeedEvent)> {
        self.queue_changes();
        mem::take(&mut self.events)
    }

    /// Queues an event for each change and each feed of its kind.
    fn queue_changes(&mut self) {
        for entry in mem::take(&mut self.cluster.log) {
            let object = &entry.object;
            for (feed, lens) in self.feeds.iter().filter(|(_, lens)| *lens.kind() == object.kind) {
                let event = if entry.gone {
                    Some(FeedEvent::Deleted(object.name.clone()))
                } else {
                    self.observe(object, lens).map(|(name, it)| FeedEvent::Applied(name, Box::new(it)))
                };
                self.events.extend(event.map(|event| (*feed, event)));
            }
        }
    }

    pub(super) fn observed(&self, kind: &GroupKind, lens: &Lens) -> Vec<(NamespacedName, ObservedObject)> {
        self.cluster.of_kind(kind).filter_map(|object| self.observe(object, lens)).collect()
    }

    fn observe(&self, object: &Object, lens: &Lens) -> Option<(NamespacedName, ObservedObject)> {
        let has_status = self.cluster.kinds.get(&object.kind).map(|served| served.has_status);
        object.seen(lens, ProjectionContext { now: self.now, has_status })
    }

    /// Makes a change of the engine under its preconditions.
    pub(super) fn write(&mut self, slot: &Slot, change: &Write) -> Outcome {
        let time = self.time();
        self.cluster.write(slot, change, &time)
    }
}

/// Queues a list when a kind is followed. Changes are queued by [`Store::take_events`].
impl ClusterSource for Store {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        let Some(served) = self.served(kind) else {
            self.events.push((feed, FeedEvent::Unreadable(Unreadable::NotServed)));
            return;
        };
        // The list has the changes so far.
        self.queue_changes();
        let applied =
            self.observed(kind, &lens).into_iter().map(|(name, it)| FeedEvent::Applied(name, Box::new(it)));
        let all = [FeedEvent::Served(served), FeedEvent::ListStarted]
            .into_iter()
            .chain(applied)
            .chain([FeedEvent::ListCompleted]);
        self.events.extend(all.map(|event| (feed, event)));
        self.feeds.insert(feed, lens);
    }

    fn leave(&mut self, feed: FeedId) {
        self.feeds.remove(&feed);
        self.events.retain(|(other, _)| *other != feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.cluster.kinds.get(kind).cloned()
    }
}

fn located(kind: &GroupKind, name: &str) -> NamespacedName {
    NamespacedName::new(namespace(kind), name)
}

/// Of all objects of a kind.
fn namespace(kind: &GroupKind) -> &'static str {
    let known = KINDS.iter().find(|known| *known.group == *kind.group && *known.kind == *kind.kind);
    known.map_or(NAMESPACE, |known| known.namespace)
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Effect, Engine};

    use super::*;

    fn application() -> GroupKind {
        GroupKind::bellwether("Application")
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

    /// The queued events, in short.
    fn events(store: &mut Store) -> Vec<String> {
        let text = |(_, event): (FeedId, FeedEvent)| match event {
            FeedEvent::Applied(name, object) => {
                format!("{} {}", name.name, object.facts.resource_version.as_str())
            }
            FeedEvent::Deleted(name) => format!("{} deleted", name.name),
            FeedEvent::Served(served) => served.plural.to_string(),
            FeedEvent::Unreadable(why) => why.to_string(),
            event => format!("{event:?}"),
        };
        store.take_events().into_iter().map(text).collect()
    }

    #[test]
    fn objects_get_the_namespace_of_their_kind() {
        let mut store = with_one();
        store.apply(&json!({
            "apiVersion": "net.example.com/v1", "kind": "Fabric", "metadata": { "name": "core" },
        }));
        let created = |kind: &GroupKind, name: &str| {
            let metadata = &store.get(kind, name).expect("it exists")["metadata"];
            (metadata["namespace"].clone(), metadata["creationTimestamp"].clone())
        };
        let time = json!("1970-01-01T00:00:00Z");
        assert_eq!(created(&application(), "web"), (json!(NAMESPACE), time.clone()));
        assert_eq!(created(&GroupKind::new("net.example.com", "Fabric"), "core"), (Value::Null, time));
    }

    #[test]
    fn a_feed_has_the_list_and_the_changes_of_its_kind() {
        let mut store = with_one();
        let follows =
            Engine::new().step(Timestamp::UNIX_EPOCH, []).into_iter().find_map(|effect| match effect {
                Effect::Follow { feed, kind, lens, .. } if kind == application() => Some((feed, lens)),
                _ => None,
            });
        let (feed, lens) = follows.expect("the engine follows Applications");
        store.follow(feed, &application(), Arc::clone(&lens));
        assert_eq!(events(&mut store), ["applications", "ListStarted", "web 1", "ListCompleted"]);
        store.patch(&application(), "web", &json!({ "spec": { "type": "shop" } }));
        store.apply(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" } }));
        store.delete(&application(), "web");
        assert_eq!(events(&mut store), ["web 2", "web deleted"], "of no other kind");
        store.leave(feed);
        store.apply(&manifest());
        assert_eq!(events(&mut store), [""; 0]);
        store.follow(feed, &GroupKind::new("acme.io", "Widget"), lens);
        assert_eq!(events(&mut store), ["kind not served by the cluster"]);
    }
}
