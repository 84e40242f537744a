//! The changes that adopt objects: labels and annotations of each, and the Application; or all problems at
//! once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use bellwether_api::{APPLICATION_ANNOTATION, Application, ApplicationSpec, GROUP, VERSION};
use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_model::Object;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{problem::Problem, request::AdoptRequest};
use crate::schema;

/// The resource as kubectl needs it: `applications` alone may be that of Argo CD.
pub(super) const APPLICATIONS: &str = "applications.bellwether.dev";

/// The metadata that is changed, and that detects concurrent changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct WithMetadata {
    metadata: Metadata,
}

impl Metadata {
    /// None if it cannot be decoded.
    pub(super) fn of_json(object: Value) -> Option<Self> {
        serde_json::from_value(object).ok().map(|WithMetadata { metadata }| metadata)
    }

    pub(super) fn of(object: &Object<'_>) -> Option<Self> {
        serde_json::to_value(object.fields()).ok().and_then(Self::of_json)
    }
}

/// An object to adopt.
#[derive(Clone, Debug)]
pub(super) struct RequestedObject {
    pub(super) kind: GroupKind,
    pub(super) name: NamespacedName,
    /// None if the object does not exist.
    pub(super) metadata: Option<Metadata>,
}

impl RequestedObject {
    /// `deployment.apps/web`
    pub(super) fn for_kubectl(&self) -> String {
        format!("{}/{}", self.kind.to_string().to_lowercase(), self.name.name)
    }
}

/// `Deployment/web`
impl fmt::Display for RequestedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&object_name(&self.kind, &self.name))
    }
}

/// `Deployment/web`, `Widget.acme.io/w1`
pub(super) fn object_name(kind: &GroupKind, name: &NamespacedName) -> String {
    if ["", "apps", "batch"].contains(&&*kind.group) {
        format!("{}/{}", kind.kind, name.name)
    } else {
        format!("{kind}/{}", name.name)
    }
}

/// An Application of the same name that exists already.
#[derive(Clone, Debug)]
pub(super) struct Existing {
    /// None if it cannot be decoded.
    pub(super) spec: Option<ApplicationSpec>,
    pub(super) uid: String,
    pub(super) is_deleting: bool,
}

impl Existing {
    pub(super) fn of_json(object: Value) -> Self {
        let metadata = Metadata::of_json(object.clone()).unwrap_or_default();
        let application: Option<Application> = serde_json::from_value(object).ok();
        Self {
            spec: application.map(|application| application.spec),
            uid: metadata.uid,
            is_deleting: metadata.deletion_timestamp.is_some(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) application: NamespacedName,
    pub(super) steps: Vec<ObjectChange>,
    /// Of the Application.
    pub(super) manifest: Value,
    /// False if the Application exists already, with the same selector and components.
    pub(super) creates: bool,
    pub(super) kubectl_flags: String,
    labels: BTreeMap<String, String>,
    type_: Option<String>,
}

/// The changes of one object.
#[derive(Clone, Debug)]
pub(super) struct ObjectChange {
    pub(super) object: RequestedObject,
    /// When the plan was made.
    pub(super) metadata: Metadata,
    pub(super) changes: Vec<MetadataChange>,
}

/// A label or an annotation to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MetadataChange {
    pub(super) field: MetadataField,
    pub(super) key: String,
    pub(super) before: Option<String>,
    pub(super) after: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetadataField {
    Labels,
    Annotations,
}

impl Plan {
    pub(super) fn make(
        request: &AdoptRequest,
        objects: Vec<RequestedObject>,
        existing: Option<&Existing>,
        whereabouts: &str,
    ) -> Result<Self, Vec<Problem>> {
        let manifest = manifest(request, &objects);
        let mut problems = validation_errors(&manifest, request);
        // Without objects, the caller has reported why.
        problems.retain(|_| !objects.is_empty());
        let mut steps = Vec::new();
        for object in objects {
            match ObjectChange::of(object, request, whereabouts) {
                Ok(step) => steps.push(step),
                Err(more) => problems.extend(more),
            }
        }
        let AdoptRequest { application, labels, type_, kubectl_flags, .. } = request.clone();
        let plan =
            Self { application, steps, manifest, creates: existing.is_none(), kubectl_flags, labels, type_ };
        problems.extend(existing.and_then(|existing| plan.conflict_with(existing)));
        if problems.is_empty() { Ok(plan) } else { Err(problems) }
    }

    /// Of the selector.
    pub(super) fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Whether there are no changes.
    pub(super) fn is_done(&self) -> bool {
        !self.creates && self.steps.iter().all(|step| step.changes.is_empty())
    }

    pub(super) fn kinds(&self) -> BTreeSet<GroupKind> {
        self.steps.iter().map(|step| step.object.kind.clone()).collect()
    }

    /// Whether an existing Application has the same selector, components and type.
    pub(super) fn equals(&self, spec: &ApplicationSpec) -> bool {
        let selector = &spec.selector;
        let components = spec.components.iter().map(|(key, component)| {
            let name = component.name.as_deref().unwrap_or(key);
            (GroupKind::new(&component.group, &component.kind), name.to_owned())
        });
        let wanted = self.steps.iter().map(|step| {
            let object = &step.object;
            (object.kind.clone(), object.name.name.to_string())
        });
        selector.match_labels.as_ref() == Some(&self.labels)
            && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
            && components.collect::<BTreeSet<_>>() == wanted.collect()
            && (self.type_.is_none() || self.type_ == spec.type_)
    }

    fn conflict_with(&self, existing: &Existing) -> Option<Problem> {
        let NamespacedName { namespace, name } = &self.application;
        let conflict = if existing.is_deleting {
            format!("Application {name:?} is being deleted. Try again later, or choose another name")
        } else if existing.spec.as_ref().is_some_and(|spec| self.equals(spec)) {
            return None;
        } else {
            format!(
                "Application {name:?} already exists with another selector, type or components. Choose another name, or \
                 edit it: kubectl edit {APPLICATIONS}/{name} -n {namespace}{}",
                self.kubectl_flags
            )
        };
        Some(Problem::refusal(conflict))
    }
}

impl ObjectChange {
    fn of(object: RequestedObject, request: &AdoptRequest, whereabouts: &str) -> Result<Self, Vec<Problem>> {
        let refused = |why: String| Err(vec![Problem::refusal(why)]);
        let NamespacedName { namespace, name } = &request.application;
        if object.name.namespace.is_empty() {
            return refused(format!("{object} is cluster-scoped and cannot be a member. Leave it out"));
        }
        let Some(metadata) = object.metadata.clone() else {
            return refused(format!("{object} not found {whereabouts}. Create it first, or leave it out"));
        };
        if metadata.deletion_timestamp.is_some() {
            return refused(format!("{object} is being deleted. Leave it out"));
        }
        let mut problems = Vec::new();
        let mut changes = Vec::new();
        for (key, value) in &request.labels {
            match metadata.labels.get(key) {
                Some(current) if current == value => {}
                // Another selector may depend on the label.
                Some(current) => problems.push(Problem::refusal(format!(
                    "{object} has label {key}={current}, but the selector requires {key}={value}. Existing labels are not \
                     overwritten. Choose another label with --selector"
                ))),
                None => changes.push(MetadataChange::new(MetadataField::Labels, key, None, value)),
            }
        }
        match metadata.annotations.get(APPLICATION_ANNOTATION).map(String::as_str) {
            Some(current) if current == &**name => {}
            Some(other) if !other.is_empty() => problems.push(Problem::refusal(format!(
                "{object} belongs to Application {other:?} by its annotation {APPLICATION_ANNOTATION}. Leave it out, or \
                 release it: kubectl annotate {} -n {namespace}{} {APPLICATION_ANNOTATION}-",
                object.for_kubectl(),
                request.kubectl_flags
            ))),
            before => changes.push(MetadataChange::new(
                MetadataField::Annotations,
                APPLICATION_ANNOTATION,
                before,
                name,
            )),
        }
        if problems.is_empty() { Ok(Self { object, metadata, changes }) } else { Err(problems) }
    }
}

impl MetadataChange {
    fn new(field: MetadataField, key: &str, before: Option<&str>, after: &str) -> Self {
        Self { field, key: key.to_owned(), before: before.map(str::to_owned), after: after.to_owned() }
    }
}

fn manifest(request: &AdoptRequest, objects: &[RequestedObject]) -> Value {
    let mut spec = json!({
        "selector": { "matchLabels": request.labels },
        "components": components(objects),
    });
    if let Some(type_) = &request.type_ {
        spec["type"] = json!(type_);
    }
    let NamespacedName { namespace, name } = &request.application;
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "Application",
        "metadata": { "name": &**name, "namespace": &**namespace },
        "spec": spec,
    })
}

/// The objects by a unique key: the name, unless several have it.
fn components(objects: &[RequestedObject]) -> BTreeMap<String, Value> {
    let count = |name: &str| objects.iter().filter(|object| *object.name.name == *name).count();
    let mut components = BTreeMap::new();
    for RequestedObject { kind, name, .. } in objects {
        let name = name.name.to_string();
        let mut component = json!({ "kind": &*kind.kind });
        if !kind.group.is_empty() {
            component["group"] = json!(&*kind.group);
        }
        let mut key = name.clone();
        if count(&name) > 1 {
            let stem = format!("{name}-{}", kind.kind.to_lowercase());
            component["name"] = json!(name);
            key.clone_from(&stem);
            // Kinds of different groups may have the same name, and another object may have this one.
            let mut number = 1;
            while components.contains_key(&key) || count(&key) > 0 {
                number += 1;
                key = format!("{stem}-{number}");
            }
        }
        components.insert(key, component);
    }
    components
}

/// The errors that the API server would return for the Application.
fn validation_errors(manifest: &Value, request: &AdoptRequest) -> Vec<Problem> {
    let errors = schema::errors_in(manifest).into_iter().map(|error| {
        let way_out = if request.has_default_labels && error.field.starts_with("spec.selector") {
            ". Choose a label with --selector"
        } else {
            ""
        };
        Problem::input(format!("invalid Application: {}: {}{way_out}", error.field, error.message))
    });
    errors.collect()
}
