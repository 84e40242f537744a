//! Checks that an owner exists before an owner reference to it is written.
//!
//! The cached owner may be stale, and the garbage collector deletes objects whose owner does not exist.

use bellwether_engine::{Outcome, RequiredOwner};
use http::{Request, response::Parts};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    api_error::{ApiError, ErrorClass},
    verb::Verb,
    write_outcome::WriteResult,
    write_request::Permission,
};

/// A consistent read: without `resourceVersion`, the API server does not answer from its watch cache.
pub(crate) fn request(owner: &RequiredOwner) -> Result<Request<Vec<u8>>, String> {
    Verb::GetMetadata.request(&owner.path(), Vec::new()).map_err(|error| error.to_string())
}

/// The outcome if the owner does not exist or cannot be read; `None` if the write may follow.
pub(crate) fn check_response(owner: &RequiredOwner, parts: &Parts, body: &[u8]) -> Option<WriteResult> {
    let Err(error) = ApiError::check(parts, body) else {
        let exists =
            serde_json::from_slice(body).is_ok_and(|object: ExistingObject| object.metadata.is(owner));
        return (!exists).then(|| gone(owner));
    };
    if matches!(error.class, ErrorClass::NotFound | ErrorClass::NotServed) {
        return Some(gone(owner));
    }
    let permission = Permission {
        verb: Verb::GetMetadata,
        resource: owner.plural.to_string(),
        group: &owner.kind.group,
        namespace: Some(&*owner.name.namespace).filter(|namespace| !namespace.is_empty()),
    };
    Some(WriteResult::from_error(&error, &permission))
}

/// `Failed`, so that the outbox retries: the response may come from a stale replica. If the owner is really
/// gone, the watch reports it and the engine withdraws the write.
fn gone(owner: &RequiredOwner) -> WriteResult {
    Outcome::Failed(
        format!("owner {} {} does not exist or is being deleted", owner.kind.kind, owner.name).into(),
    )
    .into()
}

#[derive(Deserialize)]
struct ExistingObject {
    metadata: ExistsMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExistsMetadata {
    uid: Box<str>,
    deletion_timestamp: Option<IgnoredAny>,
}

impl ExistsMetadata {
    fn is(&self, owner: &RequiredOwner) -> bool {
        self.uid == owner.uid && self.deletion_timestamp.is_none()
    }
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Dialect, GroupKind, NamespacedName};
    use http::Response;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn owner(dialect: Dialect) -> RequiredOwner {
        RequiredOwner {
            kind: dialect.kind(),
            api_version: dialect.version().into(),
            plural: "applications".into(),
            name: NamespacedName::new("shop", "web"),
            uid: "a".into(),
        }
    }

    fn not_found() -> Outcome {
        Outcome::Failed("owner Application shop/web does not exist or is being deleted".into())
    }

    #[test]
    fn the_request_names_the_owner() {
        let request = request(&owner(Dialect::Bellwether)).unwrap();
        assert_eq!(request.uri(), "/apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web");
        let request = super::request(&owner(Dialect::AppK8sIo)).unwrap();
        assert_eq!(request.uri(), "/apis/app.k8s.io/v1beta1/namespaces/shop/applications/web");
    }

    #[test]
    fn an_owner_in_the_core_group_without_a_namespace_has_another_path() {
        let node = RequiredOwner {
            kind: GroupKind::new("", "Node"),
            api_version: "v1".into(),
            plural: "nodes".into(),
            name: NamespacedName::new("", "n1"),
            uid: "a".into(),
        };
        assert_eq!(request(&node).unwrap().uri(), "/api/v1/nodes/n1");
        let (parts, ()) = Response::builder().status(403).body(()).unwrap().into_parts();
        let body = json!({"message": "nodes \"n1\" is forbidden: User \"us\" cannot get"}).to_string();
        let refused = Outcome::Rejected(
            "cannot get nodes: forbidden. Grant Bellwether the verb get on nodes in the core API group"
                .into(),
        );
        assert_eq!(check_response(&node, &parts, body.as_bytes()).map(|done| done.outcome), Some(refused));
    }

    #[rstest]
    #[case::exists(200, json!({"metadata": {"uid": "a", "deletionTimestamp": null}}), None)]
    #[case::another_uid(200, json!({"metadata": {"uid": "b"}}), Some(not_found()))]
    #[case::being_deleted(
        200, json!({"metadata": {"uid": "a", "deletionTimestamp": "2026-11-14T10:00:00Z"}}), Some(not_found()),
    )]
    #[case::gone(404, json!({}), Some(not_found()))]
    #[case::not_an_object(200, json!([]), Some(not_found()))]
    #[case::forbidden(
        403, json!({"message": "applications \"web\" is forbidden: User \"us\" cannot get"}),
        Some(Outcome::Rejected("cannot get applications in namespace shop: forbidden. Grant Bellwether the verb get on \
                               applications in the API group bellwether.dev".into())),
    )]
    #[case::server_error(500, json!({"message": "oh"}), Some(Outcome::Failed("oh".into())))]
    fn only_an_existing_application_becomes_owner(
        #[case] status: u16,
        #[case] body: Value,
        #[case] expected: Option<Outcome>,
    ) {
        let (parts, ()) = Response::builder().status(status).body(()).unwrap().into_parts();
        let check_response = check_response(&owner(Dialect::Bellwether), &parts, body.to_string().as_bytes());
        assert_eq!(check_response.map(|done| done.outcome), expected);
    }
}
