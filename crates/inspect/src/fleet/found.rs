//! One object in one cluster, reduced to what rows need.

use std::borrow::Cow;

use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_health::{Context, assess};
use bellwether_model::{Map, Object, Plan, State, Value};

use super::{ClusterToRead, ObjectKey};

/// An object that was found.
#[derive(Debug)]
pub(super) struct FoundObject {
    /// The object as collectors read it, with its status.
    pub(super) fields: Value<'static>,
    pub(super) propagation: Value<'static>,
}

impl FoundObject {
    pub(super) fn of(object: &Object<'_>, context: &Context<'_>, plan: &Plan) -> Self {
        let verdict = assess(object, context);
        let observed = object.at("status.observedGeneration").and_then(Value::as_int);
        let propagation = Propagation {
            found: Some(true),
            stale: false,
            updated: last_status_update(object),
            observed_generation: observed,
            health: verdict.state,
            progress: Some(verdict.progress),
        };
        let fields = object.without(&[&["metadata", "managedFields"]]).fields().kept_by(plan);
        Self { fields, propagation: propagation.value() }
    }
}

/// When the status was written last, by the managed fields; of a kind without a status subresource, when the
/// object was. RFC 3339 in UTC sorts like the time.
fn last_status_update(object: &Object<'_>) -> Option<String> {
    let writes = object.at("metadata.managedFields").and_then(Value::as_list).unwrap_or_default();
    let time = |write: &Value<'_>| write.get("time").and_then(Value::as_text).map(str::to_owned);
    let is_status = |write: &&Value<'_>| write.get("subresource").and_then(Value::as_text) == Some("status");
    let of_status = writes.iter().filter(is_status).filter_map(time).max();
    of_status.or_else(|| writes.iter().filter_map(time).max())
}

/// What is known of an object in a cluster.
struct Propagation {
    /// None if the cluster could not be read.
    found: Option<bool>,
    stale: bool,
    updated: Option<String>,
    observed_generation: Option<i64>,
    health: State,
    progress: Option<u8>,
}

impl Propagation {
    fn value(self) -> Value<'static> {
        map([
            ("found", self.found.map_or(Value::Null, Value::Bool)),
            ("stale", Value::Bool(self.stale)),
            (
                "lastReturnedUpdateTimestamp",
                self.updated.map_or(Value::Null, |time| Value::Text(time.into())),
            ),
            ("observedGeneration", self.observed_generation.map_or(Value::Null, Value::Int)),
            ("health", Value::Text(self.health.name().into())),
            ("progress", self.progress.map_or(Value::Null, |progress| Value::Int(progress.into()))),
        ])
    }
}

/// Of an object that a cluster does not have.
pub(super) fn missing() -> Value<'static> {
    let (found, health) = (Some(false), State::Missing);
    Propagation { found, stale: false, updated: None, observed_generation: None, health, progress: Some(0) }
        .value()
}

/// Of an object in a cluster that could not be read.
pub(super) fn unread() -> Value<'static> {
    let (stale, health) = (true, State::Unknown);
    Propagation { found: None, stale, updated: None, observed_generation: None, health, progress: None }
        .value()
}

/// The variable `obj` of an object that no cluster in question has.
pub(super) fn identity(key: &ObjectKey) -> Value<'static> {
    let NamespacedName { namespace, name } = &key.name;
    let GroupKind { kind, .. } = &key.kind;
    let text = |text: &str| Value::Text(text.to_owned().into());
    let mut metadata = vec![("name", text(name))];
    if !namespace.is_empty() {
        metadata.push(("namespace", text(namespace)));
    }
    map([("kind", text(kind)), ("metadata", map(metadata))])
}

/// The variable `inventory`.
pub(super) fn inventory(cluster: &ClusterToRead, uid: Option<&str>) -> Value<'static> {
    let labels = cluster
        .labels
        .iter()
        .map(|(key, value)| (Cow::Owned(key.clone()), Value::Text(value.clone().into())));
    map([
        ("name", Value::Text(cluster.name.to_string().into())),
        ("labels", Value::Map(labels.collect())),
        ("annotations", Value::Map(Map::default())),
        ("uid", uid.map_or(Value::Null, |uid| Value::Text(uid.to_owned().into()))),
    ])
}

pub(super) fn map(fields: impl IntoIterator<Item = (&'static str, Value<'static>)>) -> Value<'static> {
    Value::Map(fields.into_iter().map(|(key, value)| (Cow::Borrowed(key), value)).collect())
}

/// The key of an object, whose namespace counts only if its kind has one.
pub(super) fn key(kind: &GroupKind, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { kind: kind.clone(), name: NamespacedName::new(namespace, name) }
}
