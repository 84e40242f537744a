//! What the simulated controllers remember of objects, and how they read and write them.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

/// Values by the UID of an object and a key, each with the time of its last change.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Since the beginning.
    elapsed: Duration,
    values: BTreeMap<(String, &'static str), (String, Duration)>,
}

impl Memory {
    pub(super) fn set_elapsed(&mut self, elapsed: Duration) {
        self.elapsed = elapsed;
    }

    /// The time since the first call with this key.
    pub(super) fn since(&mut self, uid: &str, key: &'static str) -> Duration {
        self.unchanged(uid, key, String::new())
    }

    /// How long the value has been the same.
    pub(super) fn unchanged(&mut self, uid: &str, key: &'static str, value: String) -> Duration {
        let known = self.values.entry((uid.to_owned(), key)).or_insert_with(|| (value.clone(), self.elapsed));
        if known.0 != value {
            *known = (value, self.elapsed);
        }
        self.elapsed.saturating_sub(known.1)
    }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub(super) fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

pub(super) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn is_ready(pod: &Value) -> bool {
    reported(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

fn reported<'o>(object: &'o Value, type_: &str) -> Option<&'o Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

/// A condition of an object. The transition time is kept if the status is the same as before.
pub(super) fn condition(
    object: &Value,
    type_: &str,
    (is, reason, message): (bool, &str, &str),
    time: &str,
) -> Value {
    let status = if is { "True" } else { "False" };
    let before = reported(object, type_).filter(|before| before["status"] == status);
    let transition = before.map_or_else(|| json!(time), |before| before["lastTransitionTime"].clone());
    let mut condition = json!({ "type": type_, "status": status, "lastTransitionTime": transition });
    for (field, text) in [("reason", reason), ("message", message)] {
        if let Some(fields) = condition.as_object_mut().filter(|_| !text.is_empty()) {
            fields.insert(field.to_owned(), json!(text));
        }
    }
    condition
}
