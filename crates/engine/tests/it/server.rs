//! A cluster's memory: objects as JSON, with the identities, versions and generations that an API server gives them.

use std::collections::BTreeMap;

use bellwether_engine::{Change, Kind, Name, Outcome, Served, Slot, Version};
pub(crate) use bellwether_simulation::object::{identity, merge};
use bellwether_simulation::objects;
use serde_json::{Value, json};

/// What a feed is told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Served(Served),
    Unreadable(bellwether_engine::Unreadable),
    Listing,
    Set(Value),
    Gone(Name),
    Listed,
}

/// The kinds and objects of one cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Server {
    pub(crate) kinds: BTreeMap<Kind, Served>,
    pub(crate) objects: BTreeMap<(Kind, Name), Value>,
    /// What has changed and has not been told yet.
    pub(crate) changes: Vec<(Kind, Told)>,
    /// How many changes were made that changed nothing.
    pub(crate) vain: usize,
    version: u64,
}

impl Server {
    /// One that serves the kinds of the stories, and has no objects.
    pub(crate) fn new() -> Self {
        Self { kinds: objects::kinds(), ..Self::default() }
    }

    /// Serves a kind no longer: its objects go with it.
    pub(crate) fn unserve(&mut self, kind: &Kind) {
        self.kinds.remove(kind);
        self.objects.retain(|(other, _), _| other != kind);
    }

    pub(crate) fn get(&self, kind: &Kind, name: &Name) -> Option<&Value> {
        self.objects.get(&(kind.clone(), name.clone()))
    }

    /// Creates or replaces an object, as its user would: what is not given of its status stays, and another spec is
    /// another generation.
    pub(crate) fn put(&mut self, mut object: Value) -> Version {
        let (kind, name) = identity(&object);
        self.version += 1;
        let before = self.get(&kind, &name).cloned().unwrap_or(Value::Null);
        if object.get("status").is_none() && !before["status"].is_null() {
            object["status"] = before["status"].clone();
        }
        let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
        let generation = if object["spec"] == before["spec"] { generation.max(1) } else { generation + 1 };
        let metadata = &mut object["metadata"];
        metadata["uid"] = match &before["metadata"]["uid"] {
            Value::Null => format!("u{}", self.version).into(),
            uid => uid.clone(),
        };
        metadata["generation"] = generation.into();
        metadata["resourceVersion"] = self.version.to_string().into();
        self.changes.push((kind.clone(), Told::Set(object.clone())));
        self.objects.insert((kind, name), object);
        Version::new(&self.version.to_string())
    }

    /// Changes an object in place. One that is not there stays so.
    pub(crate) fn edit(&mut self, kind: &Kind, name: &Name, edit: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.get(kind, name).cloned() {
            edit(&mut object);
            self.put(object);
        }
    }

    pub(crate) fn remove(&mut self, kind: &Kind, name: &Name) {
        if self.objects.remove(&(kind.clone(), name.clone())).is_some() {
            self.version += 1;
            self.changes.push((kind.clone(), Told::Gone(name.clone())));
        }
    }

    /// Makes a change, as an API server would.
    pub(crate) fn perform(&mut self, slot: &Slot, change: &Change) -> Outcome {
        let (kind, name) = (&slot.object.kind, &slot.object.name);
        let Some(mut object) = self.get(kind, name).cloned() else {
            return match change {
                Change::Create { manifest, .. } if !has_image(manifest) => {
                    Outcome::Refused("spec.containers[0].image: Required value".into())
                }
                Change::Create { dry_run: true, .. } => Outcome::Done(None),
                Change::Create { manifest, .. } => Outcome::Done(Some(self.put((**manifest).clone()))),
                _ => Outcome::Absent,
            };
        };
        let (is_uid, is_version) = {
            let metadata = &object["metadata"];
            let (uid, version) = (metadata["uid"].clone(), metadata["resourceVersion"].clone());
            (move |other: &str| uid == other, move |other: &Version| version == other.as_str())
        };
        match change {
            Change::Status { uid, version, patch, .. } if is_uid(uid) && is_version(version) => {
                let before = object["status"].take();
                let mut status = before.clone();
                merge(&mut status, patch);
                self.vain += usize::from(status == before);
                object["status"] = status;
                Outcome::Done(Some(self.put(object)))
            }
            Change::Owners { uid, version, owners, requires } if is_uid(uid) && is_version(version) => {
                let stays = |owner: &bellwether_engine::Exists| {
                    let app = self.get(&owner.kind, &owner.name);
                    app.is_some_and(|app| {
                        app["metadata"]["uid"] == *owner.uid
                            && app["metadata"].get("deletionTimestamp").is_none()
                    })
                };
                if requires.as_ref().is_some_and(|owner| !stays(owner)) {
                    return Outcome::Conflict;
                }
                let owners = json!(**owners);
                self.vain += usize::from(owners == object["metadata"]["ownerReferences"]);
                object["metadata"]["ownerReferences"] = owners;
                Outcome::Done(Some(self.put(object)))
            }
            Change::Delete { uid } if is_uid(uid) => {
                self.remove(kind, name);
                Outcome::Done(None)
            }
            _ => Outcome::Conflict,
        }
    }

    /// All objects of a kind, as a list has them.
    pub(crate) fn list(&self, kind: &Kind) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |((other, _), _)| other == kind).map(|(_, object)| object)
    }
}

fn has_image(pod: &Value) -> bool {
    pod["spec"]["containers"][0]["image"].as_str().is_some_and(|image| !image.is_empty())
}
