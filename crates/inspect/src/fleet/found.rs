//! One object in one cluster, reduced to what rows need.

use std::borrow::Cow;

use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_health::{Context, assess};
use bellwether_model::{Map, Object, Plan, State, Value};
use bellwether_tables::{Propagation, last_status_update};

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
            health: verdict.state,
            progress: Some(verdict.progress),
            observed_generation: observed,
            last_update: last_status_update(object.fields()),
        };
        let fields = object.without(&[&["metadata", "managedFields"]]).fields().kept_by(plan);
        let is_secret = GroupKind::new(object.group(), object.kind()).is_secret();
        let fields = if is_secret { fields.kept_by(&metadata()) } else { fields };
        Self { fields, propagation: propagation.variable() }
    }
}

/// Without the last applied configuration, which has the data of a Secret.
fn metadata() -> Plan {
    Plan::all_of(&["metadata"]).with_all(&["apiVersion", "kind"])
}

/// Of an object that a cluster does not have.
pub(super) fn missing() -> Value<'static> {
    absent(Some(false), State::Missing)
}

/// Of an object in a cluster that could not be read.
pub(super) fn unread() -> Value<'static> {
    absent(None, State::Unknown)
}

fn absent(found: Option<bool>, health: State) -> Value<'static> {
    let (stale, progress) = (found.is_none(), found.map(|_| 0));
    Propagation { found, stale, health, progress, observed_generation: None, last_update: None }.variable()
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
