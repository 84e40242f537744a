//! The line number of a field.
//!
//! Objects are decoded without line numbers. A caller that needs them has the text parsed again.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::{
    InputError, LocatedError, Place, Source,
    yaml::{duplicate_key, options},
};

/// The text that an object was decoded from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'t> {
    pub(super) text: &'t str,
    pub(super) place: Place,
    pub(super) route: Route,
    /// Whether the text has a map with a key that occurs twice.
    pub(super) duplicate_keys: bool,
}

impl Origin<'_> {
    /// Only in a list that is parsed as a whole, the line is not that of the item.
    pub(super) fn reported_place(&self) -> Place {
        Place { item: self.place.item.filter(|_| self.route == Route::Items), ..self.place }
    }
}

/// How to find an object in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// The text is the object.
    Itself,
    /// The text is a list, and the object is its only item.
    Only,
    /// The text has a list of items, and the place has the number of the item.
    Items,
}

/// The place of an object.
#[derive(Clone, Copy)]
pub struct ObjectLocation<'s> {
    pub(super) source: Source<'s>,
    pub(super) origin: Origin<'s>,
}

impl ObjectLocation<'_> {
    /// The file as the user named it, or `stdin`.
    pub fn file(&self) -> String {
        self.source.to_string()
    }

    /// An error about the object.
    pub fn problem(&self, what: String) -> InputError {
        LocatedError { place: self.origin.reported_place(), what }.at(self.source)
    }

    /// An error about the first key of the object that occurs twice in a map. Parses the text again if there
    /// is one in the object, or in the list that it is in.
    pub fn duplicate_key(&self) -> Option<InputError> {
        let repeated = if self.origin.duplicate_keys { self.lines().repeated() } else { Vec::new() };
        let first = repeated.into_iter().min_by_key(|duplicate| duplicate.line)?;
        let place = Place { item: None, line: first.line };
        let what = format!("invalid YAML: {}", duplicate_key(&first.key));
        Some(LocatedError { place, what }.at(self.source))
    }

    /// The line numbers of the fields. Parses the text again.
    pub fn lines(&self) -> Lines {
        let Origin { text, place, route, .. } = self.origin;
        let options = options(text.len(), DuplicateKeyPolicy::LastWins);
        let read = serde_saphyr::from_str_with_options::<Spanned<Node>>(text, options);
        // The text was parsed before, so this should not fail. If it does, use the first line of the object.
        let Ok(Spanned { value, referenced, .. }) = read else { return Lines::unknown(place.line) };
        let whole = (line_number(referenced), value);
        let found = match route {
            Route::Itself => Some(whole),
            Route::Only => whole.1.item(0),
            Route::Items => whole
                .1
                .field("items")
                .and_then(|(_, items)| items.item(place.item.unwrap_or(1).saturating_sub(1))),
        };
        let Some((line, node)) = found else { return Lines::unknown(place.line) };
        // Line numbers start at 1, in the text and in the file.
        Lines { above: place.line.saturating_sub(1), line, node }
    }
}

/// The file and the line, without parsing the text again.
impl fmt::Display for ObjectLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.origin.reported_place())
    }
}

/// The line numbers of the fields of an object.
pub struct Lines {
    /// The number of lines in the file above the text.
    above: usize,
    line: usize,
    node: Node,
}

impl Lines {
    fn unknown(line: usize) -> Self {
        Self { above: 0, line, node: Node::Leaf }
    }

    /// The first line of the object.
    pub fn first(&self) -> usize {
        self.above + self.line
    }

    /// The line of a field such as `spec.components.web[0].kind`. The line of its nearest parent if it is
    /// missing.
    pub fn of(&self, field: &str) -> usize {
        let (mut line, mut node, mut rest) = (self.line, &self.node, field);
        while let Some((next_line, next, next_rest)) = node.step(rest) {
            (line, node, rest) = (next_line, next, next_rest);
        }
        self.above + line
    }

    /// The duplicate keys, without the first of each.
    pub fn repeated(&self) -> Vec<DuplicateKey> {
        let mut repeated = Vec::new();
        self.node.repeated("", &mut repeated);
        for duplicate in &mut repeated {
            duplicate.line += self.above;
        }
        repeated
    }
}

/// A key that occurs more than once in a map.
pub struct DuplicateKey {
    /// The path of the field, such as `spec.components.web`.
    pub field: String,
    pub key: String,
    pub line: usize,
}

/// The line numbers of a value.
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

    /// The first step of a path, and the rest of the path.
    fn step<'f>(&self, field: &'f str) -> Option<(usize, &Self, &'f str)> {
        match self {
            Self::Map(fields) => {
                let field = field.strip_prefix('.').unwrap_or(field);
                let rest = |key: &str| {
                    let rest = field.strip_prefix(key)?;
                    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
                };
                let found = fields.iter().filter_map(|(key, line, node)| Some((*line, node, rest(key)?)));
                // Keys may contain dots. The last of duplicate keys counts.
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

    fn repeated(&self, at: &str, repeated: &mut Vec<DuplicateKey>) {
        match self {
            Self::Map(fields) => {
                for (index, (key, line, node)) in fields.iter().enumerate() {
                    let field = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                    node.repeated(&field, repeated);
                    if fields.iter().take(index).any(|(before, ..)| before == key) {
                        repeated.push(DuplicateKey { field, key: key.clone(), line: *line });
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
        deserializer.deserialize_any(LineNumbers)
    }
}

struct LineNumbers;

impl<'de> Visitor<'de> for LineNumbers {
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
