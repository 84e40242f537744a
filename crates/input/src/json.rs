//! JSON: one value, one on each line, or many one after the other.

use bellwether_model::Plan;
use serde::de::{Deserialize, DeserializeSeed as _, Deserializer};

use super::{
    Fault, Found, JudgeInText, Place, Taker,
    seeds::{Any, Head, Objects, Skim, Value},
};

/// Whether a text can be JSON rather than YAML, by how it begins.
pub(super) fn looks_like_it(text: &str) -> bool {
    let text = text.trim_start();
    match text.strip_prefix('{') {
        Some(inside) => inside.trim_start().starts_with(['"', '}']),
        None => text.starts_with('['),
    }
}

/// Judges the objects of a text whose first value is at this place.
pub(super) fn read<R>(text: &str, place: Place, plan: &Plan, judge: &JudgeInText<'_, R>) -> Found<R> {
    let mut found = Vec::new();
    let mut lines = Lines { text, offset: 0, line: place.line };
    let mut document = place.document;
    let mut rest = 0;
    while rest < text.len() {
        let first_line = lines.at(rest);
        // The first look finds where a value ends and whether it is a list, which a list may tell after its items.
        let mut values = serde_json::Deserializer::from_str(&text[rest..]).into_iter::<Glance<'_>>();
        loop {
            let start = rest + values.byte_offset();
            let Some(value) = values.next() else { return found };
            let start = start + blank(&text[start..]);
            let place = Place { document, item: None, line: lines.at(start) };
            document += 1;
            match value {
                Ok(Glance(value)) => {
                    let end = rest + values.byte_offset();
                    match value.map() {
                        Ok(head) => found.extend(read_value(&text[start..end], &head, place, plan, judge)),
                        Err(what) => found.push(Err(Fault { place, what })),
                    }
                }
                Err(error) => {
                    let mut fault = broken(&error, Place { line: first_line, ..place });
                    rest = next_value(text, start);
                    if rest < text.len() && fault.place.line >= lines.at(rest) {
                        // What was left open made the parser run into the next value, which is read again.
                        fault.place.line = place.line;
                    }
                    found.push(Err(fault));
                    break;
                }
            }
        }
    }
    found
}

/// The head of a value.
struct Glance<'t>(Value<'t, Head<'t>>);

impl<'de> Deserialize<'de> for Glance<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Any(Skim).deserialize(deserializer).map(Self)
    }
}

fn read_value<R>(
    text: &str,
    head: &Head<'_>,
    place: Place,
    plan: &Plan,
    judge: &JudgeInText<'_, R>,
) -> Found<R> {
    let mut taker = Taker::new(head, text, place, judge);
    let objects = Any(Objects { plan, list: head.is_list(), take: |object| taker.take(object) });
    let read = objects.deserialize(&mut serde_json::Deserializer::from_str(text));
    let mut found = taker.found;
    if let Err(error) = read {
        found.push(Err(broken(&error, place)));
    }
    found
}

/// What is wrong with a text that begins at this place.
fn broken(error: &serde_json::Error, mut place: Place) -> Fault {
    let what = error.to_string();
    let at = format!(" at line {} column {}", error.line(), error.column());
    place.line += error.line().saturating_sub(1);
    Fault { place, what: format!("it is no valid JSON: {}", what.strip_suffix(&at).unwrap_or(&what)) }
}

/// How much white space there is before a value.
fn blank(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Where to go on after a value that is broken. Nothing can tell where it ends, but in JSON lines every line begins a value,
/// and in JSON that is written for people only the outermost braces stand at the beginning of a line.
fn next_value(text: &str, broken: usize) -> usize {
    let is_object = text[broken..].starts_with('{');
    let mut offset = broken;
    for line in text[broken..].split_inclusive('\n') {
        if offset > broken && (!is_object || line.starts_with('{')) {
            return offset;
        }
        offset += line.len();
    }
    text.len()
}

/// Numbers of lines, for places that come one after the other.
struct Lines<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
}

impl Lines<'_> {
    fn at(&mut self, offset: usize) -> usize {
        if let Some(passed) = self.text.get(self.offset..offset) {
            self.line += passed.matches('\n').count();
            self.offset = offset;
        }
        self.line
    }
}
