//! A stored object.

use std::cell::OnceCell;

use bellwether_engine::{GroupKind, Lens, NamespacedName, ObservedObject, ProjectionContext};
use bellwether_model::Object as Decoded;
use serde_json::Value;

/// An object at one resourceVersion. Immutable.
#[derive(Debug)]
pub struct Object {
    pub kind: GroupKind,
    pub name: NamespacedName,
    /// The whole object.
    pub value: Value,
    text: OnceCell<Box<[u8]>>,
}

/// What a cluster stores for each version of an object: the object, or the object with data derived from it.
pub trait Stored {
    fn keep(object: Object) -> Self;

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
    pub fn new(value: Value) -> Self {
        let (kind, name) = identity(&value);
        Self { kind, name, value, text: OnceCell::new() }
    }

    pub fn metadata(&self) -> &Value {
        &self.value["metadata"]
    }

    /// Empty before the object is stored.
    pub fn uid(&self) -> &str {
        self.metadata()["uid"].as_str().unwrap_or_default()
    }

    /// The resourceVersion as a number; 0 before the object is stored.
    pub fn version(&self) -> u64 {
        let version = self.metadata()["resourceVersion"].as_str();
        version.and_then(|version| version.parse().ok()).unwrap_or_default()
    }

    pub fn is_deleting(&self) -> bool {
        !self.metadata()["deletionTimestamp"].is_null()
    }

    /// The UIDs in the owner references, in order.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        let owners = self.metadata()["ownerReferences"].as_array().into_iter().flatten();
        owners.map(|owner| owner["uid"].as_str().unwrap_or_default())
    }

    /// The JSON of the object, encoded once.
    pub fn text(&self) -> &[u8] {
        self.text.get_or_init(|| self.value.to_string().into_bytes().into())
    }

    /// The facts that a lens keeps of the object. `None` if decoding fails.
    pub fn seen(&self, lens: &Lens, light: ProjectionContext) -> Option<(NamespacedName, ObservedObject)> {
        let decoded = Decoded::from_json(self.text(), lens.plan()).ok()?;
        Some(lens.project(&decoded, light))
    }
}

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
