//! The projection of objects of one kind to facts: which fields to decode, and the rules for the health
//! verdict.

use std::sync::Arc;

use bellwether_api::{
    APPLICATION_ANNOTATION, Application, BindingPolicy, HealthRule, Rollup, StatusCollector,
};
use bellwether_health::{Context, generation, user::UserRules};
use bellwether_model::{LAST_APPLIED, Object, Plan, Value};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;

use crate::{
    app_k8s_io::{self, AppK8sIoSpec},
    component_conditions::{self, ComponentConditions},
    dialect::Dialect,
    facts::{Facts, Labels, ObservedObject, OwnManifest, OwnObject, OwnerReference, ResourceVersion},
    id::{GroupKind, NamespacedName},
    kind_facts,
    requested_fields::{RequestedFields, RequestedValues},
};

/// Turns objects of a kind into facts while they are decoded, so that the object itself need not be kept.
#[derive(Clone, Debug)]
pub struct Lens {
    kind: GroupKind,
    plan: Plan,
    rules: Arc<UserRules>,
    requested: Arc<RequestedFields>,
    /// Fields for [`RequestedValues`].
    values: Option<Plan>,
}

/// Rules are compared by identity, not by content.
impl PartialEq for Lens {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.requested == other.requested && Arc::ptr_eq(&self.rules, &other.rules)
    }
}

/// What a lens needs besides the object.
#[derive(Clone, Copy, Debug)]
pub struct ProjectionContext {
    pub now: Timestamp,
    /// Whether the kind has a status subresource; `None` before discovery has answered.
    pub has_status: Option<bool>,
}

impl Lens {
    /// HealthRules take precedence over built-in rules.
    pub fn new(kind: &GroupKind, rules: Arc<UserRules>) -> Self {
        Self::with(kind, rules, Arc::default())
    }

    /// Also keeps what `requested` asks for.
    pub fn with(kind: &GroupKind, rules: Arc<UserRules>, requested: Arc<RequestedFields>) -> Self {
        let mut plan = if is_bellwether(kind) {
            Plan::whole()
        } else {
            bellwether_health::plan(&kind.group, &kind.kind)
        };
        if is_app_k8s_io(kind) {
            for path in AppK8sIoSpec::FIELDS_READ {
                plan.keep(path);
            }
        }
        rules.add_fields_for(&kind.group, &kind.kind, &mut plan);
        for field in
            ["uid", "resourceVersion", "generation", "labels", "ownerReferences", "deletionTimestamp"]
        {
            plan.keep(&["metadata", field]);
        }
        plan.keep(&["metadata", "annotations", APPLICATION_ANNOTATION]);
        plan.keep(&["status", "observedGeneration"]);
        kind_facts::keep(kind, &mut plan);
        requested.keep(&mut plan);
        // Even a collector that names it does not get it.
        if kind.is_secret() {
            plan.leave_out(&["metadata", "annotations", LAST_APPLIED]);
        }
        Self { kind: kind.clone(), plan, rules, values: requested.plan_of_paths(), requested }
    }

    pub fn has_same_rules(&self, other: &Self) -> bool {
        self.rules.same_for(&other.rules, &self.kind.group, &self.kind.kind)
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn kind(&self) -> &GroupKind {
        &self.kind
    }

    /// Whether the metadata of an object is all that [`project`](Self::project) reads. `has_status`: whether
    /// the kind has a status subresource. Always true for Secrets, whatever rules and users of the feed ask
    /// for.
    pub fn reads_metadata_only(&self, has_status: bool) -> bool {
        if self.kind.is_secret() {
            return true;
        }
        // It is kept of every kind. A kind without a status subresource that no rule reads a status of, such
        // as Secret, has none.
        let mut plan = self.plan.clone();
        plan.leave_out(&["status", "observedGeneration"]);
        !has_status && plan.keeps_only_metadata()
    }

    /// `object` must be decoded with [`plan`](Self::plan).
    pub fn project(&self, object: &Object<'_>, cx: ProjectionContext) -> (NamespacedName, ObservedObject) {
        let context =
            Context { now: cx.now, rules: Some(&self.rules), builtin: true, has_status: cx.has_status };
        let text = |path: &str| object.at(path).and_then(Value::as_text);
        let verdict = bellwether_health::assess(object, &context);
        let facts = Facts {
            uid: text("metadata.uid").unwrap_or_default().into(),
            resource_version: ResourceVersion::new(text("metadata.resourceVersion").unwrap_or_default()),
            labels: labels(object),
            application: annotation(object).map(Into::into),
            owners: owners(object),
            settled: generation::is_latest_observed(object, &verdict),
            deleting: text("metadata.deletionTimestamp").is_some(),
            verdict,
            kind_facts: kind_facts::read(&self.kind, object),
            component_conditions: self
                .requested
                .conditions
                .then(|| Box::new(self.component_conditions(object))),
            values: self.values.as_ref().map(|plan| {
                let (requested, fields) = (Arc::clone(&self.requested), object.fields().kept_by(plan));
                Box::new(RequestedValues { requested, fields })
            }),
        };
        (
            NamespacedName::new(object.namespace(), object.name()),
            ObservedObject { facts, own: own_object(&self.kind, object) },
        )
    }
}

impl Lens {
    /// An Application publishes none of these conditions: another tool wrote those in its status.
    fn component_conditions(&self, object: &Object<'_>) -> ComponentConditions {
        let read = component_conditions::read(object);
        let is_application = Dialect::of(&self.kind) == Some(Dialect::Bellwether);
        if is_application { ComponentConditions { conditions: Box::default(), ..read } } else { read }
    }
}

fn is_bellwether(kind: &GroupKind) -> bool {
    *kind.group == *bellwether_api::GROUP
}

fn is_app_k8s_io(kind: &GroupKind) -> bool {
    Dialect::of(kind) == Some(Dialect::AppK8sIo)
}

fn labels(object: &Object<'_>) -> Labels {
    let labels = object.at("metadata.labels").and_then(Value::as_map);
    labels
        .into_iter()
        .flat_map(bellwether_model::Map::iter)
        .filter_map(|(key, value)| Some((key.into(), value.as_text()?.into())))
        .collect()
}

/// An empty annotation names no Application.
fn annotation<'o>(object: &'o Object<'_>) -> Option<&'o str> {
    let name = object.at("metadata.annotations")?.get(APPLICATION_ANNOTATION)?.as_text()?;
    (!name.trim().is_empty()).then_some(name)
}

fn owners(object: &Object<'_>) -> Box<[OwnerReference]> {
    let owners = object.at("metadata.ownerReferences").and_then(Value::as_list).unwrap_or_default();
    let owner = |owner: &Value<'_>| {
        let text = |field: &str| owner.get(field).and_then(Value::as_text).unwrap_or_default().into();
        let flag = |field: &str| owner.get(field).and_then(Value::as_bool);
        OwnerReference {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            controller: flag("controller"),
            block_owner_deletion: flag("blockOwnerDeletion"),
        }
    };
    owners.iter().map(owner).collect()
}

/// The manifest of one of our own objects. The API server has validated it; an object that cannot be decoded
/// all the same, such as one of an unknown version, is ignored.
fn own_object(kind: &GroupKind, object: &Object<'_>) -> Option<OwnObject> {
    match (is_bellwether(kind), &*kind.kind) {
        (true, "Application") => {
            let Application { metadata, spec, status } = typed(object)?;
            Some(OwnObject::Application(Box::new(own_manifest(&metadata, spec, status))))
        }
        (true, "HealthRule") => {
            let HealthRule { metadata, spec, status } = typed(object)?;
            Some(OwnObject::HealthRule(Box::new(own_manifest(&metadata, spec, status))))
        }
        (true, "Rollup") => {
            let Rollup { metadata, spec, status } = typed(object)?;
            Some(OwnObject::Rollup(Box::new(own_manifest(&metadata, spec, status))))
        }
        (true, "BindingPolicy") => {
            let BindingPolicy { metadata, spec, status } = typed(object)?;
            Some(OwnObject::BindingPolicy(Box::new(own_manifest(&metadata, spec, status))))
        }
        (true, "StatusCollector") => {
            let StatusCollector { metadata, spec, status } = typed(object)?;
            Some(OwnObject::StatusCollector(Box::new(own_manifest(&metadata, spec, status))))
        }
        // One that cannot be decoded counts as empty, and is written anew.
        (true, "CombinedStatus") => {
            Some(OwnObject::CombinedStatus(typed(object).map(Box::new).unwrap_or_default()))
        }
        // The CRD of app.k8s.io validates little, so these are always accepted and read field by field.
        (false, _) if is_app_k8s_io(kind) => {
            let generation = object.at("metadata.generation").and_then(Value::as_int).unwrap_or_default();
            let created = object.at("metadata.creationTimestamp").and_then(Value::as_text);
            let created = created.and_then(|time| time.parse().ok());
            let (spec, status) = (AppK8sIoSpec::read(object), app_k8s_io::status(object));
            Some(OwnObject::AppK8sIo(Box::new(OwnManifest { generation, created, spec, status })))
        }
        _ => None,
    }
}

fn own_manifest<S, T: Default>(metadata: &ObjectMeta, spec: S, status: Option<T>) -> OwnManifest<S, T> {
    let generation = metadata.generation.unwrap_or_default();
    let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
    OwnManifest { generation, created, spec, status: status.unwrap_or_default() }
}

/// A status that cannot be decoded counts as absent, and is written anew.
fn typed<T: DeserializeOwned>(object: &Object<'_>) -> Option<T> {
    let mut object = serde_json::to_value(object.fields()).ok()?;
    T::deserialize(&object).ok().or_else(|| {
        object.as_object_mut()?.remove("status")?;
        serde_json::from_value(object).ok()
    })
}
