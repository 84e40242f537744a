//! The HTTP request for a write.

use std::fmt;

use bellwether_engine::{OwnerReference, Patched, ServedResource, Slot, Write};
use http::Request;
use serde::Serialize;
use serde_json::{Value, json};

use crate::verb::Verb;

#[derive(Clone, Copy)]
pub(crate) struct WriteRequest<'a> {
    pub(crate) served: &'a ServedResource,
    pub(crate) slot: &'a Slot,
    pub(crate) write: &'a Write,
}

impl WriteRequest<'_> {
    /// Fails only if the name of the object is not valid in a URI path.
    pub(crate) fn request(self) -> Result<Request<Vec<u8>>, String> {
        let body = match self.write {
            Write::Status { uid, resource_version: version, patch, .. } => {
                let metadata = Preconditions { uid, resource_version: version.as_str() };
                serde_json::to_vec(&StatusPatch { metadata, status: patch })
            }
            Write::OwnerReferences { uid, resource_version: version, owners, .. } => {
                serde_json::to_vec(&json!({ "metadata": {
                    "uid": uid,
                    "resourceVersion": version.as_str(),
                    "ownerReferences": non_empty(owners),
                }}))
            }
            Write::Create { manifest, .. } => serde_json::to_vec(&**manifest),
            Write::SetFields { uid, resource_version: version, fields, .. } => {
                let guards = [("/metadata/uid", &**uid), ("/metadata/resourceVersion", version.as_str())];
                let guards =
                    guards.map(|(path, value)| json!({ "op": "replace", "path": path, "value": value }));
                let fields = fields.iter().map(|(path, value)| match value {
                    Value::Null => json!({ "op": "remove", "path": json_pointer(path) }),
                    value => json!({ "op": "add", "path": json_pointer(path), "value": value }),
                });
                serde_json::to_vec(&guards.into_iter().chain(fields).collect::<Vec<_>>())
            }
            Write::Apply { uid, resource_version: version, status, .. } => {
                let expected = Preconditions { uid, resource_version: version.as_str() };
                serde_json::to_vec(&self.applied(&expected, status))
            }
            Write::Delete { uid } => serde_json::to_vec(&json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": { "uid": uid },
                "propagationPolicy": "Background",
            })),
        };
        let body = body.map_err(|error| error.to_string())?;
        let request = match self.write {
            Write::Create { dry_run: true, .. } => self.verb().dry_run(&self.path(), body),
            Write::Apply { manager, force, .. } => Verb::apply(&self.path(), manager, *force, body),
            _ => self.verb().request(&self.path(), body),
        };
        request.map_err(|error| error.to_string())
    }

    fn verb(self) -> Verb {
        match self.write {
            Write::Status { .. } | Write::OwnerReferences { .. } => Verb::MergePatch,
            Write::Create { .. } => Verb::Create,
            Write::SetFields { .. } => Verb::JsonPatch,
            Write::Apply { .. } => Verb::Apply,
            Write::Delete { .. } => Verb::Delete,
        }
    }

    fn path(self) -> String {
        let (kind, name) = (&self.slot.object.kind, &self.slot.object.name);
        let has_name = !matches!(self.write, Write::Create { .. });
        let path = self.served.path(&kind.group, Some(&name.namespace), has_name.then_some(&*name.name));
        path + self.subresource()
    }

    fn subresource(self) -> &'static str {
        match self.write {
            Write::Status { .. } | Write::Apply { .. } | Write::SetFields { part: Patched::Status, .. } => {
                "/status"
            }
            _ => "",
        }
    }

    /// The body of a server-side apply: the identity of the object and the fields of the status.
    fn applied(self, expected: &Preconditions<'_>, status: &Value) -> Value {
        let (kind, name) = (&self.slot.object.kind, &self.slot.object.name);
        let group = if kind.group.is_empty() { String::new() } else { format!("{}/", kind.group) };
        let namespace = self.served.namespaced.then_some(&*name.namespace);
        let mut metadata = json!(expected);
        metadata["name"] = Value::from(&*name.name);
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        json!({
            "apiVersion": format!("{group}{}", self.served.version),
            "kind": &*kind.kind,
            "metadata": metadata,
            "status": status,
        })
    }

    /// The permission that the request requires.
    pub(crate) fn permission(&self) -> Permission<'_> {
        Permission {
            verb: self.verb(),
            resource: format!("{}{}", self.served.plural, self.subresource()),
            group: &self.slot.object.kind.group,
            namespace: self.served.namespaced.then_some(&*self.slot.object.name.namespace),
        }
    }
}

/// RFC 6901.
fn json_pointer(path: &[Box<str>]) -> String {
    let escaped = |field: &str| field.replace('~', "~0").replace('/', "~1");
    path.iter().fold(String::new(), |pointer, field| pointer + "/" + &escaped(field))
}

/// `null` in a merge patch deletes the list.
fn non_empty(owners: &[OwnerReference]) -> Option<&[OwnerReference]> {
    Some(owners).filter(|owners| !owners.is_empty())
}

/// Borrows the patch: a status can be large.
#[derive(Serialize)]
struct StatusPatch<'a> {
    metadata: Preconditions<'a>,
    status: &'a Value,
}

/// The API server rejects the write if the object has another UID or resourceVersion.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions<'a> {
    uid: &'a str,
    resource_version: &'a str,
}

/// An RBAC permission.
pub(crate) struct Permission<'a> {
    pub(crate) verb: Verb,
    pub(crate) resource: String,
    pub(crate) group: &'a str,
    pub(crate) namespace: Option<&'a str>,
}

/// The error for a missing permission, and how to grant it.
impl fmt::Display for Permission<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, group, namespace, .. } = self;
        let verb = self.verb.name();
        write!(f, "cannot {verb} {resource}")?;
        if let Some(namespace) = namespace {
            write!(f, " in namespace {namespace}")?;
        }
        write!(f, ": forbidden. Grant Bellwether the verb {verb} on {resource} in ")?;
        if group.is_empty() { f.write_str("the core API group") } else { write!(f, "the API group {group}") }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Cluster, GroupKind, NamespacedName, ObjectKey, Part, ResourceVersion};
    use rstest::rstest;

    use super::*;

    fn served(plural: &str, version: &str, namespaced: bool) -> ServedResource {
        ServedResource {
            version: version.into(),
            versions: [version.into()].into(),
            plural: plural.into(),
            namespaced,
            has_status: true,
        }
    }

    fn slot(kind: GroupKind, name: NamespacedName) -> Slot {
        let object = ObjectKey { cluster: Cluster::hub(), kind, name };
        Slot { object, part: Part::Status }
    }

    fn status() -> Write {
        let patch = json!({ "ready": "True" }).into();
        Write::Status {
            uid: "u".into(),
            resource_version: ResourceVersion::new("7"),
            patch,
            transitions: Box::default(),
            owned_kinds: Box::default(),
        }
    }

    fn owners(owners: &[OwnerReference]) -> Write {
        Write::OwnerReferences {
            uid: "u".into(),
            resource_version: ResourceVersion::new("7"),
            owners: owners.into(),
            required_owner: None,
        }
    }

    fn owner() -> OwnerReference {
        OwnerReference {
            api_version: "bellwether.dev/v1alpha1".into(),
            kind: "Application".into(),
            name: "shop".into(),
            uid: "a".into(),
            controller: Some(false),
            block_owner_deletion: Some(true),
        }
    }

    #[rstest]
    #[case::status(
        status(),
        "PATCH /apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web/status?fieldManager=bellwether",
        json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"ready": "True"}}),
    )]
    #[case::owners(
        owners(&[owner()]),
        "PATCH /apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web?fieldManager=bellwether",
        json!({"metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences": [{
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": "shop", "uid": "a",
            "controller": false, "blockOwnerDeletion": true,
        }]}}),
    )]
    #[case::no_owners(
        owners(&[]),
        "PATCH /apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web?fieldManager=bellwether",
        json!({"metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences": null}}),
    )]
    #[case::create(
        Write::Create { manifest: json!({"kind": "Application"}).into(), owner: "".into(), dry_run: false },
        "POST /apis/bellwether.dev/v1alpha1/namespaces/shop/applications?fieldManager=bellwether",
        json!({"kind": "Application"}),
    )]
    #[case::dry_run(
        Write::Create { manifest: json!({"kind": "Application"}).into(), owner: "".into(), dry_run: true },
        "POST /apis/bellwether.dev/v1alpha1/namespaces/shop/applications?fieldManager=bellwether&dryRun=All",
        json!({"kind": "Application"}),
    )]
    #[case::set_fields(
        Write::SetFields {
            uid: "u".into(), resource_version: ResourceVersion::new("7"), part: Patched::Object,
            fields: [(["metadata".into(), "labels".into(), "a/b~c".into()].into(), json!("d"))].into(),
        },
        "PATCH /apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web?fieldManager=bellwether",
        json!([
            {"op": "replace", "path": "/metadata/uid", "value": "u"},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "add", "path": "/metadata/labels/a~1b~0c", "value": "d"},
        ]),
    )]
    #[case::set_status(
        Write::SetFields {
            uid: "u".into(), resource_version: ResourceVersion::new("7"), part: Patched::Status,
            fields: [(["status".into()].into(), json!({"phase": null}))].into(),
        },
        "PATCH /apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web/status?fieldManager=bellwether",
        json!([
            {"op": "replace", "path": "/metadata/uid", "value": "u"},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "add", "path": "/status", "value": {"phase": null}},
        ]),
    )]
    #[case::remove_status(
        Write::SetFields {
            uid: "u".into(), resource_version: ResourceVersion::new("7"), part: Patched::Status,
            fields: [(["status".into()].into(), Value::Null)].into(),
        },
        "PATCH /apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web/status?fieldManager=bellwether",
        json!([
            {"op": "replace", "path": "/metadata/uid", "value": "u"},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "remove", "path": "/status"},
        ]),
    )]
    #[case::apply(
        Write::Apply {
            uid: "u".into(), resource_version: ResourceVersion::new("7"), manager: "bellwether-p".into(),
            status: json!({"ready": "True"}).into(), force: false,
        },
        "PATCH /apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web/status?fieldManager=bellwether-p\
         &force=false",
        json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7"}, "status": {"ready": "True"},
        }),
    )]
    #[case::delete(
        Write::Delete { uid: "u".into() },
        "DELETE /apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web",
        json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"},
            "propagationPolicy": "Background",
        }),
    )]
    fn each_change_has_its_request(#[case] write: Write, #[case] line: &str, #[case] body: Value) {
        let served = served("applications", "v1alpha1", true);
        let slot = slot(GroupKind::bellwether("Application"), NamespacedName::new("shop", "web"));
        let request = WriteRequest { served: &served, slot: &slot, write: &write }.request().unwrap();
        assert_eq!(format!("{} {}", request.method(), request.uri()), line);
        assert_eq!(serde_json::from_slice::<Value>(request.body()).unwrap(), body);
    }

    #[rstest]
    #[case::status(
        GroupKind::bellwether("Application"),
        "applications",
        true,
        status(),
        "cannot patch applications/status in namespace shop: forbidden. Grant Bellwether the verb patch on \
         applications/status in the API group bellwether.dev"
    )]
    #[case::pods(
        GroupKind::pod(),
        "pods",
        true,
        Write::Delete { uid: "u".into() },
        "cannot delete pods in namespace shop: forbidden. Grant Bellwether the verb delete on pods in the core API group"
    )]
    #[case::cluster_scoped(
        GroupKind::bellwether("Rollup"),
        "rollups",
        false,
        owners(&[]),
        "cannot patch rollups: forbidden. Grant Bellwether the verb patch on rollups in the API group bellwether.dev"
    )]
    fn a_missing_permission_is_named_as_rbac_grants_it(
        #[case] kind: GroupKind,
        #[case] plural: &str,
        #[case] namespaced: bool,
        #[case] write: Write,
        #[case] sentence: &str,
    ) {
        let served = served(plural, "v1", namespaced);
        let slot = slot(kind, NamespacedName::new("shop", "web"));
        assert_eq!(
            WriteRequest { served: &served, slot: &slot, write: &write }.permission().to_string(),
            sentence
        );
    }
}
