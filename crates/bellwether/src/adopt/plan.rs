//! What adopting comes to: which objects get which labels and annotations, and the Application that names them; or all
//! that speaks against it, at once.

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

/// What is read of an object: what adopting changes, and what tells whether it is still the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Marks {
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct Marked {
    metadata: Marks,
}

impl Marks {
    /// Those of an object as the API server sends it; none if it makes no sense.
    pub(super) fn of_json(object: Value) -> Option<Self> {
        serde_json::from_value(object).ok().map(|Marked { metadata }| metadata)
    }

    /// Those of an object.
    pub(super) fn of(object: &Object<'_>) -> Option<Self> {
        serde_json::to_value(object.fields()).ok().and_then(Self::of_json)
    }
}

/// An object that was asked for.
#[derive(Clone, Debug)]
pub(super) struct RequestedObject {
    pub(super) kind: GroupKind,
    pub(super) name: NamespacedName,
    /// What it has, if it is there.
    pub(super) marks: Option<Marks>,
}

impl RequestedObject {
    /// As kubectl takes it: `deployment.apps/web`.
    pub(super) fn for_kubectl(&self) -> String {
        format!("{}/{}", self.kind.to_string().to_lowercase(), self.name.name)
    }
}

impl fmt::Display for RequestedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind, &*self.name.name)
    }
}

/// The Application of this name, if there is one.
#[derive(Clone, Debug)]
pub(super) struct Existing {
    /// What is written in it; none if that makes no sense.
    pub(super) spec: Option<ApplicationSpec>,
    pub(super) uid: String,
    pub(super) is_deleted: bool,
}

impl Existing {
    /// One as the API server sends it.
    pub(super) fn of_json(object: Value) -> Self {
        let marks = Marks::of_json(object.clone()).unwrap_or_default();
        let application: Option<Application> = serde_json::from_value(object).ok();
        Self {
            spec: application.map(|application| application.spec),
            uid: marks.uid,
            is_deleted: marks.deletion_timestamp.is_some(),
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) application: NamespacedName,
    pub(super) steps: Vec<ObjectChange>,
    /// The Application.
    pub(super) manifest: Value,
    /// Whether it has to be created; otherwise it is there, and names just these objects.
    pub(super) creates: bool,
    labels: BTreeMap<String, String>,
    type_: Option<String>,
}

/// What is to be done to one object.
#[derive(Clone, Debug)]
pub(super) struct ObjectChange {
    pub(super) object: RequestedObject,
    /// As it was when it was read.
    pub(super) marks: Marks,
    pub(super) changes: Vec<Mark>,
}

/// A label or an annotation that is to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) place: MarkTarget,
    pub(super) key: String,
    pub(super) before: Option<String>,
    pub(super) after: String,
}

/// Where a mark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkTarget {
    Labels,
    Annotations,
}

impl Plan {
    /// What is to be done for objects to become members of an Application, or why it cannot be.
    pub(super) fn make(
        wish: &AdoptRequest,
        sought: Vec<RequestedObject>,
        existing: Option<&Existing>,
        whereabouts: &str,
    ) -> Result<Self, Vec<Problem>> {
        let manifest = manifest(wish, &sought);
        let mut problems = wrong_with(&manifest, wish);
        // Then more was said about the objects already.
        problems.retain(|_| !sought.is_empty());
        let mut steps = Vec::new();
        for object in sought {
            match ObjectChange::of(object, wish, whereabouts) {
                Ok(step) => steps.push(step),
                Err(objections) => problems.extend(objections),
            }
        }
        let AdoptRequest { application, labels, type_, .. } = wish.clone();
        let plan = Self { application, steps, manifest, creates: existing.is_none(), labels, type_ };
        problems.extend(existing.and_then(|existing| plan.objection_to(existing)));
        if problems.is_empty() { Ok(plan) } else { Err(problems) }
    }

    /// The labels that make an object a member.
    pub(super) fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(&self) -> bool {
        !self.creates && self.steps.iter().all(|step| step.changes.is_empty())
    }

    /// The kinds of the objects.
    pub(super) fn kinds(&self) -> BTreeSet<GroupKind> {
        self.steps.iter().map(|step| step.object.kind.clone()).collect()
    }

    /// Whether an Application selects and names just what this one does.
    pub(super) fn is_named_by(&self, spec: &ApplicationSpec) -> bool {
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

    fn objection_to(&self, existing: &Existing) -> Option<Problem> {
        let NamespacedName { namespace, name } = &self.application;
        let objection = if existing.is_deleted {
            format!(
                "Application {name:?} is being deleted: try again when it is gone, or choose another name"
            )
        } else if existing.spec.as_ref().is_some_and(|spec| self.is_named_by(spec)) {
            return None;
        } else {
            format!(
                "Application {name:?} exists already, and selects or names something else: choose another name, or change \
                 it with kubectl edit application/{name} -n {namespace}"
            )
        };
        Some(Problem::refusal(objection))
    }
}

impl ObjectChange {
    fn of(object: RequestedObject, wish: &AdoptRequest, whereabouts: &str) -> Result<Self, Vec<Problem>> {
        let refused = |why: String| Err(vec![Problem::refusal(why)]);
        let NamespacedName { namespace, name } = &wish.application;
        if object.name.namespace.is_empty() {
            return refused(format!(
                "{object} is in no namespace, and an Application has members in its own only: leave it out"
            ));
        }
        let Some(marks) = object.marks.clone() else {
            return refused(format!("there is no {object} {whereabouts}: create it first, or leave it out"));
        };
        if marks.deletion_timestamp.is_some() {
            return refused(format!("{object} is being deleted: leave it out"));
        }
        let mut problems = Vec::new();
        let mut changes = Vec::new();
        for (key, value) in &wish.labels {
            match marks.labels.get(key) {
                Some(has) if has == value => {}
                Some(has) => problems.push(Problem::refusal(format!(
                    "{object} has the label {key}={has}, and would have to have {key}={value}: whoever selects it by that \
                     label would lose it, so choose a label with --selector that it has or has not yet"
                ))),
                None => changes.push(Mark::new(MarkTarget::Labels, key, None, value)),
            }
        }
        match marks.annotations.get(APPLICATION_ANNOTATION).map(String::as_str) {
            Some(has) if has == &**name => {}
            Some(other) if !other.is_empty() => problems.push(Problem::refusal(format!(
                "{object} was handed over to Application {other:?} already: leave it out, or take it back with kubectl \
                 annotate {} -n {namespace} {APPLICATION_ANNOTATION}-",
                object.for_kubectl()
            ))),
            before => changes.push(Mark::new(MarkTarget::Annotations, APPLICATION_ANNOTATION, before, name)),
        }
        if problems.is_empty() { Ok(Self { object, marks, changes }) } else { Err(problems) }
    }
}

impl Mark {
    fn new(place: MarkTarget, key: &str, before: Option<&str>, after: &str) -> Self {
        Self { place, key: key.to_owned(), before: before.map(str::to_owned), after: after.to_owned() }
    }
}

/// The Application that names the objects.
fn manifest(wish: &AdoptRequest, sought: &[RequestedObject]) -> Value {
    let mut spec = json!({
        "selector": { "matchLabels": wish.labels },
        "components": components(sought),
    });
    if let Some(type_) = &wish.type_ {
        spec["type"] = json!(type_);
    }
    let NamespacedName { namespace, name } = &wish.application;
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "Application",
        "metadata": { "name": &**name, "namespace": &**namespace },
        "spec": spec,
    })
}

/// The objects, each under its own name where no other has that.
fn components(sought: &[RequestedObject]) -> BTreeMap<String, Value> {
    let has_name = |name: &str| sought.iter().filter(|object| *object.name.name == *name).count();
    let mut components = BTreeMap::new();
    for RequestedObject { kind, name, .. } in sought {
        let name = name.name.to_string();
        let mut component = json!({ "kind": &*kind.kind });
        if !kind.group.is_empty() {
            component["group"] = json!(&*kind.group);
        }
        let mut key = name.clone();
        if has_name(&name) > 1 {
            let stem = format!("{name}-{}", kind.kind.to_lowercase());
            component["name"] = json!(name);
            key.clone_from(&stem);
            // Kinds of different groups may share their names too, and another object may be called so.
            let mut number = 1;
            while components.contains_key(&key) || has_name(&key) > 0 {
                number += 1;
                key = format!("{stem}-{number}");
            }
        }
        components.insert(key, component);
    }
    components
}

/// What the API server would say of the Application, as far as it can be told here.
fn wrong_with(manifest: &Value, wish: &AdoptRequest) -> Vec<Problem> {
    let faults = schema::faults_in(manifest);
    let faults = faults.into_iter().map(|fault| {
        let way_out = if wish.by_default && fault.field.starts_with("spec.selector") {
            ": choose a label with --selector"
        } else {
            ""
        };
        Problem::input(format!("there can be no such Application: {}: {}{way_out}", fault.field, fault.text))
    });
    faults.collect()
}
