//! The objects of one cluster and the kinds that it serves.

use std::{collections::BTreeMap, rc::Rc};

use bellwether_engine::{GroupKind, NamespacedName, ServedResource};
use serde_json::{Value, json};

use crate::object::{Object, Stored, identity};

#[derive(Debug)]
pub struct MemoryCluster<O = Object> {
    /// The number of the last change, as in etcd: the resourceVersion of the changed object.
    pub revision: u64,
    /// A watch from an earlier revision is expired.
    pub compacted: u64,
    pub kinds: BTreeMap<GroupKind, ServedResource>,
    pub objects: BTreeMap<(GroupKind, NamespacedName), Rc<O>>,
    /// All changes since the caller last drained the log, oldest first.
    pub log: Vec<LogEntry<O>>,
    /// The number of created objects, from which UIDs are made.
    created: u64,
    uid: fn(u64) -> String,
}

// The derived impl would require `O: Clone`.
impl<O> Clone for MemoryCluster<O> {
    fn clone(&self) -> Self {
        Self { kinds: self.kinds.clone(), objects: self.objects.clone(), log: self.log.clone(), ..*self }
    }
}

#[derive(Debug)]
pub struct LogEntry<O> {
    pub revision: u64,
    /// The object after the change, or its last state if it was deleted.
    pub object: Rc<O>,
    pub gone: bool,
}

// The derived impl would require `O: Clone`.
impl<O> Clone for LogEntry<O> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, object: Rc::clone(&self.object), gone: self.gone }
    }
}

impl<O: Stored> MemoryCluster<O> {
    /// An empty cluster. `uid` returns the UID of the n-th created object, from 1. Two clusters may use the
    /// same UIDs, as after a restore from a backup.
    pub fn new(kinds: BTreeMap<GroupKind, ServedResource>, uid: fn(u64) -> String) -> Self {
        let (objects, log) = (BTreeMap::new(), Vec::new());
        Self { revision: 0, compacted: 0, kinds, objects, log, created: 0, uid }
    }

    pub fn get(&self, kind: &GroupKind, name: &NamespacedName) -> Option<&Rc<O>> {
        self.objects.get(&(kind.clone(), name.clone()))
    }

    /// All objects of a kind, sorted by name.
    pub fn of_kind(&self, kind: &GroupKind) -> impl Iterator<Item = &Rc<O>> {
        self.objects.iter().filter(move |((other, _), _)| other == kind).map(|(_, object)| object)
    }

    /// Stores an object under a new resourceVersion. A changed spec increments the generation; a new object
    /// gets a UID.
    pub fn put(&mut self, mut value: Value) -> Rc<O> {
        let (kind, name) = identity(&value);
        self.revision += 1;
        let before = self.get(&kind, &name).map(|before| before.object());
        let generation = before.map_or(1, |before| {
            let generation = before.metadata()["generation"].as_i64().unwrap_or(1);
            generation + i64::from(value["spec"] != before.value["spec"])
        });
        let uid = before.map(|before| before.uid().to_owned());
        let metadata = &mut value["metadata"];
        metadata["uid"] = json!(uid.unwrap_or_else(|| {
            self.created += 1;
            (self.uid)(self.created)
        }));
        metadata["generation"] = json!(generation);
        metadata["resourceVersion"] = json!(self.revision.to_string());
        let object = Rc::new(O::keep(Object::new(value)));
        self.log.push(LogEntry { revision: self.revision, object: Rc::clone(&object), gone: false });
        self.objects.insert((kind, name), Rc::clone(&object));
        object
    }

    /// Changes an existing object without preconditions. A change without effect makes no new
    /// resourceVersion.
    pub fn edit(&mut self, kind: &GroupKind, name: &NamespacedName, edit: impl FnOnce(&mut Value)) {
        let Some(before) = self.get(kind, name).cloned() else { return };
        let mut value = before.object().value.clone();
        edit(&mut value);
        if value != before.object().value {
            self.put(value);
        }
    }

    /// Removes an object, regardless of finalizers. Its last state gets a new resourceVersion. Returns
    /// whether it existed.
    pub fn remove(&mut self, kind: &GroupKind, name: &NamespacedName) -> bool {
        let Some(object) = self.objects.remove(&(kind.clone(), name.clone())) else { return false };
        self.revision += 1;
        let mut value = object.object().value.clone();
        value["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let object = Rc::new(O::keep(Object::new(value)));
        self.log.push(LogEntry { revision: self.revision, object, gone: true });
        true
    }

    /// Stops serving a kind and removes its objects.
    pub fn unserve(&mut self, kind: &GroupKind) -> Option<ServedResource> {
        let names: Vec<_> = self.of_kind(kind).map(|object| object.object().name.clone()).collect();
        for name in names {
            self.remove(kind, &name);
        }
        self.kinds.remove(kind)
    }
}

/// A served kind with a status subresource. The first version is the preferred one.
pub fn served(versions: &[&str], plural: &str, namespaced: bool) -> ServedResource {
    ServedResource {
        version: versions.first().copied().unwrap_or_default().into(),
        versions: versions.iter().copied().map(Into::into).collect(),
        plural: plural.into(),
        namespaced,
        has_status: true,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn application() -> GroupKind {
        GroupKind::bellwether("Application")
    }

    pub(crate) fn web() -> NamespacedName {
        NamespacedName::new("shop", "web")
    }

    pub(crate) fn manifest(api_version: &str, kind: &str) -> Value {
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "web", "namespace": "shop" } })
    }

    /// A cluster with one Application, shop/web, with the UID `u1`.
    pub(crate) fn cluster() -> MemoryCluster {
        let mut cluster = MemoryCluster::new(BTreeMap::new(), |number| format!("u{number}"));
        cluster.put(manifest("bellwether.dev/v1alpha1", "Application"));
        cluster
    }

    /// The UID, the generation and the resourceVersion.
    pub(crate) fn metadata(cluster: &MemoryCluster) -> (String, i64, u64) {
        let object = cluster.get(&application(), &web()).expect("the object exists");
        (
            object.uid().to_owned(),
            object.metadata()["generation"].as_i64().expect("a number"),
            object.version(),
        )
    }

    #[test]
    fn a_changed_spec_increments_the_generation_and_any_change_the_version() {
        let mut cluster = cluster();
        assert_eq!(metadata(&cluster), ("u1".to_owned(), 1, 1));
        cluster.edit(&application(), &web(), |it| it["status"]["progress"] = json!(50));
        assert_eq!(metadata(&cluster), ("u1".to_owned(), 1, 2));
        cluster.edit(&application(), &web(), |it| it["spec"]["type"] = json!("shop"));
        assert_eq!(metadata(&cluster), ("u1".to_owned(), 2, 3));
        cluster.edit(&application(), &web(), |it| it["spec"]["type"] = json!("shop"));
        assert_eq!(metadata(&cluster), ("u1".to_owned(), 2, 3), "no change");
        cluster.remove(&application(), &web());
        cluster.put(manifest("bellwether.dev/v1alpha1", "Application"));
        assert_eq!(metadata(&cluster), ("u2".to_owned(), 1, 5), "a new object");
    }

    #[test]
    fn the_log_has_past_states() {
        let mut cluster = cluster();
        cluster.edit(&application(), &web(), |it| it["spec"] = json!({ "type": "shop" }));
        cluster.put(manifest("v1", "Service"));
        cluster.unserve(&application());
        let log: Vec<_> =
            cluster.log.iter().map(|entry| (entry.revision, &*entry.object.kind.kind, entry.gone)).collect();
        let kind = "Application";
        assert_eq!(log, [(1, kind, false), (2, kind, false), (3, "Service", false), (4, kind, true)]);
        let at = |revision| cluster.at(&application(), revision).into_keys().collect::<Vec<_>>();
        assert_eq!((at(0), at(2), at(4)), (vec![], vec![web()], vec![]));
        let get_at = |revision| cluster.get_at(&application(), &web(), revision).map(|it| it.version());
        assert_eq!((get_at(0), get_at(1), get_at(3), get_at(4)), (None, Some(1), Some(2), None));
        let since = |revision| -> Vec<_> {
            let states = cluster.since(&application(), &web(), revision);
            states.into_iter().map(|state| state.map(|it| it.version())).collect()
        };
        assert_eq!(since(0), [None, Some(1), Some(2), None]);
        assert_eq!(since(3), [Some(2), None]);
    }

    #[test]
    fn two_clusters_share_nothing() {
        let mut east = cluster();
        let west = east.clone();
        east.edit(&application(), &web(), |it| it["spec"] = json!({ "type": "shop" }));
        assert_eq!((metadata(&east).2, metadata(&west).2), (2, 1));
        assert_eq!((east.log.len(), west.log.len()), (2, 1));
    }
}
