//! The API server of the tests: objects in memory, and a log of changes for watches.

use std::{
    mem,
    ops::{Deref, DerefMut},
    rc::Rc,
};

use bellwether_engine::{GroupKind, NamespacedName, Outcome, ServedResource, Slot, Unreadable, Write};
use bellwether_memory_cluster::{LogEntry, MemoryCluster};
pub(crate) use bellwether_simulation::object::{identity, merge};
use bellwether_simulation::{object::Object, objects};
use serde_json::Value;

/// Pods are deleted at once: no kubelet runs them.
const DELETED: &str = "2026-11-14T10:00:00Z";

#[derive(Clone, Debug)]
pub(crate) enum FeedMessage {
    Served(ServedResource),
    Unreadable(Unreadable),
    Listing,
    Set(Rc<Object>),
    Gone(NamespacedName),
    Listed,
}

#[derive(Clone, Debug)]
pub(crate) struct Server {
    cluster: MemoryCluster<Object>,
    pub(crate) no_op_writes: usize,
}

impl Deref for Server {
    type Target = MemoryCluster<Object>;

    fn deref(&self) -> &Self::Target {
        &self.cluster
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cluster
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with_uids(|number| format!("u{number}"))
    }

    /// `uid` returns the UID of the n-th created object.
    pub(crate) fn with_uids(uid: fn(u64) -> String) -> Self {
        Self { cluster: MemoryCluster::new(objects::kinds(), uid), no_op_writes: 0 }
    }

    pub(crate) fn get(&self, kind: &GroupKind, name: &NamespacedName) -> Option<&Value> {
        self.cluster.get(kind, name).map(|object| &object.value)
    }

    pub(crate) fn list(&self, kind: &GroupKind) -> impl Iterator<Item = &Value> {
        self.of_kind(kind).map(|object| &object.value)
    }

    /// Like a user: without a status, the stored one stays.
    pub(crate) fn put(&mut self, mut object: Value) {
        let (kind, name) = identity(&object);
        let status = self.get(&kind, &name).map(|before| &before["status"]).filter(|it| !it.is_null());
        if let (None, Some(status)) = (object.get("status"), status) {
            object["status"] = status.clone();
        }
        self.cluster.put(object);
    }

    pub(crate) fn perform(&mut self, slot: &Slot, change: &Write) -> Outcome {
        let before = self.revision;
        let outcome = self.write(slot, change, DELETED);
        match (&outcome, change) {
            (Outcome::Written(_), Write::Delete { .. }) => {
                self.remove(&slot.object.kind, &slot.object.name);
            }
            (Outcome::Written(Some(_)), _) => self.no_op_writes += usize::from(self.revision == before),
            _ => {}
        }
        outcome
    }

    pub(crate) fn changes(&mut self) -> impl Iterator<Item = (GroupKind, FeedMessage)> + use<> {
        mem::take(&mut self.log).into_iter().map(|LogEntry { object, gone, .. }| {
            let kind = object.kind.clone();
            (kind, if gone { FeedMessage::Gone(object.name.clone()) } else { FeedMessage::Set(object) })
        })
    }
}
