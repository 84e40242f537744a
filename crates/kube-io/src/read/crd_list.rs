//! Small lists of CustomResourceDefinitions.

use bellwether_engine::ResourceVersion;
use bellwether_model::Plan;
use bellwether_wire::{envelope, read_error::ReadError};
use http::header::ACCEPT;
use kube::{
    api::ListParams,
    core::{Request, request::Error as BuildError},
};
use serde::Deserialize;
use serde_json::Value;

use super::{ClusterConnection, discovery::list_or_null, watch_stream::send_and_read};

pub(super) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Names without objects: the schemas of CRDs are large.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// The response to a list of CustomResourceDefinitions: a table, or the objects from an API server without tables.
#[derive(Deserialize)]
struct Listed {
    metadata: ListMetadata,
    #[serde(default, deserialize_with = "list_or_null")]
    rows: Vec<Row>,
    #[serde(default, deserialize_with = "list_or_null")]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(rename = "resourceVersion", default)]
    resource_version: String,
}

#[derive(Deserialize)]
struct Row {
    /// The name comes first.
    cells: Vec<Value>,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
}

#[derive(Deserialize)]
struct ItemMetadata {
    name: Box<str>,
}

/// The names of all CustomResourceDefinitions, and the resourceVersion of their list.
pub(super) async fn names(
    connection: &ClusterConnection,
) -> Result<(ResourceVersion, Vec<Box<str>>), ReadError> {
    let request = http::Request::get(format!("{CRDS}?includeObject=None")).header(ACCEPT, TABLE);
    let request = request.body(Vec::new()).map_err(BuildError::BuildRequest);
    let response = send_and_read(&connection.client, request, connection.settings.response_timeout).await?;
    let Listed { metadata, rows, items } = serde_json::from_slice(&response).map_err(undecodable)?;
    let cells = rows.iter().filter_map(|row| row.cells.first()?.as_str()).map(Into::into);
    let names = cells.chain(items.into_iter().map(|item| item.metadata.name)).collect();
    Ok((ResourceVersion::new(&metadata.resource_version), names))
}

/// The resourceVersion of their list.
pub(super) async fn version(connection: &ClusterConnection) -> Result<ResourceVersion, ReadError> {
    let request = Request::new(CRDS).list_metadata(&ListParams::default().limit(1));
    let response = send_and_read(&connection.client, request, connection.settings.response_timeout).await?;
    let page = envelope::page(&response, &Plan::identity(), |_| ()).map_err(undecodable)?;
    Ok(ResourceVersion::new(&page.resource_version))
}

fn undecodable(error: impl std::fmt::Display) -> ReadError {
    ReadError::rejected(format!("cannot decode the list: {error}"))
}
