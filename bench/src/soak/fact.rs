//! What matters of a member at one moment.

use std::collections::BTreeMap;

use anyhow::Result;
use bellwether_api::APPLICATION_ANNOTATION;
use bellwether_health::{Context, assess, user::UserRules};
use bellwether_model::{Object, Plan, State};
use jiff::Timestamp;
use serde_json::Value as Json;

use super::{
    cast::Kind,
    rules::{self, IN_FORCE},
};

/// What matters of a member at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) uid: String,
    pub(super) labels: BTreeMap<String, String>,
    /// The Application that it was handed over to.
    pub(super) application: Option<String>,
    /// How it is, under each of the rules that can be in force.
    pub(super) states: [State; IN_FORCE],
    /// Whether its controller has acted on its latest generation.
    pub(super) settled: bool,
    pub(super) deleting: bool,
    pub(super) owners: Vec<Owner>,
    pub(super) generation: i64,
    pub(super) replicas: i64,
}

/// Who owns an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owner {
    pub(super) is_application: bool,
    pub(super) name: String,
    pub(super) uid: String,
}

/// Looks at objects.
pub(super) struct Eye {
    books: [UserRules; IN_FORCE],
}

impl Eye {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { books: rules::books()? })
    }

    /// What matters of an object.
    pub(super) fn look(&self, kind: Kind, object: &Json) -> Result<Fact> {
        let metadata = &object["metadata"];
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let owner = |owner: &Json| Owner {
            is_application: owner["kind"] == "Application"
                && owner["apiVersion"].as_str().is_some_and(|version| version.starts_with("bellwether.dev/")),
            name: text(&owner["name"]),
            uid: text(&owner["uid"]),
        };
        let generation = metadata["generation"].as_i64().unwrap_or(0);
        let observed = object["status"]["observedGeneration"].as_i64();
        Ok(Fact {
            uid: text(&metadata["uid"]),
            labels: labels.map(|(key, value)| (key.clone(), text(value))).collect(),
            application: metadata["annotations"][APPLICATION_ANNOTATION].as_str().map(str::to_owned),
            states: self.states(kind, object)?,
            settled: observed.is_none_or(|observed| observed >= generation),
            deleting: !metadata["deletionTimestamp"].is_null(),
            owners: metadata["ownerReferences"].as_array().into_iter().flatten().map(owner).collect(),
            generation,
            replicas: object["spec"]["replicas"].as_i64().unwrap_or(1),
        })
    }

    fn states(&self, kind: Kind, object: &Json) -> Result<[State; IN_FORCE]> {
        // The items of a list do not say what they are.
        let mut whole = object.clone();
        let place = kind.place();
        let version = if place.group.is_empty() {
            place.version.to_owned()
        } else {
            format!("{}/{}", place.group, place.version)
        };
        whole["apiVersion"] = version.into();
        whole["kind"] = kind.name().into();
        let text = whole.to_string();
        let object = Object::from_json(text.as_bytes(), &Plan::whole())?;
        let state = |rules: &UserRules| {
            let context = Context {
                rules: Some(rules),
                has_status: Some(kind.has_status()),
                ..Context::at(Timestamp::now())
            };
            assess(&object, &context).state
        };
        Ok([0, 1, 2].map(|choice: usize| state(&self.books[choice])))
    }
}
