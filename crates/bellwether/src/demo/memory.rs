//! What those who play in the cluster remember, and how they read and write objects.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

/// What they remember: since when something has been as it is.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// How long it has been since the beginning.
    passed: Duration,
    marks: BTreeMap<(String, &'static str), (String, Duration)>,
}

impl Memory {
    /// So long it has been since the beginning.
    pub(super) fn tell_time(&mut self, passed: Duration) {
        self.passed = passed;
    }

    /// How long it has been since somebody first asked this of an object.
    pub(super) fn since(&mut self, uid: &str, what: &'static str) -> Duration {
        self.unchanged(uid, what, String::new())
    }

    /// How long something about an object has been as it is now.
    pub(super) fn unchanged(&mut self, uid: &str, what: &'static str, is: String) -> Duration {
        let mark = self.marks.entry((uid.to_owned(), what)).or_insert_with(|| (is.clone(), self.passed));
        if mark.0 != is {
            *mark = (is, self.passed);
        }
        self.passed.saturating_sub(mark.1)
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

/// Whether a Pod is.
pub(super) fn is_ready(pod: &Value) -> bool {
    reported(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

fn reported<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// A condition of an object. It has turned at this time, unless it was so before.
pub(super) fn condition(
    object: &Value,
    kind: &str,
    (is, reason, message): (bool, &str, &str),
    time: &str,
) -> Value {
    let status = if is { "True" } else { "False" };
    let before = reported(object, kind).filter(|before| before["status"] == status);
    let turned = before.map_or_else(|| json!(time), |before| before["lastTransitionTime"].clone());
    let mut condition = json!({ "type": kind, "status": status, "lastTransitionTime": turned });
    for (field, says) in [("reason", reason), ("message", message)] {
        if let Some(fields) = condition.as_object_mut().filter(|_| !says.is_empty()) {
            fields.insert(field.to_owned(), json!(says));
        }
    }
    condition
}
