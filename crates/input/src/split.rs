//! Splits YAML into documents, and lists into items, before parsing.
//!
//! So one invalid piece does not hide the others, the parser limits apply to one object instead of a whole
//! dump, and all cores parse, which is slow for YAML. The start of a line is enough to split: the content of
//! a value cannot be indented less than the value, so neither text nor comments look like a document or an
//! item. (Quoted text can in what Go reads. Its pieces cannot be parsed, and the document is read as a whole.)

use std::{borrow::Cow, collections::BTreeSet};

use super::{Place, json, seeds::Head};

#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'t> {
    pub(super) text: &'t str,
    /// The first line of the document in the text, from 1.
    pub(super) line: usize,
}

/// A part of a document that is parsed on its own.
#[derive(Clone, Debug)]
pub(super) struct Piece<'t> {
    pub(super) text: &'t str,
    pub(super) place: Place,
    pub(super) content: Content<'t>,
}

#[derive(Clone, Debug)]
pub(super) enum Content<'t> {
    /// JSON values.
    Json,
    /// One object.
    Object,
    /// One item of a list with this head.
    Item(Head<'t>),
    /// A document that may be an object or a list.
    Unclear,
}

/// The documents that have content.
pub(super) fn documents(text: &str) -> Vec<Document<'_>> {
    let mut documents = Vec::new();
    let mut start = 0;
    let mut start_line = 1;
    let mut offset = 0;
    let mut end = |text, line| documents.extend(Document::of(text, line));
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if is_separator(line) {
            end(&text[start..offset], start_line);
            start = offset + SEPARATOR;
            start_line = index + 1;
        }
        offset += line.len();
    }
    end(&text[start..], start_line);
    documents
}

/// A text with one JSON value on each line, as one document.
pub(super) fn json_lines(text: &str) -> Option<(Document<'_>, Vec<Piece<'_>>)> {
    let document = Document { text, line: 1 };
    let piece = Piece { content: Content::Json, ..document.whole() };
    (!text.trim().is_empty()).then(|| (document, vec![piece]))
}

/// The length of `---` and `...`.
const SEPARATOR: usize = 3;

fn is_separator(line: &str) -> bool {
    (line.starts_with("---") || line.starts_with("..."))
        && line[SEPARATOR..].chars().next().is_none_or(char::is_whitespace)
}

impl<'t> Document<'t> {
    /// Starts at the first line that is neither blank, a comment nor a directive. `None` without such a line.
    fn of(text: &'t str, line: usize) -> Option<Self> {
        let mut offset = 0;
        for (index, content) in text.split_inclusive('\n').enumerate() {
            let first = content.trim_start().chars().next();
            if first.is_some_and(|first| !matches!(first, '#' | '%')) {
                return Some(Self { text: &text[offset..], line: line + index });
            }
            offset += content.len();
        }
        None
    }

    /// The parts that can be parsed on their own.
    pub(super) fn pieces(&self) -> Vec<Piece<'t>> {
        if json::looks_like_it(self.text) {
            return vec![Piece { content: Content::Json, ..self.whole() }];
        }
        let Some(outline) = Outline::of(self.text) else { return vec![self.whole()] };
        if !outline.head.kind.ends_with("List") {
            return vec![Piece { content: Content::Object, ..self.whole() }];
        }
        if outline.items.is_empty() {
            return vec![self.whole()];
        }
        let items = outline.items.iter().enumerate();
        items
            .map(|(index, item)| {
                let place = Place { item: Some(index + 1), line: self.line + item.line };
                Piece { text: item.text, place, content: Content::Item(outline.head.clone()) }
            })
            .collect()
    }

    /// The whole document as one piece.
    pub(super) fn whole(&self) -> Piece<'t> {
        let place = Place { item: None, line: self.line };
        Piece { text: self.text, place, content: Content::Unclear }
    }
}

/// The head and the items of a document, found without a parser.
#[derive(Debug, Default)]
struct Outline<'t> {
    head: Head<'t>,
    items: Vec<Item<'t>>,
}

/// The lines of one item, with its dash: YAML for a list of one item.
#[derive(Debug)]
struct Item<'t> {
    text: &'t str,
    /// The number of lines in the document before the item.
    line: usize,
}

/// What the indented lines belong to.
enum Under {
    /// The value of apiVersion or kind, or nothing.
    Word,
    /// The items of the list.
    Items,
    /// Any other field.
    Other,
}

impl<'t> Outline<'t> {
    /// `None` if the document needs a parser.
    fn of(text: &'t str) -> Option<Self> {
        let mut outline = Self::default();
        // The offset and line number of the current item.
        let mut item: Option<(usize, usize)> = None;
        // The indentation of the dashes of the items.
        let mut dashes: Option<usize> = None;
        let mut under = Under::Word;
        let mut keys = BTreeSet::new();
        let mut offset = 0;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let start = offset;
            offset += line.len();
            let content = line.trim_start_matches(' ');
            if content.trim_end().is_empty() || content.starts_with('#') {
                continue;
            }
            let indent = line.len() - content.len();
            let is_dash = content.starts_with("- ") || content.trim_end() == "-";
            if indent == 0 && !is_dash {
                outline.end(text, item.take(), start);
                let (key, value) = key_and_value(content)?;
                if !keys.insert(key) {
                    // The parser decides what a duplicate key means.
                    return None;
                }
                under = match key {
                    "apiVersion" => {
                        outline.head.api_version = Cow::Borrowed(word(value)?);
                        Under::Word
                    }
                    "kind" => {
                        outline.head.kind = Cow::Borrowed(word(value)?);
                        Under::Word
                    }
                    "items" if value.is_empty() => Under::Items,
                    _ => Under::Other,
                };
                continue;
            }
            match under {
                Under::Other => {}
                // A value of several lines, or the document is not a map.
                Under::Word => return None,
                Under::Items => {
                    let dashes = *dashes.get_or_insert(indent);
                    if indent <= dashes {
                        if !is_dash || indent < dashes {
                            return None;
                        }
                        outline.end(text, item.replace((start, number)), start);
                    }
                }
            }
        }
        outline.end(text, item, offset);
        Some(outline)
    }

    fn end(&mut self, text: &'t str, item: Option<(usize, usize)>, end: usize) {
        if let Some((start, line)) = item {
            self.items.push(Item { text: &text[start..end], line });
        }
    }
}

/// Splits a line such as `kind: List`.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_plain = key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.chars().all(|character| character.is_ascii_alphanumeric());
    (is_plain && value.chars().next().is_none_or(char::is_whitespace)).then(|| (key, without_comment(value)))
}

fn without_comment(value: &str) -> &str {
    value.split_once(" #").map_or(value, |(value, _)| value).trim()
}

/// A word, with or without quotes.
fn word(value: &str) -> Option<&str> {
    let inside = |quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let word = inside('"').or_else(|| inside('\'')).unwrap_or(value);
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '/' | '-');
    (!word.is_empty() && word.chars().all(is_plain)).then_some(word)
}
