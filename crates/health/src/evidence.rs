//! What a verdict rests on: the fields that the rules looked at.

use std::{borrow::Cow, cell::RefCell};

use bellwether_model::Value;
use serde::Serialize;

/// A field that a rule read, and what it found there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The path of the field; entries of lists are named by their name or type where they have one.
    pub path: String,
    /// Its value; nothing if the object does not have the field.
    pub value: Option<Value<'static>>,
}

/// How many looks are written down: more than anybody will read.
const MOST_EVIDENCE: usize = 256;

/// How many values, and how many bytes of text, one look writes down.
const EXCERPT: Room = Room { values: 64, bytes: 4096 };

/// The room that is left for an excerpt.
#[derive(Clone)]
struct Room {
    values: usize,
    bytes: usize,
}

/// A copy of a value that is not too large; what there is no room for is an ellipsis.
fn excerpt(value: &Value<'_>, room: &mut Room) -> Value<'static> {
    const MORE: Value<'static> = Value::Text(Cow::Borrowed("…"));
    if room.values == 0 {
        return MORE;
    }
    room.values -= 1;
    match value {
        Value::Text(text) if text.len() > room.bytes => {
            let cut = &text[..text.floor_char_boundary(room.bytes)];
            room.bytes = 0;
            Value::Text(Cow::Owned(format!("{cut}…")))
        }
        Value::Text(text) => {
            room.bytes -= text.len();
            value.to_static()
        }
        Value::List(list) => {
            let mut copy: Vec<_> = Vec::new();
            for entry in list {
                let full = room.values == 0;
                copy.push(excerpt(entry, room));
                if full {
                    break;
                }
            }
            Value::List(copy)
        }
        Value::Map(map) => {
            let mut copy = Vec::new();
            for (name, field) in map.iter() {
                let full = room.values == 0 || name.len() > room.bytes;
                let name = if full { "…" } else { name };
                room.bytes = room.bytes.saturating_sub(name.len());
                copy.push((Cow::Owned(name.to_owned()), if full { MORE } else { excerpt(field, room) }));
                if full {
                    break;
                }
            }
            Value::Map(copy.into_iter().collect())
        }
        scalar => scalar.to_static(),
    }
}

/// Where the looks are written down.
#[derive(Debug, Default)]
pub(crate) struct Trace(RefCell<Vec<Evidence>>);

impl Trace {
    pub(crate) fn into_evidence(self) -> Vec<Evidence> {
        self.0.into_inner()
    }

    pub(crate) fn note(&self, path: String, value: Option<&Value<'_>>) {
        let mut evidence = self.0.borrow_mut();
        if evidence.len() < MOST_EVIDENCE && !evidence.iter().any(|known| known.path == path) {
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
        let bytes = format!(r#"{{"it":{json}}}"#);
        let object = Object::from_json(bytes.as_bytes(), &Plan::everything()).expect("it is an object");
        excerpt(object.at("it").expect("it is there"), &mut EXCERPT.clone()).to_string()
    }

    #[rstest]
    #[case::a_number("3")]
    #[case::a_condition(r#"{"type":"Ready","status":"True"}"#)]
    #[case::a_list(r#"[1,[2,{"a":null}],"b"]"#)]
    fn what_is_small_is_whole(#[case] json: &str) {
        assert_eq!(excerpt_of(json), json);
    }

    #[rstest]
    #[case::text(&format!("\"{}\"", "ä".repeat(100_000)))]
    #[case::a_list(&format!("[{}0]", "0,".repeat(100_000)))]
    #[case::lists_in_lists(&format!("[{}0]", "[0,[0]],".repeat(100_000)))]
    #[case::a_map(&format!("{{{}\"a\":0}}", "\"b\":{\"c\":1},".repeat(100_000)))]
    #[case::a_name(&format!("{{\"{}\":0}}", "n".repeat(100_000)))]
    fn what_is_large_is_cut_and_says_so(#[case] json: &str) {
        let excerpt = excerpt_of(json);
        assert!(excerpt.len() < 5_000 && excerpt.contains('…'), "{} bytes: {excerpt:.100}", excerpt.len());
    }
}
