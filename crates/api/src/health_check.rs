//! The health check of an `Application`: a Pod whose readiness is the application's.
//!
//! Fields with validation are typed, because CEL rules see only typed fields. All others are preserved as
//! unknown fields: the complete Pod schema would make the CRD many times as large.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::{self, rule};

/// A Pod that checks the application as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthCheck {
    /// The Pod to run. A container must have a readiness probe: its result is the readiness of the
    /// application.
    pub template: PodTemplate,
}

/// The template of a Pod. Fields without validation are preserved as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodTemplate {
    /// Labels and annotations of the Pod.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "schema::any_object")]
    pub metadata: Map<String, Value>,

    /// The spec of the Pod, as in any other Pod template.
    pub spec: PodTemplateSpec,
}

/// The spec of a health-check Pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PodTemplateSpec {
    /// The containers of the Pod. At least one must have a readiness probe.
    #[schemars(length(min = 1, max = 16), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"],
        "x-kubernetes-validations" = [rule(
            "self.exists(container, has(container.readinessProbe))",
            "set readinessProbe in at least one container: its result is the readiness of the application",
        )]
    ))]
    pub containers: Vec<PodTemplateContainer>,

    /// Every other field of a Pod's spec.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

/// A container of a health-check Pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PodTemplateContainer {
    /// The name of the container.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// The image of the container.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,

    /// The probe whose result is the readiness of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "readiness_probe")]
    pub readiness_probe: Option<Map<String, Value>>,

    /// Every other field of a container.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

fn readiness_probe(_: &mut SchemaGenerator) -> Schema {
    let handler = |what: &str| json_schema!({ "description": what, "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "exec": handler("Runs a command in the container."),
            "httpGet": handler("Sends an HTTP GET request."),
            "tcpSocket": handler("Opens a TCP connection."),
            "grpc": handler("Calls a gRPC health service."),
        },
        "x-kubernetes-validations": [rule(
            "[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].filter(given, given).size() == 1",
            "set exactly one of exec, httpGet, tcpSocket and grpc",
        )],
    })
}
