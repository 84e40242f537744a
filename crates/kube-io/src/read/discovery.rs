//! API discovery.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use http::{Request, header};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIGroupList, APIResource, APIResourceList, APIVersions, GroupVersionForDiscovery,
};
use kube::Client;
use serde::{
    Deserialize,
    de::{DeserializeOwned, Deserializer},
};

use bellwether_wire::{Verb, read_error::ReadError};

use super::watch_stream::{read_body, send, send_and_read};

/// Aggregated discovery, with a fallback to the list of groups.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Concurrent requests where the API server does not support aggregated discovery.
const CONCURRENCY: usize = 4;

/// `APIGroupDiscovery`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiGroup {
    pub(super) metadata: GroupName,
    /// The preferred version comes first.
    #[serde(deserialize_with = "list_or_null")]
    pub(super) versions: Vec<ApiGroupVersion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GroupName {
    pub(super) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiGroupVersion {
    pub(super) version: String,
    #[serde(deserialize_with = "list_or_null")]
    pub(super) resources: Vec<Resource>,
    pub(super) freshness: Freshness,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Freshness {
    /// The aggregated API server did not respond, so that the resources are incomplete.
    Stale,
    #[default]
    #[serde(other)]
    Current,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Resource {
    #[serde(rename = "resource")]
    pub(super) plural: String,
    pub(super) response_kind: Option<ResponseKind>,
    #[serde(rename = "singularResource")]
    pub(super) singular: String,
    #[serde(deserialize_with = "list_or_null")]
    pub(super) short_names: Vec<String>,
    pub(super) scope: Scope,
    #[serde(deserialize_with = "list_or_null")]
    pub(super) verbs: Vec<String>,
    #[serde(deserialize_with = "list_or_null")]
    pub(super) subresources: Vec<Subresource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseKind {
    pub(super) kind: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Scope {
    Namespaced,
    #[default]
    #[serde(other)]
    Cluster,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Subresource {
    pub(super) subresource: String,
}

/// Go encodes a nil slice as `null`.
pub(super) fn list_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Groups {
    items: Vec<ApiGroup>,
}

pub(super) async fn discover(client: &Client, within: Duration) -> Result<Vec<ApiGroup>, ReadError> {
    let mut groups = Vec::new();
    for root in [Root::Core, Root::Named] {
        match aggregated(client, root, within).await? {
            Some(found) => groups.extend(found),
            None => groups.extend(unaggregated(client, root, within).await?),
        }
    }
    Ok(groups)
}

#[derive(Clone, Copy, Debug)]
enum Root {
    /// The core group.
    Core,
    /// All other groups.
    Named,
}

impl Root {
    fn path(self) -> &'static str {
        match self {
            Self::Core => "/api",
            Self::Named => "/apis",
        }
    }
}

/// `None` if the API server does not support aggregated discovery.
async fn aggregated(
    client: &Client,
    root: Root,
    within: Duration,
) -> Result<Option<Vec<ApiGroup>>, ReadError> {
    let request = Request::get(root.path()).header(header::ACCEPT, AGGREGATED).body(Vec::new());
    let response = match send(client, request.map_err(kube::core::request::Error::BuildRequest), within).await
    {
        Ok(response) => response,
        // An API server may lack the core group.
        Err(ReadError::NotFound { .. }) if matches!(root, Root::Core) => return Ok(Some(Vec::new())),
        Err(ReadError::Rejected { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_aggregated = |kind: &header::HeaderValue| {
        kind.to_str().is_ok_and(|kind| kind.contains("as=APIGroupDiscoveryList"))
    };
    if !response.headers().get(header::CONTENT_TYPE).is_some_and(is_aggregated) {
        return Ok(None);
    }
    Ok(Some(decode::<Groups>(&read_body(response, within).await?)?.items))
}

/// One request for each group version.
async fn unaggregated(client: &Client, root: Root, within: Duration) -> Result<Vec<ApiGroup>, ReadError> {
    let groups: Vec<APIGroup> = match root {
        Root::Core => {
            let known: APIVersions = get(client, root.path(), within).await?;
            let version =
                |version| GroupVersionForDiscovery { version, ..GroupVersionForDiscovery::default() };
            let versions = known.versions.into_iter().map(version).collect();
            vec![APIGroup { versions, ..APIGroup::default() }]
        }
        Root::Named => get::<APIGroupList>(client, root.path(), within).await?.groups,
    };
    let groups = groups.into_iter().map(|group| group_resources(client, root, group, within));
    Ok(stream::iter(groups).buffered(CONCURRENCY).collect().await)
}

async fn group_resources(client: &Client, root: Root, group: APIGroup, within: Duration) -> ApiGroup {
    let APIGroup { name, mut versions, preferred_version, .. } = group;
    // A stable sort: only the preferred version moves.
    versions.sort_by_key(|version| preferred_version.as_ref() != Some(version));
    let mut found = Vec::new();
    for GroupVersionForDiscovery { version, .. } in versions {
        let path = match root {
            Root::Core => format!("{}/{version}", root.path()),
            Root::Named => format!("{}/{name}/{version}", root.path()),
        };
        let (resources, freshness) = match get::<APIResourceList>(client, &path, within).await {
            Ok(list) => (resources(list.resources), Freshness::Current),
            Err(_) => (Vec::new(), Freshness::Stale),
        };
        found.push(ApiGroupVersion { version, resources, freshness });
    }
    ApiGroup { metadata: GroupName { name }, versions: found }
}

async fn get<T: DeserializeOwned>(client: &Client, path: &str, within: Duration) -> Result<T, ReadError> {
    let request = Verb::Get.request(path, Vec::new()).map_err(kube::core::request::Error::BuildRequest);
    decode(&send_and_read(client, request, within).await?)
}

fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, ReadError> {
    serde_json::from_slice(json)
        .map_err(|error| ReadError::rejected(format!("cannot decode the discovery response: {error}")))
}

/// Unaggregated discovery lists subresources as resources: `deployments`, `deployments/status`.
fn resources(list: Vec<APIResource>) -> Vec<Resource> {
    let mut resources: Vec<Resource> = Vec::new();
    for APIResource { name, kind, namespaced, verbs, singular_name, short_names, .. } in list {
        match name.split_once('/') {
            None => resources.push(Resource {
                plural: name,
                response_kind: Some(ResponseKind { kind }),
                singular: singular_name,
                short_names: short_names.unwrap_or_default(),
                scope: if namespaced { Scope::Namespaced } else { Scope::Cluster },
                verbs,
                subresources: Vec::new(),
            }),
            Some((parent, subresource)) => {
                if let Some(resource) = resources.iter_mut().find(|resource| resource.plural == parent) {
                    resource.subresources.push(Subresource { subresource: subresource.to_owned() });
                }
            }
        }
    }
    resources
}
