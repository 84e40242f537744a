//! Verb, resource, namespace and name of a request, parsed from its method and URL as the API server does.

use std::fmt;

use http::{Method, Uri};
use percent_encoding::percent_decode_str;

use super::query::Query;

/// The `RequestInfo` of a request, in the terms of the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub verb: Verb,
    /// `None` for discovery and for paths such as `/version` and `/readyz`.
    pub resource: Option<Resource>,
    /// The path of a non-resource request.
    pub path: Option<String>,
    /// The namespace of a `Namespace` object is its own name.
    pub namespace: Option<String>,
    /// From the path, or from the field selector of a list or watch. `None` for a `create`, which has the
    /// name in its body.
    pub name: Option<String>,
}

/// The verbs of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Also the verb of non-resource reads.
    Get,
    List,
    Watch,
    Create,
    Update,
    /// Includes server-side apply.
    Patch,
    Delete,
    DeleteCollection,
    /// Any other HTTP method.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    /// The name in paths, such as `deployments`.
    pub plural: String,
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
    /// Its objects are questions to the API server, which stores none of them.
    pub(super) fn is_review(&self) -> bool {
        matches!(&*self.group, "authentication.k8s.io" | "authorization.k8s.io")
    }

    /// Compares with the form of [`Display`](fmt::Display) without allocating: it runs for every recorded
    /// request.
    pub(super) fn is_named(&self, text: &str) -> bool {
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

    /// A call in one line: verb, resource or path, namespace and name, `-` for what is missing.
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
    fn requests_are_parsed_as_the_api_server_parses_them() {
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
    fn a_resource_has_exactly_one_name() {
        let (method, pods) = (Method::GET, "/api/v1/namespaces/s/pods/w".parse().unwrap());
        let scale = "/apis/apps.x.io/v1/namespaces/s/sets/w/scale".parse().unwrap();
        for uri in [pods, scale] {
            let resource = Call::of(&method, &uri).resource.unwrap();
            assert!(resource.is_named(&resource.to_string()));
            for other in
                ["pod", "pods.apps", "pods/log", "sets.apps.x.io", "sets/scale", "sets.apps/scale", ""]
            {
                assert!(!resource.is_named(other), "{resource} is not {other}");
            }
        }
    }
}
