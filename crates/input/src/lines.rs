//! On which line of a text a field stands.
//!
//! Objects are read without their places, because hardly anybody wants to know. Whoever does lets the text be read again.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::{Fault, Place, Problem, Source, yaml::options};

/// What an object was read from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch<'t> {
    pub(super) text: &'t str,
    pub(super) place: Place,
    pub(super) way: Way,
}

/// The way from a text to one of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The text is the object.
    Itself,
    /// The text is a list of which the object is the only item.
    Only,
    /// The text has a list of items, and the place says which one it is.
    Items,
}

/// Where an object stands.
#[derive(Clone, Copy)]
pub struct Spot<'s> {
    pub(super) source: Source<'s>,
    pub(super) stretch: Stretch<'s>,
}

impl Spot<'_> {
    /// The file, as a person named it.
    pub fn file(&self) -> String {
        self.source.to_string()
    }

    /// What is wrong with the object, which is passed over.
    pub fn problem(&self, what: String) -> Problem {
        Fault { place: self.stretch.place, what }.at(self.source)
    }

    /// The places of the fields of the object.
    pub fn lines(&self) -> Lines {
        let Stretch { text, place, way } = self.stretch;
        let read = serde_saphyr::from_str_with_options::<Spanned<Node>>(text, options(text.len()));
        // What was read as an object can be read again; if not, there is still the line on which it begins.
        let Ok(Spanned { value, referenced, .. }) = read else { return Lines::unknown(place.line) };
        let whole = (line_number(referenced), value);
        let found = match way {
            Way::Itself => Some(whole),
            Way::Only => whole.1.item(0),
            Way::Items => whole
                .1
                .field("items")
                .and_then(|(_, items)| items.item(place.item.unwrap_or(1).saturating_sub(1))),
        };
        let Some((line, node)) = found else { return Lines::unknown(place.line) };
        // Lines count from 1, in the text as in the file.
        Lines { above: place.line.saturating_sub(1), line, node }
    }
}

/// The file and the line, as far as they are known without another look.
impl fmt::Display for Spot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stretch { place: Place { item, line, .. }, way, .. } = self.stretch;
        write!(f, "{}:{line}", self.source)?;
        match item {
            Some(item) if way == Way::Items => write!(f, " (item {item})"),
            _ => Ok(()),
        }
    }
}

/// The places of the fields of an object.
pub struct Lines {
    /// How many lines of the file are above the text.
    above: usize,
    line: usize,
    node: Node,
}

impl Lines {
    fn unknown(line: usize) -> Self {
        Self { above: 0, line, node: Node::Leaf }
    }

    /// The line on which the object begins.
    pub fn first(&self) -> usize {
        self.above + self.line
    }

    /// The line of a field such as `spec.components.web[0].kind`; of what it should be in, where it is not there.
    pub fn of(&self, field: &str) -> usize {
        let (mut line, mut node, mut rest) = (self.line, &self.node, field);
        while let Some((next_line, next, next_rest)) = node.step(rest) {
            (line, node, rest) = (next_line, next, next_rest);
        }
        self.above + line
    }

    /// The keys that stand in the same map twice, with their lines: the second one counts.
    pub fn repeated(&self) -> Vec<(String, usize)> {
        let mut repeated = Vec::new();
        self.node.repeated("", &mut repeated);
        repeated.into_iter().map(|(field, line)| (field, self.above + line)).collect()
    }
}

/// A value of which only the places are kept.
enum Node {
    /// The line of each key, and what is under it.
    Map(Vec<(String, usize, Node)>),
    /// The line on which each entry begins.
    List(Vec<(usize, Node)>),
    Leaf,
}

impl Node {
    fn item(self, index: usize) -> Option<(usize, Self)> {
        match self {
            Self::List(items) => items.into_iter().nth(index),
            Self::Map(_) | Self::Leaf => None,
        }
    }

    fn field(self, name: &str) -> Option<(usize, Self)> {
        match self {
            Self::Map(fields) => {
                fields.into_iter().rev().find(|(key, ..)| key == name).map(|(_, line, node)| (line, node))
            }
            Self::List(_) | Self::Leaf => None,
        }
    }

    /// The first step on the way to a field, and the rest of the way.
    fn step<'f>(&self, field: &'f str) -> Option<(usize, &Self, &'f str)> {
        match self {
            Self::Map(fields) => {
                let field = field.strip_prefix('.').unwrap_or(field);
                let rest = |key: &str| {
                    let rest = field.strip_prefix(key)?;
                    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
                };
                let found = fields.iter().filter_map(|(key, line, node)| Some((*line, node, rest(key)?)));
                // Keys may have dots in them, and of those that are repeated the last one counts.
                found.min_by_key(|(line, _, rest)| (rest.len(), std::cmp::Reverse(*line)))
            }
            Self::List(items) => {
                let (index, rest) = field.strip_prefix('[')?.split_once(']')?;
                let (line, node) = items.get(index.parse::<usize>().ok()?)?;
                Some((*line, node, rest))
            }
            Self::Leaf => None,
        }
    }

    fn repeated(&self, at: &str, repeated: &mut Vec<(String, usize)>) {
        match self {
            Self::Map(fields) => {
                for (index, (key, line, node)) in fields.iter().enumerate() {
                    let field = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                    node.repeated(&field, repeated);
                    if fields.iter().take(index).any(|(before, ..)| before == key) {
                        repeated.push((field, *line));
                    }
                }
            }
            Self::List(items) => {
                for (index, (_, node)) in items.iter().enumerate() {
                    node.repeated(&format!("{at}[{index}]"), repeated);
                }
            }
            Self::Leaf => {}
        }
    }
}

fn line_number(location: serde_saphyr::Location) -> usize {
    usize::try_from(location.line()).unwrap_or(1).max(1)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Places)
    }
}

struct Places;

impl<'de> Visitor<'de> for Places {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Node>()? {
            fields.push((key.value, line_number(key.referenced), value));
        }
        Ok(Node::Map(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Spanned<Node>>()? {
            items.push((line_number(item.referenced), item.value));
        }
        Ok(Node::List(items))
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }
}
