//! Merge patches (RFC 7386): what turns one value into another.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The merge patch that turns one value into the other, as far as one can; nothing if they are the same. Lists are
/// replaced as a whole.
pub(crate) fn diff(from: &Value, to: &Value) -> Option<Value> {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            let gone = from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.clone(), Value::Null));
            let mut patch: Map<_, _> = gone.collect();
            for (key, value) in to {
                let difference = match from.get(key) {
                    Some(before) => diff(before, value),
                    None => Some(value.clone()),
                };
                if let Some(difference) = difference {
                    patch.insert(key.clone(), difference);
                }
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        _ => (from != to).then(|| to.clone()),
    }
}

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

/// The merge patch between two states of one type.
pub(crate) fn between<T: Serialize>(from: &T, to: &T) -> Option<Value> {
    diff(&serde_json::to_value(from).ok()?, &serde_json::to_value(to).ok()?)
}

/// The state after a merge patch.
pub(crate) fn applied<T: Serialize + DeserializeOwned>(to: &T, patch: &Value) -> Option<T> {
    serde_json::from_value(merge(serde_json::to_value(to).ok()?, patch)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_said_and_what_is_gone_is_null() {
        let from = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2]});
        let to = json!({"a": 1, "b": {"c": 2, "d": 4}, "f": "new"});
        assert_eq!(diff(&from, &to), Some(json!({"b": {"d": 4}, "e": null, "f": "new"})));
        assert_eq!(diff(&from, &from), None);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z]{0,3}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_patch_between_two_values_leads_from_one_to_the_other(from in value(), to in value()) {
            let after = match diff(&from, &to) {
                Some(patch) => merge(from, &patch),
                None => from,
            };
            prop_assert_eq!(after, to);
        }
    }
}
