//! What a request asks of the API server, read from its method and address as the API server itself reads them.

use std::fmt;

use http::{Method, Uri};
use percent_encoding::percent_decode_str;

use super::query::Query;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// What shall be done.
    pub verb: Verb,
    /// With what; none for paths such as `/version` and `/readyz`, and for discovery.
    pub resource: Option<Resource>,
    /// The path, where there is no resource.
    pub path: Option<String>,
    /// In which namespace. A `Namespace` object counts as being in itself.
    pub namespace: Option<String>,
    /// With which object: by the path, or by a list's or watch's field selector. A `create` has its name in the body,
    /// and none here.
    pub name: Option<String>,
}

/// What is done, in the words of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads one object, or a path that is no resource.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection, or one object in it.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes an object in part; server-side apply too.
    Patch,
    /// Removes one object.
    Delete,
    /// Removes a collection.
    DeleteCollection,
    /// Whatever else HTTP knows.
    Other,
}

/// The resource that a request is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The API group, empty for the core group.
    pub group: String,
    /// The version in the group.
    pub version: String,
    /// The resource's name in paths, such as `deployments`.
    pub plural: String,
    /// The part of an object, such as `status`.
    pub subresource: Option<String>,
}

/// `pods`, `deployments.apps`, `deployments.apps/status`.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        self.subresource.as_ref().map_or(Ok(()), |subresource| write!(f, "/{subresource}"))
    }
}

impl Resource {
    /// Whether it is the one that is written like this. It is asked for every request on record, and so makes no text
    /// to compare with.
    pub(super) fn is_written(&self, text: &str) -> bool {
        let (object, subresource) = match text.split_once('/') {
            Some((object, subresource)) => (object, Some(subresource)),
            None => (text, None),
        };
        let (plural, group) = object.split_once('.').unwrap_or((object, ""));
        self.plural == plural && self.group == group && self.subresource.as_deref() == subresource
    }
}

impl Call {
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let path = percent_decode_str(uri.path()).decode_utf8_lossy();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => on_resource(method, uri, "", version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                on_resource(method, uri, group, version, rest)
            }
            _ => Self {
                verb: verb(method),
                resource: None,
                path: Some(format!("/{}", parts.join("/"))),
                namespace: None,
                name: None,
            },
        }
    }
}

fn on_resource(method: &Method, uri: &Uri, group: &str, version: &str, parts: &[&str]) -> Call {
    let (watched_by_path, parts) = match parts {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, parts),
    };
    let (namespace, parts) = match parts {
        // A namespace's own subresources are not resources in it.
        ["namespaces", namespace] | ["namespaces", namespace, "status" | "finalize", ..] => {
            (Some(*namespace), parts)
        }
        ["namespaces", namespace, inside @ ..] => (Some(*namespace), inside),
        _ => (None, parts),
    };
    let part = |index: usize| parts.get(index).map(|part| (*part).to_owned());

    let query = Query::of(uri);
    let mut name = part(1);
    let verb = match verb(method) {
        _ if watched_by_path => Verb::Watch,
        Verb::Get if name.is_none() => {
            name = query.selected_name().map(str::to_owned);
            if query.is_true("watch") { Verb::Watch } else { Verb::List }
        }
        Verb::Delete if name.is_none() => Verb::DeleteCollection,
        verb => verb,
    };
    Call {
        verb,
        resource: Some(Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: part(0).unwrap_or_default(),
            subresource: part(2),
        }),
        path: None,
        namespace: namespace.map(str::to_owned),
        name,
    }
}

fn verb(method: &Method) -> Verb {
    match *method {
        Method::GET | Method::HEAD => Verb::Get,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call in one line: verb, resource or path, namespace and name, `-` for what is not there.
    fn read(request: &str) -> String {
        let (method, uri) = request.split_once(' ').unwrap();
        let call = Call::of(&method.parse().unwrap(), &uri.parse().unwrap());
        let or_dash = |it: Option<String>| it.unwrap_or("-".to_owned());
        let subject = match call.resource {
            Some(resource) => format!("{} {resource}", resource.version),
            None => or_dash(call.path),
        };
        format!("{:?} {subject} {} {}", call.verb, or_dash(call.namespace), or_dash(call.name))
    }

    #[test]
    fn requests_are_read_as_the_api_server_reads_them() {
        for (request, expected) in [
            ("GET /api/v1/pods", "List v1 pods - -"),
            ("GET /api/v1/pods?watch=true", "Watch v1 pods - -"),
            ("GET /api/v1/pods?watch=0&limit=500", "List v1 pods - -"),
            ("GET /api/v1/namespaces/shop/pods", "List v1 pods shop -"),
            ("HEAD /api/v1/namespaces/shop/pods/web", "Get v1 pods shop web"),
            ("GET /api/v1/namespaces/shop/pods/web", "Get v1 pods shop web"),
            ("GET /api/v1/namespaces/shop/pods/web/log?follow=true", "Get v1 pods/log shop web"),
            ("POST /api/v1/namespaces/shop/pods", "Create v1 pods shop -"),
            ("POST /api/v1/namespaces/shop/pods/web/eviction", "Create v1 pods/eviction shop web"),
            ("DELETE /api/v1/namespaces/shop/pods/web", "Delete v1 pods shop web"),
            ("DELETE /api/v1/namespaces/shop/pods?labelSelector=a", "DeleteCollection v1 pods shop -"),
            ("GET /api/v1/namespaces", "List v1 namespaces - -"),
            ("GET /api/v1/namespaces?watch", "Watch v1 namespaces - -"),
            ("POST /api/v1/namespaces", "Create v1 namespaces - -"),
            ("GET /api/v1/namespaces/shop", "Get v1 namespaces shop shop"),
            ("PATCH /api/v1/namespaces/shop/status", "Patch v1 namespaces/status shop shop"),
            ("PUT /api/v1/namespaces/shop/finalize", "Update v1 namespaces/finalize shop shop"),
            ("GET /apis/apps/v1/deployments", "List v1 deployments.apps - -"),
            ("PUT /apis/apps/v1/namespaces/shop/deployments/web", "Update v1 deployments.apps shop web"),
            ("PATCH /apis/apps/v1/namespaces/s/deployments/w/status", "Patch v1 deployments.apps/status s w"),
            ("GET /apis/x.io/v1beta1/widgets/one", "Get v1beta1 widgets.x.io - one"),
            ("GET /api/v1/pods?fieldSelector=metadata.name%3Dweb", "List v1 pods - web"),
            ("GET /api/v1/namespaces/s/pods?watch=1&fieldSelector=metadata.name=w", "Watch v1 pods s w"),
            (
                "DELETE /api/v1/namespaces/s/pods?fieldSelector=metadata.name=w",
                "DeleteCollection v1 pods s -",
            ),
            ("GET /api/v1/watch/namespaces/shop/pods", "Watch v1 pods shop -"),
            (
                "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                "Get v1 clusterroles.rbac.authorization.k8s.io - system:node",
            ),
            ("OPTIONS /api/v1/pods", "Other v1 pods - -"),
            ("GET /readyz?verbose", "Get /readyz - -"),
            ("GET /version", "Get /version - -"),
            ("GET /", "Get / - -"),
            ("GET /api", "Get /api - -"),
            ("GET /api/v1", "Get /api/v1 - -"),
            ("GET /apis/apps", "Get /apis/apps - -"),
            ("GET /apis/apps/v1", "Get /apis/apps/v1 - -"),
            ("GET /openapi/v3/apis/apps/v1", "Get /openapi/v3/apis/apps/v1 - -"),
        ] {
            assert_eq!(read(request), expected, "{request}");
        }
    }

    #[test]
    fn a_resource_is_known_by_its_own_words_alone() {
        let (method, pods) = (Method::GET, "/api/v1/namespaces/s/pods/w".parse().unwrap());
        let scale = "/apis/apps.x.io/v1/namespaces/s/sets/w/scale".parse().unwrap();
        for uri in [pods, scale] {
            let resource = Call::of(&method, &uri).resource.unwrap();
            assert!(resource.is_written(&resource.to_string()));
            for other in
                ["pod", "pods.apps", "pods/log", "sets.apps.x.io", "sets/scale", "sets.apps/scale", ""]
            {
                assert!(!resource.is_written(other), "{resource} is not {other}");
            }
        }
    }
}
