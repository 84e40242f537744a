//! JSON: one value, one value on each line, or several values in sequence.

use serde::de::{Deserialize, DeserializeSeed as _, Deserializer};

use super::{
    Collector, Found, LocatedError, Place, Reading,
    seeds::{Any, DecodeHead, Head, Objects, Value},
};

/// Whether a text starts like JSON rather than YAML.
pub(super) fn looks_like_it(text: &str) -> bool {
    let text = text.trim_start();
    match text.strip_prefix('{') {
        Some(inside) => inside.trim_start().starts_with(['"', '}']),
        None => text.starts_with('['),
    }
}

/// Visits the objects in a text whose first value is at this place.
pub(super) fn read<R>(text: &str, place: Place, reading: &Reading<'_, R>) -> Found<R> {
    let mut found = Vec::new();
    let mut lines = LineCounter { text, offset: 0, line: place.line };
    let mut rest = 0;
    while rest < text.len() {
        let first_line = lines.at(rest);
        // The first pass finds the end of a value and whether it is a list: the kind may follow the items.
        let mut values = serde_json::Deserializer::from_str(&text[rest..]).into_iter::<Skimmed<'_>>();
        loop {
            let start = rest + values.byte_offset();
            let Some(value) = values.next() else { return found };
            let start = start + blank(&text[start..]);
            let place = Place { item: None, line: lines.at(start) };
            match value {
                Ok(Skimmed(value)) => {
                    let end = rest + values.byte_offset();
                    match value.map() {
                        Ok(head) => found.extend(read_value(&text[start..end], &head, place, reading)),
                        Err(what) => found.push(Err(LocatedError { place, what })),
                    }
                }
                Err(error) => {
                    let mut located = broken(&error, Place { line: first_line, ..place });
                    rest = next_value(text, start);
                    if rest < text.len() && located.place.line >= lines.at(rest) {
                        // An unclosed value made the parser run into the next value, which is parsed again.
                        located.place.line = place.line;
                    }
                    found.push(Err(located));
                    break;
                }
            }
        }
    }
    found
}

struct Skimmed<'t>(Value<'t, Head<'t>>);

impl<'de> Deserialize<'de> for Skimmed<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Any(DecodeHead).deserialize(deserializer).map(Self)
    }
}

fn read_value<R>(text: &str, head: &Head<'_>, place: Place, reading: &Reading<'_, R>) -> Found<R> {
    let mut collector = Collector::new(head, text, place, false, reading);
    let objects =
        Any(Objects { plan: reading.plan, list: head.is_list(), take: |object| collector.take(object) });
    let read = objects.deserialize(&mut serde_json::Deserializer::from_str(text));
    let mut found = collector.found;
    if let Err(error) = read {
        found.push(Err(broken(&error, place)));
    }
    found
}

/// An error in a text that starts at this place.
fn broken(error: &serde_json::Error, mut place: Place) -> LocatedError {
    let what = error.to_string();
    let at = format!(" at line {} column {}", error.line(), error.column());
    place.line += error.line().saturating_sub(1);
    LocatedError { place, what: format!("invalid JSON: {}", what.strip_suffix(&at).unwrap_or(&what)) }
}

/// The length of the white space at the start of a text.
fn blank(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// The offset to continue at after an invalid value, whose end is unknown. In JSON lines every line starts a
/// value; in indented JSON only the outermost braces are at the start of a line.
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

/// Line numbers for increasing offsets.
struct LineCounter<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
}

impl LineCounter<'_> {
    fn at(&mut self, offset: usize) -> usize {
        if let Some(passed) = self.text.get(self.offset..offset) {
            self.line += passed.matches('\n').count();
            self.offset = offset;
        }
        self.line
    }
}
