//! The outcome of a write, from the response of the API server.

use std::time::Duration;

use bellwether_engine::{Outcome, ResourceVersion, Write};
use http::response::Parts;
use serde::Deserialize;

use crate::{
    api_error::{ApiError, ErrorClass},
    write_request::{Permission, WriteRequest},
};

/// How a write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteResult {
    pub outcome: Outcome,
    pub retry_after: Option<Duration>,
}

impl From<Outcome> for WriteResult {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, retry_after: None }
    }
}

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

impl WriteRequest<'_> {
    pub(crate) fn answered(&self, response: &Parts, body: &[u8]) -> WriteResult {
        match ApiError::check(response, body) {
            Ok(()) => Outcome::Written(self.new_version(body)).into(),
            Err(error) => self.error_outcome(&error),
        }
    }

    /// The resourceVersion after the write; `None` for a dry run.
    fn new_version(&self, body: &[u8]) -> Option<ResourceVersion> {
        if matches!(self.write, Write::Create { dry_run: true, .. }) {
            return None;
        }
        let object: ObjectMetadata = serde_json::from_slice(body).ok()?;
        object.metadata.resource_version.as_deref().map(ResourceVersion::new)
    }

    fn error_outcome(&self, error: &ApiError) -> WriteResult {
        let (is_create, is_delete) =
            (matches!(self.write, Write::Create { .. }), matches!(self.write, Write::Delete { .. }));
        match error.class {
            ErrorClass::NotFound | ErrorClass::NotServed => Outcome::NotFound.into(),
            // The object is gone; another one has its name.
            ErrorClass::UidMismatch if is_delete => Outcome::NotFound.into(),
            // The conflict is about another object, such as the ResourceQuota of the namespace.
            ErrorClass::Conflict | ErrorClass::FieldConflict | ErrorClass::UidMismatch if is_create => {
                WriteResult::failed(error)
            }
            ErrorClass::FieldConflict if matches!(self.write, Write::Apply { .. }) => {
                Outcome::FieldConflict(error.field_conflicts().collect()).into()
            }
            ErrorClass::AlreadyExists
            | ErrorClass::Conflict
            | ErrorClass::FieldConflict
            | ErrorClass::UidMismatch => Outcome::Conflict.into(),
            _ => WriteResult::from_error(error, &self.permission()),
        }
    }
}

impl WriteResult {
    /// The outcome of an error whose class has no special meaning for the write. `permission` is what the
    /// request requires.
    pub(crate) fn from_error(error: &ApiError, permission: &Permission<'_>) -> Self {
        match error.class {
            ErrorClass::Forbidden => Outcome::Rejected(permission.to_string().into()).into(),
            ErrorClass::AdmissionDenied
            | ErrorClass::DryRunUnsupported
            | ErrorClass::Invalid
            | ErrorClass::TooLarge => Outcome::Rejected(error.to_string().into()).into(),
            _ => Self::failed(error),
        }
    }

    /// The outbox retries.
    fn failed(error: &ApiError) -> Self {
        Self { outcome: Outcome::Failed(error.to_string().into()), retry_after: error.retry_after }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Cluster, GroupKind, NamespacedName, ObjectKey, Part, ServedResource, Slot};
    use http::{Response, header::RETRY_AFTER};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn answered(write: &Write, status: u16, header: Option<&str>, body: &[u8]) -> WriteResult {
        let served = ServedResource {
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
        let mut response = Response::builder().status(status);
        if let Some(header) = header {
            response = response.header(RETRY_AFTER, header);
        }
        let (response, ()) = response.body(()).unwrap().into_parts();
        WriteRequest { served: &served, slot: &slot, write }.answered(&response, body)
    }

    fn status() -> Write {
        let patch = json!({}).into();
        Write::Status {
            uid: "u".into(),
            resource_version: ResourceVersion::new("7"),
            patch,
            transitions: Box::default(),
            owned_kinds: Box::default(),
        }
    }

    fn create(dry_run: bool) -> Write {
        Write::Create { manifest: json!({}).into(), owner: "".into(), dry_run }
    }

    fn delete() -> Write {
        Write::Delete { uid: "u".into() }
    }

    fn refused(why: &str) -> Outcome {
        Outcome::Rejected(why.into())
    }

    fn failed(why: &str) -> Outcome {
        Outcome::Failed(why.into())
    }

    #[rstest]
    #[case::patched(status(), json!({"metadata": {"resourceVersion": "8", "name": "web"}, "spec": {}}), Some("8"))]
    #[case::created(create(false), json!({"metadata": {"resourceVersion": "8"}}), Some("8"))]
    #[case::dry_run(create(true), json!({"metadata": {"resourceVersion": "8"}}), None)]
    #[case::deleted(delete(), json!({"kind": "Status", "status": "Success"}), None)]
    #[case::not_an_object(status(), json!([1]), None)]
    fn a_successful_write_has_a_resource_version(
        #[case] write: Write,
        #[case] body: Value,
        #[case] version: Option<&str>,
    ) {
        let done = answered(&write, 200, None, body.to_string().as_bytes());
        assert_eq!(done, Outcome::Written(version.map(ResourceVersion::new)).into());
    }

    #[rstest]
    #[case::not_found(status(), 404, json!({"message": "pods \"web\" not found"}), Outcome::NotFound)]
    #[case::conflict(status(), 409, json!({"reason": "Conflict"}), Outcome::Conflict)]
    #[case::already_exists(create(false), 409, json!({"reason": "AlreadyExists"}), Outcome::Conflict)]
    #[case::quota_conflict(
        create(false), 409, json!({"reason": "Conflict", "message": "quota was changed"}), failed("quota was changed"),
    )]
    #[case::another_uid(
        delete(), 409, json!({"message": "Precondition failed: UID in precondition: a, UID in object meta: b"}),
        Outcome::NotFound,
    )]
    #[case::another_uid_in_other_words(
        delete(), 409, json!({"message": "the UID in the precondition (a) does not match the UID in record (b)"}),
        Outcome::NotFound,
    )]
    #[case::patch_of_another_uid(
        status(), 422, json!({"message": "is invalid", "details": {"causes": [{"field": "metadata.uid"}]}}),
        Outcome::Conflict,
    )]
    #[case::conflict_of_a_deletion(delete(), 409, json!({"message": "the object has been modified"}), Outcome::Conflict)]
    #[case::forbidden(
        delete(), 403, json!({"message": "pods \"web\" is forbidden: User \"us\" cannot delete resource \"pods\""}),
        refused("cannot delete pods in namespace shop: forbidden. Grant Bellwether the verb delete on pods in the core API \
                 group"),
    )]
    #[case::denied_by_admission(
        create(false), 403, json!({"message": "pods \"web\" is forbidden: violates PodSecurity"}),
        refused("pods \"web\" is forbidden: violates PodSecurity"),
    )]
    #[case::namespace_terminating(
        create(false), 403,
        json!({"message": "it is being terminated", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}),
        failed("it is being terminated"),
    )]
    #[case::invalid(status(), 422, json!({"message": "is invalid:\n ready"}), refused("is invalid: ready"))]
    #[case::malformed(status(), 400, json!({"message": "no"}), refused("no"))]
    #[case::not_allowed(status(), 405, json!({"message": "no"}), refused("no"))]
    #[case::too_large(status(), 413, json!({"message": "too large"}), refused("too large"))]
    #[case::too_large_for_etcd(
        status(), 500, json!({"message": "etcdserver: request is too large"}),
        refused("etcdserver: request is too large"),
    )]
    #[case::server_error(status(), 500, json!({"message": "oh"}), failed("oh"))]
    #[case::unauthorized(status(), 401, json!({"message": "Unauthorized"}), failed("Unauthorized"))]
    fn each_error_has_its_outcome(
        #[case] write: Write,
        #[case] status: u16,
        #[case] body: Value,
        #[case] expected: Outcome,
    ) {
        assert_eq!(answered(&write, status, None, body.to_string().as_bytes()).outcome, expected);
    }

    #[test]
    fn a_response_without_a_status_object_is_described_by_its_code() {
        let done = answered(&status(), 502, None, b"<html>");
        assert_eq!(done.outcome, failed("API server returned 502 Bad Gateway"));
    }

    #[rstest]
    #[case::header(429, Some("3"), json!({}), Some(3))]
    #[case::body(503, None, json!({"details": {"retryAfterSeconds": 2}}), Some(2))]
    #[case::header_first(504, Some("3"), json!({"details": {"retryAfterSeconds": 2}}), Some(3))]
    #[case::date(503, Some("Fri, 31 Dec 1999 23:59:59 GMT"), json!({}), None)]
    #[case::at_once(503, Some("0"), json!({}), None)]
    #[case::capped(503, Some("18446744073709551615"), json!({}), Some(300))]
    #[case::nothing(500, None, json!({}), None)]
    #[case::not_for_invalid(422, Some("3"), json!({}), None)]
    fn retry_after_is_kept_for_retries(
        #[case] status_code: u16,
        #[case] header: Option<&str>,
        #[case] body: Value,
        #[case] seconds: Option<u64>,
    ) {
        let done = answered(&status(), status_code, header, body.to_string().as_bytes());
        assert_eq!(done.retry_after, seconds.map(Duration::from_secs));
    }
}
