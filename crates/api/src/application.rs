//! `Application`: the objects of one application in a namespace.

use std::collections::BTreeMap;

use bellwether_model::{ConditionStatus, State};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    health_check::HealthCheck,
    schema::{self, rule},
};

/// The objects of one application, and what must be there for it to be whole.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "Application",
    doc = "An Application gathers the objects of one application in its namespace, and says in its status whether they \
           are ready, why not, since when, and how far along.",
    namespaced,
    status = "ApplicationStatus",
    derive = "PartialEq",
    shortname = "bwapp",
    category = "bellwether",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "What kind of application it is"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.version",
        description = "The application's version"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.componentsReady",
        description = "How many of its objects are ready"
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why it is ready or not"
    ),
    printcolumn(
        name = "Progress",
        type_ = "integer",
        json_path = ".status.progress",
        description = "How far along its objects are, in percent"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "(has(self.components) && size(self.components) > 0) || (has(self.componentKinds) && size(self.componentKinds) > 0) \
     || (has(self.dependencies) && size(self.dependencies) > 0) || has(self.healthCheck)",
    "spec names nothing to report on: give at least one of components, componentKinds, dependencies and healthCheck",
)]))]
pub struct ApplicationSpec {
    /// Which objects of the namespace belong to the application, by their labels. It cannot be changed later, so that no
    /// object is orphaned by an edit.
    #[schemars(schema_with = "immutable_label_selector")]
    pub selector: LabelSelector,

    /// Objects that must exist, each by the name that the application has for it. Unless `name` says otherwise, that is
    /// also the name of the object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 128, "x-kubernetes-validations" = [rule(
        &format!("self.all(key, size(key) <= 253 && {})", schema::is_object_name("key")),
        "components has a name that no object can have: use at most 253 characters, without '/', '%' and control \
         characters",
    ), rule(
        "self.all(a, self.all(b, a == b || self[a].kind != self[b].kind || self[a].group != self[b].group || \
         (has(self[a].name) ? self[a].name : a) != (has(self[b].name) ? self[b].name : b)))",
        "two components are the same object: give every component its own kind and name",
    )]))]
    pub components: BTreeMap<String, Component>,

    /// Kinds of which every object that the selector matches belongs to the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["group", "kind"]
    ))]
    pub component_kinds: Vec<ComponentKind>,

    /// Names of other Applications in the same namespace that this one needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::names")]
    pub dependencies: Vec<String>,

    /// A Pod whose readiness is the application's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,

    /// Who is a member. Selected (the default): every object that the selector matches. Annotated: of those, only the
    /// objects whose annotation `kubernetes.io/application` names this Application. In both, an object whose annotation
    /// names another Application is no member.
    #[serde(default)]
    pub membership: Membership,

    /// What becomes of members when the Application is deleted. Adopt (the default): members that carry the annotation
    /// `kubernetes.io/application` are owned, and deleted with it. Observe: nothing is ever owned.
    #[serde(default)]
    pub ownership: Ownership,

    /// What kind of application it is, such as wordpress or mysql.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub type_: Option<String>,

    /// The application's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,

    /// What it is, in a sentence or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,

    /// Where more is said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::url")]
    pub url: Option<String>,

    /// The people who look after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::words")]
    pub maintainers: Vec<String>,

    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::words")]
    pub keywords: Vec<String>,

    /// Its licence: a short name such as Apache-2.0, or where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::license")]
    pub license: Option<String>,

    /// Where its dashboard is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::url")]
    pub dashboard: Option<String>,
}

fn immutable_label_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = schema::label_selector(generator);
    schema.insert(
        "x-kubernetes-validations".to_owned(),
        Value::Array(vec![rule(
            "self == oldSelf",
            "selector cannot be changed, because members would be orphaned: create another Application instead",
        )]),
    );
    schema
}

/// An object that must exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Component {
    /// The API group of the object's kind; left out for the core group.
    #[serde(default)]
    #[schemars(schema_with = "schema::group")]
    pub group: String,

    /// The version of the object's kind; left out for the one that the cluster prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::version")]
    pub version: Option<String>,

    /// The object's kind.
    #[schemars(schema_with = "schema::kind")]
    pub kind: String,

    /// The object's name, where it differs from the component's: so a Service and a StatefulSet may share one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub name: Option<String>,
}

/// A kind of which every selected object is a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentKind {
    /// The kind's API group; left out for the core group.
    #[serde(default)]
    #[schemars(schema_with = "schema::group")]
    pub group: String,

    /// The kind.
    #[schemars(schema_with = "schema::kind")]
    pub kind: String,
}

/// Who is a member of an Application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Membership {
    /// Whom the selector matches.
    #[default]
    Selected,
    /// Whom the selector matches and whose annotation names the Application.
    Annotated,
}

/// Whether members are owned by their Application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ownership {
    /// Those that carry the annotation are.
    #[default]
    Adopt,
    /// None ever is.
    Observe,
}

/// The state of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The readiness of the health-check Pod: True, False or Unknown. Unknown where there is no health check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<ConditionStatus>,

    /// How many of the members are ready, such as 4/5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub components_ready: Option<String>,

    /// How far along the members are on average, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub progress: Option<i32>,

    /// The named components and dependencies that exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub installed: Vec<String>,

    /// The named components and dependencies that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub missing: Vec<String>,

    /// Ready: every member is. Settled: every member, and this object, has been acted on in its latest version.
    /// Installed: every named component and dependency exists. Resolved: every kind can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The members, worst first, then by kind and name. The list may be cut; objectCounts never is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub objects: Vec<ObjectStatus>,

    /// How many members are in which state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_counts: Option<ObjectCounts>,

    /// The Applications that this one depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub dependencies: Vec<DependencyStatus>,

    /// The kinds of which this Application owns objects, or may own some. A kind is named here before the first of its
    /// objects is taken over, and until the last has been let go of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub owned_kinds: Vec<OwnedKind>,
}

/// A kind of which an Application owns objects, or may own some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnedKind {
    /// The kind's API group; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,

    /// The kind.
    #[schemars(length(max = 63))]
    pub kind: String,
}

/// The state of one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectStatus {
    /// The object's path at the API server; absent where its kind is not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub link: Option<String>,

    /// The object's name.
    #[schemars(length(max = 253))]
    pub name: String,

    /// The API group of its kind; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,

    /// Its kind.
    #[schemars(length(max = 63))]
    pub kind: String,

    /// Its state: Ready, InProgress, Failed, Suspended, Terminating, Unknown or Missing.
    pub status: State,

    /// How far along it is, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub progress: i32,

    /// One word for programs: why it is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,

    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,

    /// Since when it has been in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,

    /// The rule that judged it, such as builtin/StatefulSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub rule: Option<String>,
}

/// How many objects are in which state. Every object is in exactly one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    /// All of them.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub total: i32,
    /// Those that are ready.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub ready: i32,
    /// Those that are on their way.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub in_progress: i32,
    /// Those that will not mend themselves.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub failed: i32,
    /// Those that were suspended on purpose.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub suspended: i32,
    /// Those that are being deleted.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub terminating: i32,
    /// Those of which nobody can tell.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub unknown: i32,
    /// Those that should exist and do not.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub missing: i32,
}

/// An Application that another one depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DependencyStatus {
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,

    /// Whether it exists.
    pub installed: bool,

    /// The status of its Ready condition: True, False or Unknown.
    pub ready: ConditionStatus,
}
