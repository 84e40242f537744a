//! Which kinds there are, as an API server tells it.

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

use super::answer::{ask, ask_all, whole};

/// Everything in one answer, by preference.
const ALL_AT_ONCE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// How many groups are asked for at a time, where they must be asked for one by one.
const AT_A_TIME: usize = 4;

/// A group of kinds. This, and what is in it, is as API servers write it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Group {
    pub(super) metadata: GroupName,
    /// The best comes first.
    #[serde(deserialize_with = "list_or_null")]
    pub(super) versions: Vec<GroupVersion>,
}

/// What a group is called.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GroupName {
    pub(super) name: String,
}

/// A version of a group.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GroupVersion {
    pub(super) version: String,
    #[serde(deserialize_with = "list_or_null")]
    pub(super) resources: Vec<Resource>,
    pub(super) freshness: Freshness,
}

/// Whether the list of resources is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Freshness {
    /// It is not: the server behind it did not answer.
    Stale,
    #[default]
    #[serde(other)]
    Current,
}

/// A kind in a version of its group.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Resource {
    /// As it stands in paths.
    #[serde(rename = "resource")]
    pub(super) plural: String,
    pub(super) response_kind: Option<ResponseKind>,
    /// What people may call it besides: one of it, and in short.
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

/// What its objects are.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseKind {
    pub(super) kind: String,
}

/// Where its objects are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Scope {
    Namespaced,
    #[default]
    #[serde(other)]
    Cluster,
}

/// A part of an object that can be written by itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Subresource {
    pub(super) subresource: String,
}

/// Servers that are written in Go may say `null` instead of giving an empty list.
fn list_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// All groups at one of the two roots.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Groups {
    items: Vec<Group>,
}

/// Asks which kinds there are.
pub(super) async fn discover(client: &Client, within: Duration) -> Result<Vec<Group>, ReadError> {
    let mut groups = Vec::new();
    for root in [Root::Core, Root::Named] {
        match all_at_once(client, root, within).await? {
            Some(found) => groups.extend(found),
            None => groups.extend(one_by_one(client, root, within).await?),
        }
    }
    Ok(groups)
}

/// Where groups are found.
#[derive(Clone, Copy, Debug)]
enum Root {
    /// The group without a name.
    Core,
    /// All others.
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

/// All groups in one answer; none if the server does not know how.
async fn all_at_once(client: &Client, root: Root, within: Duration) -> Result<Option<Vec<Group>>, ReadError> {
    let question = Request::get(root.path()).header(header::ACCEPT, ALL_AT_ONCE).body(Vec::new());
    let answer = match ask(client, question.map_err(kube::core::request::Error::BuildRequest), within).await {
        Ok(answer) => answer,
        // A server may have nothing to do with the core group. One without any others is not looking at itself.
        Err(ReadError::NotFound { .. }) if matches!(root, Root::Core) => return Ok(Some(Vec::new())),
        Err(ReadError::Rejected { .. }) => return Ok(None),
        Err(trouble) => return Err(trouble),
    };
    let is_what_we_asked_for = |kind: &header::HeaderValue| {
        kind.to_str().is_ok_and(|kind| kind.contains("as=APIGroupDiscoveryList"))
    };
    if !answer.headers().get(header::CONTENT_TYPE).is_some_and(is_what_we_asked_for) {
        return Ok(None);
    }
    Ok(Some(understood::<Groups>(&whole(answer, within).await?)?.items))
}

/// All groups, as API servers told it before they could do so in one answer.
async fn one_by_one(client: &Client, root: Root, within: Duration) -> Result<Vec<Group>, ReadError> {
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
    let groups = groups.into_iter().map(|group| one_group(client, root, group, within));
    Ok(stream::iter(groups).buffered(AT_A_TIME).collect().await)
}

/// What is in a group, asked for version by version.
async fn one_group(client: &Client, root: Root, group: APIGroup, within: Duration) -> Group {
    let APIGroup { name, mut versions, preferred_version, .. } = group;
    // The order stays, but for the one that is preferred.
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
        found.push(GroupVersion { version, resources, freshness });
    }
    Group { metadata: GroupName { name }, versions: found }
}

async fn get<T: DeserializeOwned>(client: &Client, path: &str, within: Duration) -> Result<T, ReadError> {
    let question = Verb::Get.request(path, Vec::new()).map_err(kube::core::request::Error::BuildRequest);
    understood(&ask_all(client, question, within).await?)
}

fn understood<T: DeserializeOwned>(json: &[u8]) -> Result<T, ReadError> {
    serde_json::from_slice(json)
        .map_err(|error| ReadError::rejected(format!("cannot read discovery: {error}")))
}

/// The old way, parts of objects stand beside them: `deployments`, `deployments/status`.
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
            Some((whole, part)) => {
                if let Some(resource) = resources.iter_mut().find(|resource| resource.plural == whole) {
                    resource.subresources.push(Subresource { subresource: part.to_owned() });
                }
            }
        }
    }
    resources
}
