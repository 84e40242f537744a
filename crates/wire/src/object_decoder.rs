//! Decodes the objects of one kind in the version in which the API server serves it.

use std::sync::Arc;

use bellwether_engine::{
    Lens, NamespacedName, ObservedObject, ProjectionContext, ResourceVersion, ServedResource,
};
use bellwether_model::{DecodeError, Object, Plan, Value};
use http::StatusCode;
use jiff::Timestamp;

use crate::{
    api_error::ApiError,
    envelope::{self, Page},
    read_error::ReadError,
};

/// The fields of errors and bookmarks, which a watch needs besides those of objects.
pub const ERROR_FIELDS: &[&str] = &["code", "reason", "message", "metadata.resourceVersion"];

pub struct ObjectDecoder {
    lens: Arc<Lens>,
    /// The fields of the lens and [`ERROR_FIELDS`].
    event_plan: Plan,
    api_version: String,
    has_status: bool,
    metadata_only: bool,
}

pub type NamedObject = (NamespacedName, Box<ObservedObject>);

#[derive(Debug, PartialEq)]
pub enum WatchEvent {
    Applied(NamespacedName, Box<ObservedObject>),
    Deleted(NamespacedName, ResourceVersion),
    Bookmark(ResourceVersion),
    /// Ends the watch.
    Error(ReadError),
    /// Not an object, an object without a name, or an unknown event type.
    Malformed,
}

impl ObjectDecoder {
    pub fn new(lens: Arc<Lens>, served: &ServedResource) -> Self {
        let group = &lens.kind().group;
        let version = &served.version;
        let api_version = if group.is_empty() { version.to_string() } else { format!("{group}/{version}") };
        let event_plan = lens.plan().clone().with_all(ERROR_FIELDS);
        let metadata_only = lens.reads_metadata_only(served.has_status);
        Self { event_plan, api_version, has_status: served.has_status, metadata_only, lens }
    }

    /// Whether to request objects as `PartialObjectMetadata`, so that the content of a Secret never reaches
    /// this process.
    pub fn metadata_only(&self) -> bool {
        self.metadata_only
    }

    /// Decodes one item of a list; `None` if it is malformed.
    pub fn item(&self, json: &[u8], now: Timestamp) -> Result<Option<NamedObject>, DecodeError> {
        Ok(envelope::item(json, self.lens.plan())?.and_then(|object| self.project(object, now)))
    }

    /// Decodes a list page. Malformed items are `None`.
    pub fn page(&self, json: &[u8], now: Timestamp) -> Result<Page<Option<NamedObject>>, DecodeError> {
        envelope::page(json, self.lens.plan(), |object| self.project(object?, now))
    }

    pub fn event(&self, json: &[u8], now: Timestamp) -> Result<WatchEvent, DecodeError> {
        let envelope::RawEvent { type_: what, object } = envelope::event(json, &self.event_plan)?;
        let Some(object) = object else { return Ok(WatchEvent::Malformed) };
        Ok(match &*what {
            "ADDED" | "MODIFIED" => match self.project(object, now) {
                Some((name, seen)) => WatchEvent::Applied(name, seen),
                None => WatchEvent::Malformed,
            },
            "DELETED" if object.name().is_empty() => WatchEvent::Malformed,
            "DELETED" => {
                WatchEvent::Deleted(NamespacedName::new(object.namespace(), object.name()), version(&object))
            }
            "BOOKMARK" => WatchEvent::Bookmark(version(&object)),
            "ERROR" => WatchEvent::Error(error(&object)),
            _ => WatchEvent::Malformed,
        })
    }

    fn project(&self, object: Object<'_>, now: Timestamp) -> Option<NamedObject> {
        if object.name().is_empty() {
            return None;
        }
        // Items of lists of built-in kinds have neither `apiVersion` nor `kind`; those of metadata alone have
        // the kind PartialObjectMetadata.
        let object = if object.kind().is_empty() || self.metadata_only {
            object.of_kind(self.api_version.as_str(), &*self.lens.kind().kind)
        } else {
            object
        };
        let (name, seen) =
            self.lens.project(&object, ProjectionContext { now, has_status: Some(self.has_status) });
        Some((name, Box::new(seen)))
    }
}

/// The resourceVersion; empty if the object has none.
pub fn version(object: &Object<'_>) -> ResourceVersion {
    ResourceVersion::new(object.at("metadata.resourceVersion").and_then(Value::as_text).unwrap_or_default())
}

/// The error in the `Status` of an `ERROR` event. Old API servers send a reason without a code; such an error
/// ends the watch like a timeout.
pub fn error(status: &Object<'_>) -> ReadError {
    let text = |field: &str| status.at(field).and_then(Value::as_text).unwrap_or_default();
    let code = status.at("code").and_then(Value::as_int).and_then(|code| u16::try_from(code).ok());
    let code = code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::REQUEST_TIMEOUT);
    ApiError::new(code, text("reason"), text("message")).into()
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{GroupKind, RequestedFields};
    use bellwether_health::user::UserRules;
    use rstest::rstest;

    use super::*;

    fn things() -> ServedResource {
        ServedResource {
            version: "v1".into(),
            versions: Box::default(),
            plural: "things".into(),
            namespaced: true,
            has_status: true,
        }
    }

    fn decoder(group: &str, kind: &str) -> ObjectDecoder {
        ObjectDecoder::new(
            Arc::new(Lens::new(&GroupKind::new(group, kind), Arc::new(UserRules::default()))),
            &things(),
        )
    }

    fn summary(line: &str) -> String {
        match decoder("apps", "Deployment").event(line.as_bytes(), Timestamp::UNIX_EPOCH) {
            Ok(WatchEvent::Applied(name, seen)) => {
                format!("{name} applied: {}", seen.facts.resource_version.as_str())
            }
            Ok(WatchEvent::Deleted(name, version)) => format!("{name} deleted: {}", version.as_str()),
            Ok(WatchEvent::Bookmark(version)) => format!("bookmark {}", version.as_str()),
            Ok(WatchEvent::Error(error)) => format!("{error:?}"),
            Ok(WatchEvent::Malformed) => "malformed".to_owned(),
            Err(_) => "not JSON".to_owned(),
        }
    }

    #[rstest]
    #[case::added(r#"{"type":"ADDED","object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}}"#, "n/a applied: 7")]
    #[case::modified(
        r#"{"object":{"metadata":{"name":"a","resourceVersion":"7"}},"type":"MODIFIED"}"#,
        "a applied: 7"
    )]
    #[case::deleted(
        r#"{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"8"}}}"#,
        "n/a deleted: 8"
    )]
    #[case::bookmark(
        r#"{"type":"BOOKMARK","object":{"kind":"Deployment","metadata":{"resourceVersion":"9"}}}"#,
        "bookmark 9"
    )]
    #[case::expired(
        r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#,
        "Expired"
    )]
    #[case::expired_by_reason(r#"{"type":"ERROR","object":{"kind":"Status","reason":"Expired"}}"#, "Expired")]
    #[case::object_before_type(
        r#"{"object":{"code":403,"message":"no"},"type":"ERROR"}"#,
        r#"Forbidden { why: "no" }"#
    )]
    #[case::server_error(
        r#"{"type":"ERROR","object":{"code":500,"message":"oh"}}"#,
        r#"ServerError { why: "oh", retry_after: None }"#
    )]
    #[case::invalid_code(
        r#"{"type":"ERROR","object":{"code":"x","message":"oh"}}"#,
        r#"Unavailable { why: "oh", retry_after: None }"#
    )]
    #[case::no_name(r#"{"type":"ADDED","object":{"metadata":{}}}"#, "malformed")]
    #[case::deleted_without_a_name(r#"{"type":"DELETED","object":{}}"#, "malformed")]
    #[case::no_object(r#"{"type":"ADDED","object":[]}"#, "malformed")]
    #[case::unknown_event_type(r#"{"type":"RENAMED","object":{"metadata":{"name":"a"}}}"#, "malformed")]
    #[case::incomplete(r#"{"type":"ADDED","object":{"meta"#, "not JSON")]
    fn each_event_type_is_decoded(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(summary(line), expected);
    }

    /// Of a Secret and a ConfigMap, nothing outside the metadata is read, unless a rule asks for it.
    #[test]
    fn only_the_metadata_is_requested_where_nothing_else_is_read() {
        let asks_for = |group: &str, kind: &str, has_status, requested: RequestedFields| {
            let kind = GroupKind::new(group, kind);
            let lens = Lens::with(&kind, Arc::default(), Arc::new(requested));
            ObjectDecoder::new(Arc::new(lens), &ServedResource { has_status, ..things() }).metadata_only()
        };
        let nothing = RequestedFields::default;
        for kind in ["Secret", "ConfigMap", "ServiceAccount"] {
            assert!(asks_for("", kind, false, nothing()), "{kind}");
        }
        assert!(!asks_for("", "Service", true, nothing()));
        assert!(!asks_for("acme.io", "Widget", true, nothing()));
        assert!(!asks_for("acme.io", "Widget", false, nothing()), "it may have a status all the same");
        assert!(!asks_for("", "ConfigMap", false, RequestedFields::paths([&["data", "level"][..]])));
        assert!(asks_for("", "ConfigMap", false, RequestedFields::paths([&["metadata", "annotations"][..]])));
        for requested in [RequestedFields::conditions(), RequestedFields::paths([&["data", "level"][..]])] {
            assert!(!asks_for("", "ConfigMap", false, requested.clone()));
            assert!(asks_for("", "Secret", false, requested), "the content of a Secret is never requested");
        }
    }

    #[test]
    fn metadata_gets_the_kind_of_the_list() {
        let decoder = ObjectDecoder::new(
            Arc::new(Lens::new(&GroupKind::new("", "Secret"), Arc::default())),
            &ServedResource { has_status: false, ..things() },
        );
        let object = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}"#;
        let line = format!(r#"{{"type":"ADDED","object":{object}}}"#);
        let is_ready = |seen: &ObservedObject| seen.facts.verdict.state == bellwether_model::State::Ready;
        let Ok(WatchEvent::Applied(_, seen)) = decoder.event(line.as_bytes(), Timestamp::UNIX_EPOCH) else {
            panic!("it is an object")
        };
        assert!(is_ready(&seen), "{seen:?}");
        let Ok(Some((_, seen))) = decoder.item(object.as_bytes(), Timestamp::UNIX_EPOCH) else {
            panic!("it is an object")
        };
        assert!(is_ready(&seen), "{seen:?}");
    }

    #[test]
    fn items_without_a_kind_get_the_kind_of_the_list() -> Result<(), DecodeError> {
        let list = br#"{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"7"},
            "items":[{"metadata":{"name":"a","namespace":"n"},"spec":{"type":"LoadBalancer"}},{}]}"#;
        let page = decoder("", "Service").page(list, Timestamp::UNIX_EPOCH)?;
        let [Some((name, seen)), None] = &page.items[..] else { panic!("one is an object: {page:?}") };
        assert_eq!(name.to_string(), "n/a");
        assert_eq!(seen.facts.verdict.state, bellwether_model::State::InProgress);
        Ok(())
    }
}
