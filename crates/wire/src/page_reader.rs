//! Decodes a list page while it arrives, so that one object is in memory at a time and not the whole page.
//!
//! Custom objects and ConfigMaps may be as large as etcd allows: 500 of them are half a gigabyte.

use std::{mem, sync::Arc};

use bellwether_model::DecodeError;
use jiff::Timestamp;

use crate::{
    envelope::Page,
    object_decoder::{NamedObject, ObjectDecoder},
    read_error::ReadError,
    wiped_buffer::WipedBuffer,
};

/// A decoded list page. Malformed items are `None`.
pub type DecodedPage = Page<Option<NamedObject>>;

pub struct PageReader {
    decoder: Arc<ObjectDecoder>,
    now: Timestamp,
    splitter: ItemSplitter,
    items: Vec<Option<NamedObject>>,
}

impl PageReader {
    pub fn new(decoder: Arc<ObjectDecoder>, now: Timestamp) -> Self {
        Self { decoder, now, splitter: ItemSplitter::default(), items: Vec::new() }
    }

    /// Takes the next bytes of the response, and decodes the items that they complete.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), ReadError> {
        let (decoder, items, now) = (&self.decoder, &mut self.items, self.now);
        self.splitter
            .push(chunk, |item| {
                items.push(decoder.item(item, now)?);
                Ok(())
            })
            .map_err(|error| undecodable(&error))
    }

    /// The response is complete.
    pub fn finish(self) -> Result<DecodedPage, ReadError> {
        let mut page =
            self.decoder.page(&self.splitter.rest, self.now).map_err(|error| undecodable(&error))?;
        page.items.splice(0..0, self.items);
        Ok(page)
    }
}

fn undecodable(error: &DecodeError) -> ReadError {
    ReadError::rejected(format!("cannot decode the list: {error}"))
}

/// Cuts the items out of a list. Does not check the JSON: the decoder does that for each part.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Debug, Default)]
struct ItemSplitter {
    /// The list without its items.
    rest: WipedBuffer,
    /// The current item, as far as it has arrived.
    item: WipedBuffer,
    /// The number of open maps and lists.
    depth: usize,
    in_string: bool,
    /// Whether the last byte was a backslash that escapes the next one.
    escaped: bool,
    /// Whether the value of the field `items` comes next.
    before_items: bool,
    in_items: bool,
}

/// The depth of a list's fields, and that of the items.
const FIELDS: usize = 1;
const ITEMS: usize = 2;

impl ItemSplitter {
    fn push(
        &mut self,
        chunk: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let (mut copied, mut at) = (0, 0);
        while let Some(next) = self.next_token(chunk, at) {
            at = next + 1;
            let Some(byte) = chunk.get(next) else { break };
            match byte {
                _ if mem::take(&mut self.escaped) => {}
                b'\\' => self.escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                b':' if self.depth == FIELDS => {
                    self.keep(chunk, &mut copied, next);
                    self.before_items = is_items(&self.rest);
                }
                b'[' if self.depth == FIELDS && self.before_items => {
                    self.keep(chunk, &mut copied, at);
                    (self.in_items, self.before_items) = (true, false);
                    self.depth = ITEMS;
                }
                b'{' | b'[' => self.depth += 1,
                b',' | b']' | b'}' if self.depth == ITEMS && self.in_items => {
                    self.keep(chunk, &mut copied, next);
                    if !self.item.trim_ascii().is_empty() {
                        take(&self.item)?;
                    }
                    self.item.clear(usize::MAX);
                    if *byte == b',' {
                        copied = at;
                    } else {
                        (self.in_items, self.depth) = (false, FIELDS);
                    }
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b',' if self.depth == FIELDS => self.before_items = false,
                _ => {}
            }
        }
        self.keep(chunk, &mut copied, chunk.len());
        Ok(())
    }

    /// The position of the next byte that may end or begin something.
    fn next_token(&self, chunk: &[u8], from: usize) -> Option<usize> {
        if self.escaped {
            return Some(from);
        }
        let rest = chunk.get(from..)?;
        let found = if self.in_string {
            rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))
        } else {
            rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':'))
        };
        found.map(|found| from + found)
    }

    /// Copies the bytes up to `end` to the part that they belong to.
    fn keep(&mut self, chunk: &[u8], copied: &mut usize, end: usize) {
        let part = if self.in_items { &mut self.item } else { &mut self.rest };
        part.extend(chunk.get(*copied..end).unwrap_or_default());
        *copied = end;
    }
}

/// Whether the JSON ends with the field name `items`. A list with an escaped name is decoded as a whole.
fn is_items(json: &[u8]) -> bool {
    let before = json.trim_ascii_end().strip_suffix(br#""items""#);
    before.is_some_and(|before| !before.ends_with(b"\\"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The items and the rest of a list that arrives in chunks of this size.
    fn split(json: &str, size: usize) -> (Vec<String>, String) {
        let (mut splitter, mut items) = (ItemSplitter::default(), Vec::new());
        for chunk in json.as_bytes().chunks(size) {
            let mut take = |item: &[u8]| {
                items.push(String::from_utf8_lossy(item).trim().to_owned());
                Ok(())
            };
            splitter.push(chunk, &mut take).expect("nothing is decoded");
        }
        (items, String::from_utf8_lossy(&splitter.rest).into_owned())
    }

    /// A page of 500 large objects must not be in memory as a whole.
    #[rstest]
    fn buffers_hold_one_item_whatever_the_size_of_the_page(
        #[values(2, 500)] items: usize,
        #[values(7, 1000, usize::MAX)] chunk: usize,
    ) {
        let item = format!(r#"{{"data":"{}"}}"#, "x".repeat(3000));
        let page = format!(
            r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{}]}}"#,
            vec![item.as_str(); items].join(",")
        );
        let (mut splitter, mut taken) = (ItemSplitter::default(), 0);
        for chunk in page.as_bytes().chunks(chunk) {
            let mut take = |_: &[u8]| {
                taken += 1;
                Ok(())
            };
            splitter.push(chunk, &mut take).expect("nothing is decoded");
        }
        assert_eq!(taken, items);
        // A growing buffer may reserve twice what it holds.
        assert!(splitter.item.capacity() <= 2 * item.len(), "{}", splitter.item.capacity());
        assert!(splitter.rest.capacity() <= 200, "{}", splitter.rest.capacity());
    }

    #[rstest]
    #[case::two(r#"{"kind":"L","metadata":{"a":[1,{}]},"items":[{"a":[{}]},{"b":1}]}"#, &[r#"{"a":[{}]}"#, r#"{"b":1}"#], r#"{"kind":"L","metadata":{"a":[1,{}]},"items":[]}"#)]
    #[case::metadata_last(r#"{"items":[{"a":"]}"}],"metadata":{"b":"\"items\":["}}"#, &[r#"{"a":"]}"}"#], r#"{"items":[],"metadata":{"b":"\"items\":["}}"#)]
    #[case::spaces("{ \"items\" : [ {} , { } ] }\n", &["{}", "{ }"], "{ \"items\" : [] }\n")]
    #[case::not_objects(r#"{"items":[1,"a,]",null,[[]],{}]}"#, &["1", r#""a,]""#, "null", "[[]]", "{}"], r#"{"items":[]}"#)]
    #[case::escapes(r#"{"items":[{"a\\":"\\\"},{"},7]}"#, &[r#"{"a\\":"\\\"},{"}"#, "7"], r#"{"items":[]}"#)]
    #[case::empty(r#"{"items":[]}"#, &[], r#"{"items":[]}"#)]
    #[case::null(r#"{"items":null,"a":[{}]}"#, &[], r#"{"items":null,"a":[{}]}"#)]
    #[case::deeper(r#"{"metadata":{"items":[{}]},"a":[{"items":[1]}]}"#, &[], r#"{"metadata":{"items":[{}]},"a":[{"items":[1]}]}"#)]
    #[case::a_similar_name(r#"{"\"items":[{}],"items":[{}]}"#, &["{}"], r#"{"\"items":[{}],"items":[]}"#)]
    #[case::incomplete(r#"{"items":[{},{"a"#, &["{}"], r#"{"items":["#)]
    fn items_are_cut_out(
        #[case] json: &str,
        #[case] items: &[&str],
        #[case] rest: &str,
        #[values(1, 2, 7, 1000)] size: usize,
    ) {
        assert_eq!(split(json, size), (items.iter().map(|&item| item.to_owned()).collect(), rest.to_owned()));
    }
}
