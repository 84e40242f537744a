//! What an API server answered, and what that means for a change.

use std::time::Duration;

use bellwether_engine::{Change, Outcome, ResourceVersion};
use http::response::Parts;
use serde::Deserialize;

use crate::{
    api_error::{ApiError, ErrorClass},
    request::{ChangeRequest, Permission},
};

/// How a change ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The end.
    pub outcome: Outcome,
    /// How long the API server wants not to be asked again, if it said so.
    pub retry_after: Option<Duration>,
}

impl From<Outcome> for Done {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, retry_after: None }
    }
}

/// Of an object: what says which version it is in.
#[derive(Deserialize)]
struct ObjectMetadata {
    #[serde(default)]
    metadata: VersionMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionMetadata {
    resource_version: Option<Box<str>>,
}

impl ChangeRequest<'_> {
    /// What the answer means.
    pub(crate) fn answered(&self, answer: &Parts, body: &[u8]) -> Done {
        match ApiError::check(answer, body) {
            Ok(()) => Outcome::Done(self.version(body)).into(),
            Err(error) => self.refused(&error),
        }
    }

    /// The version in which the object is now. What was only tried out has none.
    fn version(&self, body: &[u8]) -> Option<ResourceVersion> {
        if matches!(self.change, Change::Create { dry_run: true, .. }) {
            return None;
        }
        let answered: ObjectMetadata = serde_json::from_slice(body).ok()?;
        answered.metadata.resource_version.as_deref().map(ResourceVersion::new)
    }

    fn refused(&self, error: &ApiError) -> Done {
        let (is_create, is_delete) =
            (matches!(self.change, Change::Create { .. }), matches!(self.change, Change::Delete { .. }));
        match error.class {
            ErrorClass::NotFound | ErrorClass::NotServed => Outcome::Absent.into(),
            // The object that was meant is gone; another one has its name.
            ErrorClass::UidMismatch if is_delete => Outcome::Absent.into(),
            // Not about this object: the namespace's quota, for one, is counted by several at a time.
            ErrorClass::Conflict | ErrorClass::FieldConflict | ErrorClass::UidMismatch if is_create => {
                Done::failed(error)
            }
            ErrorClass::FieldConflict if matches!(self.change, Change::Apply { .. }) => {
                Outcome::FieldConflict(error.field_conflicts().collect()).into()
            }
            ErrorClass::AlreadyExists
            | ErrorClass::Conflict
            | ErrorClass::FieldConflict
            | ErrorClass::UidMismatch => Outcome::Conflict.into(),
            _ => Done::without(error, &self.right()),
        }
    }
}

impl Done {
    /// What an error means for a request that takes this right.
    pub(crate) fn without(error: &ApiError, right: &Permission<'_>) -> Self {
        match error.class {
            ErrorClass::Forbidden => Outcome::Refused(right.to_string().into()).into(),
            ErrorClass::AdmissionDenied
            | ErrorClass::DryRunUnsupported
            | ErrorClass::Invalid
            | ErrorClass::TooLarge => Outcome::Refused(error.to_string().into()).into(),
            _ => Self::failed(error),
        }
    }

    /// It may go better another time.
    fn failed(error: &ApiError) -> Self {
        Self { outcome: Outcome::Failed(error.to_string().into()), retry_after: error.retry_after }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Cluster, GroupKind, NamespacedName, ObjectKey, Part, Served, Slot};
    use http::{Response, header::RETRY_AFTER};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn answered(change: &Change, status: u16, header: Option<&str>, body: &[u8]) -> Done {
        let served = Served {
            version: "v1".into(),
            versions: ["v1".into()].into(),
            plural: "pods".into(),
            namespaced: true,
            has_status: true,
        };
        let object = ObjectKey {
            cluster: Cluster::hub(),
            kind: GroupKind::pod(),
            name: NamespacedName::new("shop", "web"),
        };
        let slot = Slot { object, part: Part::Status };
        let mut answer = Response::builder().status(status);
        if let Some(header) = header {
            answer = answer.header(RETRY_AFTER, header);
        }
        let (answer, ()) = answer.body(()).unwrap().into_parts();
        ChangeRequest { served: &served, slot: &slot, change }.answered(&answer, body)
    }

    fn status() -> Change {
        let patch = json!({}).into();
        Change::Status {
            uid: "u".into(),
            version: ResourceVersion::new("7"),
            patch,
            transitions: Box::default(),
            claims: Box::default(),
        }
    }

    fn create(dry_run: bool) -> Change {
        Change::Create { manifest: json!({}).into(), owner: "".into(), dry_run }
    }

    fn delete() -> Change {
        Change::Delete { uid: "u".into() }
    }

    fn refused(why: &str) -> Outcome {
        Outcome::Refused(why.into())
    }

    fn failed(why: &str) -> Outcome {
        Outcome::Failed(why.into())
    }

    #[rstest]
    #[case::patched(status(), json!({"metadata": {"resourceVersion": "8", "name": "web"}, "spec": {}}), Some("8"))]
    #[case::created(create(false), json!({"metadata": {"resourceVersion": "8"}}), Some("8"))]
    #[case::tried_out(create(true), json!({"metadata": {"resourceVersion": "8"}}), None)]
    #[case::deleted(delete(), json!({"kind": "Status", "status": "Success"}), None)]
    #[case::nonsense(status(), json!([1]), None)]
    fn what_is_done_has_a_version(
        #[case] change: Change,
        #[case] body: Value,
        #[case] version: Option<&str>,
    ) {
        let done = answered(&change, 200, None, body.to_string().as_bytes());
        assert_eq!(done, Outcome::Done(version.map(ResourceVersion::new)).into());
    }

    #[rstest]
    #[case::absent(status(), 404, json!({"message": "pods \"web\" not found"}), Outcome::Absent)]
    #[case::another_version(status(), 409, json!({"reason": "Conflict"}), Outcome::Conflict)]
    #[case::there_already(create(false), 409, json!({"reason": "AlreadyExists"}), Outcome::Conflict)]
    #[case::quota_is_busy(
        create(false), 409, json!({"reason": "Conflict", "message": "quota was changed"}), failed("quota was changed"),
    )]
    #[case::another_object(
        delete(), 409, json!({"message": "Precondition failed: UID in precondition: a, UID in object meta: b"}),
        Outcome::Absent,
    )]
    #[case::another_object_in_other_words(
        delete(), 409, json!({"message": "the UID in the precondition (a) does not match the UID in record (b)"}),
        Outcome::Absent,
    )]
    #[case::another_object_is_patched(
        status(), 422, json!({"message": "is invalid", "details": {"causes": [{"field": "metadata.uid"}]}}),
        Outcome::Conflict,
    )]
    #[case::busy_object(delete(), 409, json!({"message": "the object has been modified"}), Outcome::Conflict)]
    #[case::no_right(
        delete(), 403, json!({"message": "pods \"web\" is forbidden: User \"us\" cannot delete resource \"pods\""}),
        refused("Bellwether may not delete pods in namespace shop: grant it the verb delete on pods in the core API \
                 group"),
    )]
    #[case::forbidden_by_a_policy(
        create(false), 403, json!({"message": "pods \"web\" is forbidden: violates PodSecurity"}),
        refused("pods \"web\" is forbidden: violates PodSecurity"),
    )]
    #[case::namespace_ends(
        create(false), 403,
        json!({"message": "it is being terminated", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}),
        failed("it is being terminated"),
    )]
    #[case::invalid(status(), 422, json!({"message": "is invalid:\n ready"}), refused("is invalid: ready"))]
    #[case::malformed(status(), 400, json!({"message": "no"}), refused("no"))]
    #[case::not_allowed(status(), 405, json!({"message": "no"}), refused("no"))]
    #[case::too_large(status(), 413, json!({"message": "too large"}), refused("too large"))]
    #[case::too_large_for_the_store(
        status(), 500, json!({"message": "etcdserver: request is too large"}),
        refused("etcdserver: request is too large"),
    )]
    #[case::server_error(status(), 500, json!({"message": "oh"}), failed("oh"))]
    #[case::login_has_expired(status(), 401, json!({"message": "Unauthorized"}), failed("Unauthorized"))]
    fn what_is_not_done_has_a_reason(
        #[case] change: Change,
        #[case] status: u16,
        #[case] body: Value,
        #[case] expected: Outcome,
    ) {
        assert_eq!(answered(&change, status, None, body.to_string().as_bytes()).outcome, expected);
    }

    #[test]
    fn who_is_no_api_server_is_quoted_by_status() {
        let done = answered(&status(), 502, None, b"<html>");
        assert_eq!(done.outcome, failed("the API server answers 502 Bad Gateway"));
    }

    #[rstest]
    #[case::header(429, Some("3"), json!({}), Some(3))]
    #[case::body(503, None, json!({"details": {"retryAfterSeconds": 2}}), Some(2))]
    #[case::header_first(504, Some("3"), json!({"details": {"retryAfterSeconds": 2}}), Some(3))]
    #[case::date(503, Some("Fri, 31 Dec 1999 23:59:59 GMT"), json!({}), None)]
    #[case::at_once(503, Some("0"), json!({}), None)]
    #[case::for_ever(503, Some("18446744073709551615"), json!({}), Some(300))]
    #[case::nothing(500, None, json!({}), None)]
    #[case::no_use(422, Some("3"), json!({}), None)]
    fn a_server_may_say_when_to_come_back(
        #[case] status_code: u16,
        #[case] header: Option<&str>,
        #[case] body: Value,
        #[case] seconds: Option<u64>,
    ) {
        let done = answered(&status(), status_code, header, body.to_string().as_bytes());
        assert_eq!(done.retry_after, seconds.map(Duration::from_secs));
    }
}
