//! Merge patches (RFC 7386): what turns one status into another.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The value after a merge patch.
fn merge(mut value: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    if !value.is_object() {
        value = Value::Object(Map::new());
    }
    if let Value::Object(fields) = &mut value {
        for (key, patch) in patch {
            if patch.is_null() {
                fields.remove(key);
            } else {
                let before = fields.remove(key).unwrap_or_default();
                fields.insert(key.clone(), merge(before, patch));
            }
        }
    }
    value
}

/// The merge patch that sets this field, if it differs. What is empty is left out of statuses, and so is removed.
///
/// Fields are compared as they are: to write both states of a long list first takes many times as long.
pub(crate) fn field<T: PartialEq + Serialize>(
    name: &'static str,
    from: &T,
    to: &T,
) -> Option<(String, Value)> {
    if from == to {
        return None;
    }
    let value = serde_json::to_value(to).ok()?;
    let is_empty = value.as_array().is_some_and(Vec::is_empty);
    Some((name.to_owned(), if is_empty { Value::Null } else { value }))
}

/// The state after a merge patch.
pub(crate) fn applied<T: Serialize + DeserializeOwned>(to: &T, patch: &Value) -> Option<T> {
    serde_json::from_value(merge(serde_json::to_value(to).ok()?, patch)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_said_and_what_is_empty_is_removed() {
        assert_eq!(field("a", &1, &1), None);
        assert_eq!(field("a", &1, &2), Some(("a".to_owned(), json!(2))));
        assert_eq!(field("a", &vec![1], &vec![]), Some(("a".to_owned(), Value::Null)));
        assert_eq!(field("a", &Some(1), &None), Some(("a".to_owned(), Value::Null)));
    }

    #[test]
    fn a_patch_is_merged_into_what_is_there() {
        let before = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2]});
        let patch = json!({"b": {"d": 4}, "e": null, "f": "new"});
        assert_eq!(merge(before, &patch), json!({"a": 1, "b": {"c": 2, "d": 4}, "f": "new"}));
    }
}
