//! Evidence of a verdict: the fields that the rules read.

use std::{borrow::Cow, cell::RefCell};

use bellwether_model::Value;
use serde::Serialize;

/// A field that a rule read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Path of the field. List entries are identified by `name` or `type` if they have one, else by index.
    pub path: String,
    /// An excerpt of the value; `None` if the field is absent.
    pub value: Option<Value<'static>>,
}

/// Bounds the number of recorded fields.
const MAX_EVIDENCE: usize = 256;

/// Bounds the excerpt of one field.
const EXCERPT: Budget = Budget { values: 64, bytes: 4096 };

/// Values and bytes of text that an excerpt may still take.
#[derive(Clone)]
struct Budget {
    values: usize,
    bytes: usize,
}

/// A copy of the value within the budget. An ellipsis replaces the rest.
fn excerpt(value: &Value<'_>, budget: &mut Budget) -> Value<'static> {
    const MORE: Value<'static> = Value::Text(Cow::Borrowed("…"));
    if budget.values == 0 {
        return MORE;
    }
    budget.values -= 1;
    match value {
        Value::Text(text) if text.len() > budget.bytes => {
            let cut = &text[..text.floor_char_boundary(budget.bytes)];
            budget.bytes = 0;
            Value::Text(Cow::Owned(format!("{cut}…")))
        }
        Value::Text(text) => {
            budget.bytes -= text.len();
            value.to_static()
        }
        Value::List(list) => {
            let mut copy: Vec<_> = Vec::new();
            for entry in list {
                let full = budget.values == 0;
                copy.push(excerpt(entry, budget));
                if full {
                    break;
                }
            }
            Value::List(copy)
        }
        Value::Map(map) => {
            let mut copy = Vec::new();
            for (name, field) in map.iter() {
                let full = budget.values == 0 || name.len() > budget.bytes;
                let name = if full { "…" } else { name };
                budget.bytes = budget.bytes.saturating_sub(name.len());
                copy.push((Cow::Owned(name.to_owned()), if full { MORE } else { excerpt(field, budget) }));
                if full {
                    break;
                }
            }
            Value::Map(copy.into_iter().collect())
        }
        scalar => scalar.to_static(),
    }
}

/// Records the fields that rules read.
#[derive(Debug, Default)]
pub(crate) struct Trace(RefCell<Vec<Evidence>>);

impl Trace {
    pub(crate) fn into_evidence(self) -> Vec<Evidence> {
        self.0.into_inner()
    }

    pub(crate) fn record(&self, path: String, value: Option<&Value<'_>>) {
        let mut evidence = self.0.borrow_mut();
        if evidence.len() < MAX_EVIDENCE && !evidence.iter().any(|known| known.path == path) {
            evidence.push(Evidence { path, value: value.map(|value| excerpt(value, &mut EXCERPT.clone())) });
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_model::{Object, Plan};
    use rstest::rstest;

    use super::*;

    fn excerpt_of(json: &str) -> String {
        let bytes = format!(r#"{{"field":{json}}}"#);
        let object = Object::from_json(bytes.as_bytes(), &Plan::everything()).expect("a JSON object");
        excerpt(object.at("field").expect("the field exists"), &mut EXCERPT.clone()).to_string()
    }

    #[rstest]
    #[case::a_number("3")]
    #[case::a_condition(r#"{"type":"Ready","status":"True"}"#)]
    #[case::a_list(r#"[1,[2,{"a":null}],"b"]"#)]
    fn small_values_are_copied_whole(#[case] json: &str) {
        assert_eq!(excerpt_of(json), json);
    }

    #[rstest]
    #[case::text(&format!("\"{}\"", "ä".repeat(100_000)))]
    #[case::a_list(&format!("[{}0]", "0,".repeat(100_000)))]
    #[case::lists_in_lists(&format!("[{}0]", "[0,[0]],".repeat(100_000)))]
    #[case::a_map(&format!("{{{}\"a\":0}}", "\"b\":{\"c\":1},".repeat(100_000)))]
    #[case::a_name(&format!("{{\"{}\":0}}", "n".repeat(100_000)))]
    fn large_values_end_with_an_ellipsis(#[case] json: &str) {
        let excerpt = excerpt_of(json);
        assert!(excerpt.len() < 5_000 && excerpt.contains('…'), "{} bytes: {excerpt:.100}", excerpt.len());
    }
}
