//! An object as an API server stores it, and what is easily read off it.

use std::cell::{OnceCell, RefCell};

use bellwether_api::{Application, Rollup};
use bellwether_engine::{Kind, Name};
use bellwether_health::{Context, Verdict};
use bellwether_model::{Object as Read, Plan};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// An object in one of its versions. It does not change; what is worked out of it is kept.
#[derive(Debug)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// All of it.
    pub value: Value,
    text: OnceCell<Box<[u8]>>,
    application: OnceCell<Option<Box<Application>>>,
    rollup: OnceCell<Option<Box<Rollup>>>,
    verdict: RefCell<Option<(Timestamp, Option<bool>, Verdict)>>,
}

impl Object {
    /// The object that is written so.
    pub fn new(value: Value) -> Self {
        let (kind, name) = identity(&value);
        let (text, application, rollup) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { kind, name, value, text, application, rollup, verdict: RefCell::default() }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Value {
        &self.value["metadata"]
    }

    /// Its identity.
    pub fn uid(&self) -> &str {
        self.metadata()["uid"].as_str().unwrap_or_default()
    }

    /// Its version.
    pub fn version(&self) -> u64 {
        let version = self.metadata()["resourceVersion"].as_str();
        version.and_then(|version| version.parse().ok()).unwrap_or_default()
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata().get("deletionTimestamp").is_some()
    }

    /// As it goes over the wire.
    pub fn text(&self) -> &[u8] {
        self.text.get_or_init(|| self.value.to_string().into_bytes().into())
    }

    /// What it says, if it is an Application.
    pub fn application(&self) -> Option<&Application> {
        let read = || serde_json::from_value(self.value.clone()).ok();
        self.application
            .get_or_init(|| (self.kind == Kind::own("Application")).then(read).flatten())
            .as_deref()
    }

    /// What it says, if it is a Rollup.
    pub fn rollup(&self) -> Option<&Rollup> {
        let read = || serde_json::from_value(self.value.clone()).ok();
        self.rollup.get_or_init(|| (self.kind == Kind::own("Rollup")).then(read).flatten()).as_deref()
    }

    /// How it is at this time, where its kind has a status or has none.
    pub fn verdict(&self, now: Timestamp, has_status: Option<bool>) -> Verdict {
        if let Some((then, had_status, verdict)) = &*self.verdict.borrow()
            && *then <= now
            && *had_status == has_status
            && verdict.later.as_ref().is_none_or(|later| now < later.at)
        {
            return verdict.clone();
        }
        let context = Context { has_status, ..Context::at(now) };
        let verdict = match Read::from_json(self.text(), &Plan::whole()) {
            Ok(object) => bellwether_health::assess(&object, &context),
            Err(error) => unreachable!("what was written can be read: {error}"),
        };
        *self.verdict.borrow_mut() = Some((now, has_status, verdict.clone()));
        verdict
    }

    /// The uids of those that own it, in their order.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        let owners = self.metadata()["ownerReferences"].as_array().into_iter().flatten();
        owners.map(|owner| owner["uid"].as_str().unwrap_or_default())
    }

    /// Whether it is a Pod that checks the health of an Application.
    pub fn is_check(&self) -> bool {
        self.kind == Kind::pod() && !self.metadata()["labels"]["bellwether.dev/health-check"].is_null()
    }
}

/// The kind and name of an object.
pub fn identity(object: &Value) -> (Kind, Name) {
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let metadata = &object["metadata"];
    (
        Kind::new(group, &text(&object["kind"])),
        Name::new(&text(&metadata["namespace"]), &text(&metadata["name"])),
    )
}

/// The value after a merge patch, as RFC 7386 has it.
pub fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    for (key, patch) in patch {
        if patch.is_null() {
            value.as_object_mut().map(|fields| fields.remove(key));
        } else {
            merge(&mut value[key], patch);
        }
    }
}
