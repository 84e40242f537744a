//! From bytes to news: how the objects of a kind are looked at, in the version in which they are served.

use std::sync::Arc;

use bellwether_engine::{Lens, LookContext, NamespacedName, ObservedObject, ResourceVersion, Served};
use bellwether_model::{DecodeError, Object, Plan, Value};
use http::StatusCode;
use jiff::Timestamp;

use crate::{
    api_error::ApiError,
    decode::{self, Page},
    read_error::ReadError,
};

/// What a watch keeps of errors and bookmarks besides what it keeps of objects.
pub const ERROR_FIELDS: &[&str] = &["code", "reason", "message", "metadata.resourceVersion"];

/// How the objects of a kind are looked at.
pub struct EventDecoder {
    lens: Arc<Lens>,
    /// What is read of an event: what the lens needs, and what errors have.
    of_events: Plan,
    api_version: String,
    has_status: bool,
}

/// An object, as the engine wants to see it.
pub type NamedObject = (NamespacedName, Box<ObservedObject>);

/// What an event of a watch says.
#[derive(Debug, PartialEq)]
pub enum WatchEvent {
    /// An object is so.
    Applied(NamespacedName, Box<ObservedObject>),
    /// An object is gone, as of this version.
    Deleted(NamespacedName, ResourceVersion),
    /// All is told up to this version.
    Bookmark(ResourceVersion),
    /// The watch is at its end.
    Error(ReadError),
    /// Something is said about an object that is none.
    Malformed,
}

impl EventDecoder {
    /// Looks through this lens at objects that are served so.
    pub fn new(lens: Arc<Lens>, served: &Served) -> Self {
        let group = &lens.kind().group;
        let version = &served.version;
        let api_version = if group.is_empty() { version.to_string() } else { format!("{group}/{version}") };
        let of_events = lens.plan().clone().with_all(ERROR_FIELDS);
        Self { of_events, api_version, has_status: served.has_status, lens }
    }

    /// Reads a page of a list. Of what is no object, nothing is seen.
    pub fn page(&self, json: &[u8], now: Timestamp) -> Result<Page<Option<NamedObject>>, DecodeError> {
        decode::page(json, self.lens.plan(), |object| self.look(object?, now))
    }

    /// Reads an event of a watch.
    pub fn event(&self, json: &[u8], now: Timestamp) -> Result<WatchEvent, DecodeError> {
        let decode::RawEvent { what, object } = decode::event(json, &self.of_events)?;
        let Some(object) = object else { return Ok(WatchEvent::Malformed) };
        Ok(match &*what {
            "ADDED" | "MODIFIED" => match self.look(object, now) {
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

    fn look(&self, object: Object<'_>, now: Timestamp) -> Option<NamedObject> {
        if object.name().is_empty() {
            return None;
        }
        // In the lists of built-in kinds, objects do not say what they are.
        let object = if object.kind().is_empty() {
            object.of_kind(self.api_version.as_str(), &*self.lens.kind().kind)
        } else {
            object
        };
        let (name, seen) = self.lens.look(&object, LookContext { now, has_status: Some(self.has_status) });
        Some((name, Box::new(seen)))
    }
}

/// The version of an object, or of what stands for one.
pub fn version(object: &Object<'_>) -> ResourceVersion {
    ResourceVersion::new(object.at("metadata.resourceVersion").and_then(Value::as_text).unwrap_or_default())
}

/// What the `Status` in an event means. The oldest API servers give a reason and no code: whatever it is, it is over then.
pub fn error(status: &Object<'_>) -> ReadError {
    let text = |field: &str| status.at(field).and_then(Value::as_text).unwrap_or_default();
    let code = status.at("code").and_then(Value::as_int).and_then(|code| u16::try_from(code).ok());
    let code = code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::REQUEST_TIMEOUT);
    ApiError::new(code, text("reason"), text("message")).into()
}

#[cfg(test)]
mod tests {
    use bellwether_engine::GroupKind;
    use bellwether_health::user::UserRules;
    use rstest::rstest;

    use super::*;

    fn decoder(group: &str, kind: &str) -> EventDecoder {
        let served = Served {
            version: "v1".into(),
            versions: Box::default(),
            plural: "things".into(),
            namespaced: true,
            has_status: true,
        };
        EventDecoder::new(
            Arc::new(Lens::new(&GroupKind::new(group, kind), Arc::new(UserRules::default()))),
            &served,
        )
    }

    /// What a line says, in a few words.
    fn told(line: &str) -> String {
        match decoder("apps", "Deployment").event(line.as_bytes(), Timestamp::UNIX_EPOCH) {
            Ok(WatchEvent::Applied(name, seen)) => {
                format!("{name} is there: {}", seen.facts.version.as_str())
            }
            Ok(WatchEvent::Deleted(name, version)) => format!("{name} is gone: {}", version.as_str()),
            Ok(WatchEvent::Bookmark(version)) => format!("up to {}", version.as_str()),
            Ok(WatchEvent::Error(trouble)) => format!("{trouble:?}"),
            Ok(WatchEvent::Malformed) => "malformed".to_owned(),
            Err(_) => "no JSON".to_owned(),
        }
    }

    #[rstest]
    #[case::added(r#"{"type":"ADDED","object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}}"#, "n/a is there: 7")]
    #[case::modified(
        r#"{"object":{"metadata":{"name":"a","resourceVersion":"7"}},"type":"MODIFIED"}"#,
        "a is there: 7"
    )]
    #[case::deleted(
        r#"{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"8"}}}"#,
        "n/a is gone: 8"
    )]
    #[case::bookmark(
        r#"{"type":"BOOKMARK","object":{"kind":"Deployment","metadata":{"resourceVersion":"9"}}}"#,
        "up to 9"
    )]
    #[case::expired(
        r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#,
        "Expired"
    )]
    #[case::expired_by_reason(r#"{"type":"ERROR","object":{"kind":"Status","reason":"Expired"}}"#, "Expired")]
    #[case::error_first_object(
        r#"{"object":{"code":403,"message":"no"},"type":"ERROR"}"#,
        r#"Forbidden { why: "no" }"#
    )]
    #[case::inner(
        r#"{"type":"ERROR","object":{"code":500,"message":"oh"}}"#,
        r#"ServerError { why: "oh", retry_after: None }"#
    )]
    #[case::odd(
        r#"{"type":"ERROR","object":{"code":"x","message":"oh"}}"#,
        r#"Unavailable { why: "oh", retry_after: None }"#
    )]
    #[case::no_name(r#"{"type":"ADDED","object":{"metadata":{}}}"#, "malformed")]
    #[case::deleted_without_a_name(r#"{"type":"DELETED","object":{}}"#, "malformed")]
    #[case::no_object(r#"{"type":"ADDED","object":[]}"#, "malformed")]
    #[case::unknown_event_type(r#"{"type":"RENAMED","object":{"metadata":{"name":"a"}}}"#, "malformed")]
    #[case::half(r#"{"type":"ADDED","object":{"meta"#, "no JSON")]
    fn events_say_what_happened(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(told(line), expected);
    }

    #[test]
    fn what_stands_in_a_list_is_judged_as_what_it_is() -> Result<(), DecodeError> {
        let list = br#"{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"7"},
            "items":[{"metadata":{"name":"a","namespace":"n"},"spec":{"type":"LoadBalancer"}},{}]}"#;
        let page = decoder("", "Service").page(list, Timestamp::UNIX_EPOCH)?;
        let [Some((name, seen)), None] = &page.items[..] else { panic!("one is an object: {page:?}") };
        assert_eq!(name.to_string(), "n/a");
        assert_eq!(seen.facts.verdict.state, bellwether_model::State::InProgress);
        Ok(())
    }
}
