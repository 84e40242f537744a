//! The stored status of one of our own objects, reduced to what the next patch needs.

use std::collections::BTreeMap;

use bellwether_api::LastEvent;
use bellwether_model::State;
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};

use crate::{digest::Digest, planted::Bug, stored_condition::StoredCondition};

/// Conditions are kept. All other fields may be long lists, and a digest of each is enough to compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StoredStatus {
    pub(crate) observed_generation: Option<i64>,
    /// `status.state`.
    pub(crate) state: Option<State>,
    pub(crate) last_event: Option<LastEvent>,
    pub(crate) conditions: Vec<StoredCondition>,
    fields: BTreeMap<Box<str>, Digest>,
}

impl StoredStatus {
    pub(crate) fn of(status: &impl Serialize) -> Self {
        let mut stored = Self::default();
        stored.merge(&Value::Object(fields(status)));
        stored
    }

    /// The JSON merge patch (RFC 7386) from the stored status to this one; `None` if they are equal. A nested
    /// object is always complete, so that the merge leaves no old field in it.
    pub(crate) fn patch(&self, status: &impl Serialize) -> Option<Value> {
        let wanted = fields(status);
        let gone = self.fields.keys().filter(|name| !wanted.contains_key(&***name));
        let gone: Map<_, _> = gone.map(|name| (name.to_string(), Value::Null)).collect();
        let differs = |name: &str, value: &Value| {
            self.fields.get(name) != Some(&Digest::of(value)) || Bug::SkipCompare.is_planted()
        };
        let changed = wanted.into_iter().filter(|(name, value)| differs(name, value));
        let patch: Map<_, _> = changed.chain(gone).collect();
        (!patch.is_empty()).then_some(Value::Object(patch))
    }

    /// Applies a patch that was written.
    pub(crate) fn merge(&mut self, patch: &Value) {
        for (name, value) in patch.as_object().into_iter().flatten() {
            match name.as_str() {
                "lastEvent" => self.last_event = LastEvent::deserialize(value).ok(),
                "state" => self.state = State::deserialize(value).ok(),
                "observedGeneration" => self.observed_generation = value.as_i64(),
                "conditions" => {
                    let all = value.as_array().into_iter().flatten();
                    self.conditions =
                        all.filter_map(|condition| StoredCondition::deserialize(condition).ok()).collect();
                }
                _ => {}
            }
            if value.is_null() {
                self.fields.remove(name.as_str());
            } else {
                self.fields.insert(name.as_str().into(), Digest::of(value));
            }
        }
    }
}

/// Without null fields.
fn fields(status: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(mut fields)) => {
            fields.retain(|_, value| !value.is_null());
            fields
        }
        other => {
            debug_assert!(false, "a status is an object: {other:?}");
            Map::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_has_changed_fields_and_nulls_for_removed_ones() {
        let stored = StoredStatus::of(&json!({"ready": "True", "missing": ["a"], "progress": 50}));
        assert_eq!(stored.patch(&json!({"ready": "True", "missing": ["a"], "progress": 50})), None);
        let patch = stored.patch(&json!({"ready": "True", "progress": 51, "installed": ["a"]}));
        assert_eq!(patch, Some(json!({"progress": 51, "installed": ["a"], "missing": null})));
    }

    #[test]
    fn merging_the_patch_yields_the_new_status() {
        let condition = |status| {
            json!({
                "type": "Ready", "status": status, "reason": "Because", "message": "",
                "lastTransitionTime": "2026-11-14T10:00:00Z",
            })
        };
        let before = json!({"observedGeneration": 1, "conditions": [condition("False")], "missing": ["a"]});
        let after = json!({"observedGeneration": 2, "conditions": [condition("True")], "progress": 100});
        let mut stored = StoredStatus::of(&before);
        let patch = stored.patch(&after).expect("they differ");
        stored.merge(&patch);
        assert_eq!(stored, StoredStatus::of(&after));
        assert_eq!(stored.observed_generation, Some(2));
        assert_eq!(
            crate::stored_condition::status(&stored.conditions, "Ready"),
            Some(bellwether_api::ConditionStatus::True)
        );
        assert_eq!(stored.patch(&after), None);
    }
}
