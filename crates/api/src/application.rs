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

/// Which objects belong to the application, and which of them must exist.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "Application",
    doc = "An Application groups the objects of one application in its namespace. Its status reports whether they are \
           ready, why not, since when, and their progress.",
    namespaced,
    status = "ApplicationStatus",
    derive = "PartialEq",
    shortname = "bwapp",
    category = "bellwether",
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.state",
        description = "The worst state among what keeps the application from being ready, or Ready"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.componentsReady",
        description = "The number of ready members and of all members"
    ),
    printcolumn(
        name = "Progress",
        type_ = "integer",
        json_path = ".status.progress",
        description = "The average progress of the members, in percent; 100 only if the application is ready"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.reason",
        description = "The reason of the member that decides the state"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        priority = 1,
        description = "The type of the application"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.version",
        priority = 1,
        description = "The version of the application"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1,
        description = "The message of the condition Ready"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "(has(self.components) && size(self.components) > 0) || (has(self.componentKinds) && size(self.componentKinds) > 0) \
     || (has(self.dependencies) && size(self.dependencies) > 0) || has(self.healthCheck)",
    "set at least one of components, componentKinds, dependencies and healthCheck",
)]))]
pub struct ApplicationSpec {
    /// Selects the members by label among the objects in the namespace. Required. Immutable: the API server
    /// rejects a change, because it would orphan members.
    #[schemars(schema_with = "immutable_label_selector")]
    pub selector: LabelSelector,

    /// Objects that must exist and be members, by component name. The component name is the name of the
    /// object, unless `name` is set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100, "x-kubernetes-validations" = [rule(
        &format!("self.all(key, size(key) <= 253 && {})", schema::is_object_name("key")),
        "invalid component name: use at most 253 characters, without '/', '%' and control characters",
    ), rule(
        // The outer list binds a variable: comparing the fields of each pair would exceed the cost budget.
        "[self.map(key, self[key].group + '/' + self[key].kind + '/' + \
         (has(self[key].name) ? self[key].name : key))].all(objects, \
         objects.all(object, objects.exists_one(other, other == object)))",
        "duplicate component: two entries have the same group, kind and name; remove one",
    )]))]
    pub components: BTreeMap<String, Component>,

    /// Kinds of members: every object of one of these kinds that the selector matches is a member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["group", "kind"]
    ))]
    pub component_kinds: Vec<ComponentKind>,

    /// Names of the Applications in the same namespace that this one depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::names")]
    pub dependencies: Vec<String>,

    /// A Pod that checks the application as a whole. The Application is ready only if this Pod is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,

    /// Which selected objects are members. Selected: all of them. Annotated: those whose annotation
    /// `kubernetes.io/application` names this Application. An object whose annotation names another
    /// Application is never a member. Defaults to Selected.
    #[serde(default)]
    pub membership: Membership,

    /// Whether the Application owns members. Adopt: it owns members with the annotation
    /// `kubernetes.io/application`; deleting the Application deletes them. Observe: it owns no member.
    /// Defaults to Adopt.
    #[serde(default)]
    pub ownership: Ownership,

    /// The type of the application, such as wordpress or mysql.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub type_: Option<String>,

    /// The version of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,

    /// A short description of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,

    /// The URL of a page about the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::url")]
    pub url: Option<String>,

    /// The maintainers of the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::words")]
    pub maintainers: Vec<String>,

    /// Keywords to search by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::words")]
    pub keywords: Vec<String>,

    /// The license of the application: an SPDX expression such as Apache-2.0, or a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::license")]
    pub license: Option<String>,

    /// The URL of a dashboard for the application.
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
            "selector is immutable: create another Application to select other objects",
        )]),
    );
    schema
}

/// An object that must exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Component {
    /// The API group of the object. Defaults to the core group.
    #[serde(default)]
    #[schemars(schema_with = "schema::group")]
    pub group: String,

    /// The API version of the object. Defaults to the version that the API server prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::version")]
    pub version: Option<String>,

    /// The kind of the object.
    #[schemars(schema_with = "schema::kind")]
    pub kind: String,

    /// The name of the object. Defaults to the component name. Set it for objects that share a name, such as
    /// a Service and a StatefulSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub name: Option<String>,
}

/// A kind whose selected objects are members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentKind {
    /// The API group of the kind. Defaults to the core group.
    #[serde(default)]
    #[schemars(schema_with = "schema::group")]
    pub group: String,

    /// The kind of the members.
    #[schemars(schema_with = "schema::kind")]
    pub kind: String,
}

/// Which selected objects are members of an Application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Membership {
    /// Every object that the selector matches.
    #[default]
    Selected,
    /// Those whose annotation names the Application.
    Annotated,
}

/// Whether an Application owns its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ownership {
    /// It owns members with the annotation [`APPLICATION_ANNOTATION`](crate::APPLICATION_ANNOTATION).
    #[default]
    Adopt,
    /// It owns no member.
    Observe,
}

/// The observed state of the application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationStatus {
    /// The metadata.generation that this status was computed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Why the application is not ready, in one word: the worst state among the members and the health check.
    /// Failed, Missing, InProgress, Terminating or Unknown; Ready if nothing keeps it from being ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::group_state")]
    pub state: Option<State>,

    /// The reason of the member that decides the state, such as ImagePullBackOff. Absent if the state is Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,

    /// The readiness of the health-check Pod: True, False or Unknown. Absent without a health check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::condition_status")]
    pub ready: Option<ConditionStatus>,

    /// The number of ready members and of all members, such as 4/5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub components_ready: Option<String>,

    /// The average progress of the members, in percent. 100 if the application is ready, otherwise at most 99.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub progress: Option<i32>,

    /// The components and dependencies in the spec that exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub installed: Vec<String>,

    /// The components and dependencies in the spec that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub missing: Vec<String>,

    /// Ready: every member is ready or suspended, every component exists, and the health check is ready.
    /// Settled: the controllers have acted on the latest generation of every member and of this object.
    /// Installed: every component and dependency in the spec exists. Resolved: every kind in the spec can be
    /// read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The members, by state from worst to best, then by kind and name. The list may be truncated;
    /// objectCounts counts all members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub objects: Vec<ObjectStatus>,

    /// The number of members in each state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_counts: Option<ObjectCounts>,

    /// The Applications that this one depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub dependencies: Vec<DependencyStatus>,

    /// The kinds of which this Application owns objects, or may own them. A kind is listed before the
    /// Application takes ownership of its first object, and until it has released the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub owned_kinds: Vec<OwnedKind>,

    /// The last change of the state, as Events have reported it. No Event is recorded in the first ten seconds
    /// of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event: Option<LastEvent>,
}

/// The state that Events have reported, so that each change is reported once, also after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastEvent {
    /// The state.
    #[schemars(schema_with = "schema::required_group_state")]
    pub state: State,

    /// The type of the Event: Warning if a person should look, otherwise Normal.
    #[serde(rename = "type")]
    pub type_: EventType,

    /// When the change was noticed.
    pub time: Time,
}

/// The type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EventType {
    /// No action is needed.
    Normal,
    /// A person should look.
    Warning,
}

/// A kind of which an Application owns objects, or may own them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnedKind {
    /// The API group of the kind; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,

    /// The name of the kind.
    #[schemars(length(max = 63))]
    pub kind: String,
}

/// The state of one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectStatus {
    /// The path of the object on the API server. Absent if the API server does not serve its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub link: Option<String>,

    /// The name of the object.
    #[schemars(length(max = 253))]
    pub name: String,

    /// The API group of the object; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,

    /// The kind of the object.
    #[schemars(length(max = 63))]
    pub kind: String,

    /// The state of the object: Ready, InProgress, Failed, Suspended, Terminating, Unknown or Missing.
    pub status: State,

    /// The progress of the object, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub progress: i32,

    /// The reason for the state, as one word in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,

    /// The reason for the state, in a sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,

    /// When the object entered this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,

    /// The rule that returned this state, such as builtin/StatefulSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub rule: Option<String>,

    /// The object below this one that is the cause of its state, such as a Pod of a Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<ObjectCause>,
}

/// An object that keeps its owner from being ready.
// The CRD has this description for the field `cause`: an optional struct loses the one of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectCause {
    /// The kind of the object.
    #[schemars(length(max = 63))]
    pub kind: String,

    /// The name of the object.
    #[schemars(length(max = 253))]
    pub name: String,

    /// The reason for its state, as one word in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,

    /// The reason for its state, in a sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
}

/// The number of objects in each state. Every object is in exactly one state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    /// All objects.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub total: i32,
    /// Objects that work as specified.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub ready: i32,
    /// Objects that are being created, changed or repaired.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub in_progress: i32,
    /// Objects that do not become ready without intervention.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub failed: i32,
    /// Objects that are suspended on purpose.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub suspended: i32,
    /// Objects that are being deleted.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub terminating: i32,
    /// Objects whose state cannot be determined.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub unknown: i32,
    /// Objects that are required and do not exist.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub missing: i32,
}

/// An Application that another one depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DependencyStatus {
    /// The name of the Application.
    #[schemars(length(max = 253))]
    pub name: String,

    /// Whether the Application exists.
    pub installed: bool,

    /// The status of its condition Ready: True, False or Unknown.
    pub ready: ConditionStatus,
}
