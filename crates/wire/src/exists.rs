//! A last look at the object that is about to own another.
//!
//! What we were told of it may be old by now, and the garbage collector deletes what is owned by something that is gone.

use bellwether_engine::{Exists, Outcome};
use http::{Request, response::Parts};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    answer::Done,
    api_error::{ApiError, ErrorClass},
    request::Permission,
    verb::Verb,
};

/// Asks for the object as it is now, not as some cache has it.
pub(crate) fn request(owner: &Exists) -> Result<Request<Vec<u8>>, String> {
    Verb::GetMetadata.request(&owner.path(), Vec::new()).map_err(|error| error.to_string())
}

/// How a change ends that cannot begin.
pub(crate) fn objection(owner: &Exists, parts: &Parts, body: &[u8]) -> Option<Done> {
    let Err(error) = ApiError::check(parts, body) else {
        let there = serde_json::from_slice(body).is_ok_and(|it: ExistingObject| it.metadata.is(owner));
        return (!there).then(|| gone(owner));
    };
    if matches!(error.class, ErrorClass::NotFound | ErrorClass::NotServed) {
        return Some(gone(owner));
    }
    let right = Permission {
        verb: Verb::GetMetadata,
        resource: owner.plural.to_string(),
        group: &owner.kind.group,
        namespace: Some(&*owner.name.namespace).filter(|namespace| !namespace.is_empty()),
    };
    Some(Done::without(&error, &right))
}

/// If the owner is gone we hear of it, and do not want this any more. Until then it is tried again: whoever says so
/// may not know better.
fn gone(owner: &Exists) -> Done {
    Outcome::Failed(format!("{} {} is not there to take it over", owner.kind.kind, owner.name).into()).into()
}

/// Of an object: whether it is the one, and stays.
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
    fn is(&self, owner: &Exists) -> bool {
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

    fn owner(dialect: Dialect) -> Exists {
        Exists {
            kind: dialect.kind(),
            version: dialect.version().into(),
            plural: "applications".into(),
            name: NamespacedName::new("shop", "web"),
            uid: "a".into(),
        }
    }

    fn not_there() -> Outcome {
        Outcome::Failed("Application shop/web is not there to take it over".into())
    }

    #[test]
    fn it_is_asked_for_by_name() {
        let request = request(&owner(Dialect::Bellwether)).unwrap();
        assert_eq!(request.uri(), "/apis/bellwether.dev/v1alpha1/namespaces/shop/applications/web");
        let request = super::request(&owner(Dialect::AppK8sIo)).unwrap();
        assert_eq!(request.uri(), "/apis/app.k8s.io/v1beta1/namespaces/shop/applications/web");
    }

    #[test]
    fn of_the_core_group_and_without_a_namespace_it_has_another_path() {
        let node = Exists {
            kind: GroupKind::new("", "Node"),
            version: "v1".into(),
            plural: "nodes".into(),
            name: NamespacedName::new("", "n1"),
            uid: "a".into(),
        };
        assert_eq!(request(&node).unwrap().uri(), "/api/v1/nodes/n1");
        let (parts, ()) = Response::builder().status(403).body(()).unwrap().into_parts();
        let body = json!({"message": "nodes \"n1\" is forbidden: User \"us\" cannot get"}).to_string();
        let refused = Outcome::Refused(
            "Bellwether may not get nodes: grant it the verb get on nodes in the core API group".into(),
        );
        assert_eq!(objection(&node, &parts, body.as_bytes()).map(|done| done.outcome), Some(refused));
    }

    #[rstest]
    #[case::there(200, json!({"metadata": {"uid": "a", "deletionTimestamp": null}}), None)]
    #[case::another(200, json!({"metadata": {"uid": "b"}}), Some(not_there()))]
    #[case::going(
        200, json!({"metadata": {"uid": "a", "deletionTimestamp": "2026-11-14T10:00:00Z"}}), Some(not_there()),
    )]
    #[case::gone(404, json!({}), Some(not_there()))]
    #[case::nonsense(200, json!([]), Some(not_there()))]
    #[case::no_right(
        403, json!({"message": "applications \"web\" is forbidden: User \"us\" cannot get"}),
        Some(Outcome::Refused("Bellwether may not get applications in namespace shop: grant it the verb get on \
                               applications in the API group bellwether.dev".into())),
    )]
    #[case::trouble(500, json!({"message": "oh"}), Some(Outcome::Failed("oh".into())))]
    fn only_an_application_that_stays_adopts(
        #[case] status: u16,
        #[case] body: Value,
        #[case] expected: Option<Outcome>,
    ) {
        let (parts, ()) = Response::builder().status(status).body(()).unwrap().into_parts();
        let objection = objection(&owner(Dialect::Bellwether), &parts, body.to_string().as_bytes());
        assert_eq!(objection.map(|done| done.outcome), expected);
    }
}
