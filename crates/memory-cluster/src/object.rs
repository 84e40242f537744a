//! An object as an API server stores it, and what is read off it at once.

use std::cell::OnceCell;

use bellwether_engine::{GroupKind, Lens, LookContext, NamespacedName, ObservedObject};
use bellwether_model::Object as Decoded;
use serde_json::Value;

/// An object in one of its versions. It does not change.
#[derive(Debug)]
pub struct Object {
    /// Its kind.
    pub kind: GroupKind,
    /// Its name.
    pub name: NamespacedName,
    /// All of it.
    pub value: Value,
    text: OnceCell<Box<[u8]>>,
}

/// What a cluster keeps of each version of an object: the object itself, or the object together with what its user works
/// out of it.
pub trait Stored {
    /// What is kept of an object.
    fn keep(object: Object) -> Self;

    /// The object.
    fn object(&self) -> &Object;
}

impl Stored for Object {
    fn keep(object: Object) -> Self {
        object
    }

    fn object(&self) -> &Object {
        self
    }
}

impl Object {
    /// The object of this manifest.
    pub fn new(value: Value) -> Self {
        let (kind, name) = identity(&value);
        Self { kind, name, value, text: OnceCell::new() }
    }

    /// Its `metadata`.
    pub fn metadata(&self) -> &Value {
        &self.value["metadata"]
    }

    /// Its UID; empty if it has none yet.
    pub fn uid(&self) -> &str {
        self.metadata()["uid"].as_str().unwrap_or_default()
    }

    /// Its resource version as a number.
    pub fn version(&self) -> u64 {
        let version = self.metadata()["resourceVersion"].as_str();
        version.and_then(|version| version.parse().ok()).unwrap_or_default()
    }

    /// Whether it has a deletion timestamp.
    pub fn is_deleting(&self) -> bool {
        !self.metadata()["deletionTimestamp"].is_null()
    }

    /// The UIDs in its owner references, in their order.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        let owners = self.metadata()["ownerReferences"].as_array().into_iter().flatten();
        owners.map(|owner| owner["uid"].as_str().unwrap_or_default())
    }

    /// Its JSON.
    pub fn text(&self) -> &[u8] {
        self.text.get_or_init(|| self.value.to_string().into_bytes().into())
    }

    /// The facts that a lens keeps of it; none if it cannot be decoded.
    pub fn seen(&self, lens: &Lens, light: LookContext) -> Option<(NamespacedName, ObservedObject)> {
        let decoded = Decoded::from_json(self.text(), lens.plan()).ok()?;
        Some(lens.look(&decoded, light))
    }
}

/// The kind and name of a manifest.
pub fn identity(object: &Value) -> (GroupKind, NamespacedName) {
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let metadata = &object["metadata"];
    (
        GroupKind::new(group, &text(&object["kind"])),
        NamespacedName::new(&text(&metadata["namespace"]), &text(&metadata["name"])),
    )
}
