//! StatusCollectors as YAML for `kubectl apply`.

use anyhow::Result;
use bellwether_api::StatusCollectorSpec;
use serde::Serialize;
use serde_json::Value as Json;

/// With its fields in the order of the API.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'m> {
    api_version: &'m Json,
    kind: &'m Json,
    metadata: &'m Json,
    spec: StatusCollectorSpec,
}

/// The YAML of a StatusCollector.
pub(crate) fn manifest(object: &Json) -> Result<String> {
    let spec = serde_json::from_value(object["spec"].clone())?;
    let (api_version, kind, metadata) = (&object["apiVersion"], &object["kind"], &object["metadata"]);
    crate::output::as_yaml(&Manifest { api_version, kind, metadata, spec })
}
