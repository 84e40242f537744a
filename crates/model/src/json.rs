//! A fast JSON deserializer for API server responses. Most of an object is skipped, and skipping is fast.
//!
//! On anything unusual or invalid it gives up, and the caller falls back to serde_json, which decodes the
//! input or reports the error. Of skipped values it checks only brackets and quotation marks, not the JSON in
//! between.

use std::{borrow::Cow, fmt};

use serde::{
    de::{
        DeserializeSeed, Deserializer, Error, IntoDeserializer as _, MapAccess, SeqAccess, Visitor,
        value::BorrowedStrDeserializer,
    },
    forward_to_deserialize_any,
};

/// Decodes one value that must be the whole text.
pub(crate) fn read<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> Result<S::Value, Fallback> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = seed.deserialize(&mut reader)?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(Fallback),
    }
}

/// The maximum depth, so that recursion cannot overflow the stack. serde_json has the same limit.
const DEEPEST: u8 = 127;

/// The fast path cannot decode this text; serde_json must.
#[derive(Debug)]
pub(crate) struct Fallback;

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not supported by the fast path")
    }
}

impl std::error::Error for Fallback {}

impl Error for Fallback {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
}

impl<'de> Reader<'de> {
    /// Skips white space and returns the next byte without consuming it.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                byte => return byte.copied(),
            }
        }
    }

    /// Consumes the next byte, which must be this one.
    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Fallback> {
        if self.peek() != Some(byte) {
            return Err(Fallback);
        }
        self.at += 1;
        Ok(())
    }

    /// Checks that the next byte is a quotation mark.
    #[inline]
    fn quoted(&mut self) -> Result<(), Fallback> {
        if self.peek() == Some(b'"') { Ok(()) } else { Err(Fallback) }
    }

    /// Consumes a literal such as `true`.
    fn literal(&mut self, literal: &str) -> Result<(), Fallback> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !rest.starts_with(literal) {
            return Err(Fallback);
        }
        self.at += literal.len();
        Ok(())
    }

    /// Consumes a string. The next byte must be a quotation mark.
    #[inline]
    fn string(&mut self) -> Result<Cow<'de, str>, Fallback> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let end = find::<true>(bytes, start);
        match bytes.get(end) {
            Some(b'"') => {
                self.at = end + 1;
                self.text.get(start..end).map(Cow::Borrowed).ok_or(Fallback)
            }
            Some(b'\\') => self.escaped(end).map(Cow::Owned),
            _ => Err(Fallback),
        }
    }

    /// Consumes a string whose first escape is at `escape`.
    #[cold]
    fn escaped(&mut self, escape: usize) -> Result<String, Fallback> {
        let start = self.at;
        self.at = after_string(self.text.as_bytes(), escape)?;
        let quoted = self.text.get(start..self.at).ok_or(Fallback)?;
        serde_json::from_str(quoted).map_err(|_| Fallback)
    }

    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Fallback> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end =
            rest.find(|next: char| !next.is_ascii_digit() && !matches!(next, '-' | '+' | '.' | 'e' | 'E'));
        let number = end.map_or(rest, |end| &rest[..end]);
        self.at += number.len();
        let plain = number.bytes().all(|digit| digit.is_ascii_digit());
        // 18 digits cannot overflow. JSON does not allow leading zeros.
        if plain && (number == "0" || (1..=18).contains(&number.len()) && !number.starts_with('0')) {
            let value = number.bytes().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
            return visitor.visit_u64(value);
        }
        let mut reader = serde_json::Deserializer::from_str(number);
        let value = reader.deserialize_any(visitor).map_err(|_| Fallback)?;
        reader.end().map_err(|_| Fallback)?;
        Ok(value)
    }

    /// Skips a list or map.
    fn skip(&mut self) -> Result<(), Fallback> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        let mut depth = 0_usize;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            if *byte == b'"' {
                at = after_string(bytes, at)?;
                continue;
            }
            // Braces and brackets differ only in this bit.
            match byte | 0x20 {
                b'{' => depth += 1,
                b'}' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at = at;
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        Err(Fallback)
    }
}

/// The offset after the next quotation mark that is not escaped.
#[inline]
fn after_string(bytes: &[u8], from: usize) -> Result<usize, Fallback> {
    let mut at = from;
    loop {
        at = find::<false>(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(_) => at += 2,
            None => return Err(Fallback),
        }
    }
}

/// The offset of the next quotation mark, backslash or, if `CONTROL`, control character; else the end.
#[inline]
fn find<const CONTROL: bool>(bytes: &[u8], from: usize) -> usize {
    // Eight bytes at a time. A byte that is less gets its highest bit set. The borrow may set bits of higher
    // bytes wrongly, but only the lowest set bit counts.
    const ONES: u64 = u64::MAX / 0xff;
    let less = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word & (ONES * 0x80);
    let equal = |word: u64, to: u8| less(word ^ (ONES * u64::from(to)), 1);
    let mut at = from;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let word = u64::from_le_bytes(*eight);
        let found = equal(word, b'"') | equal(word, b'\\') | if CONTROL { less(word, b' ') } else { 0 };
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\') || (CONTROL && *byte < b' '));
    at + found.unwrap_or(rest.len())
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Fallback;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fallback> {
        match self.peek().ok_or(Fallback)? {
            b'"' => match self.string()? {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            open @ (b'{' | b'[') => {
                if self.depth == DEEPEST {
                    return Err(Fallback);
                }
                self.depth += 1;
                self.at += 1;
                let (value, close) = if open == b'{' {
                    (visitor.visit_map(Entries { reader: self, first: true })?, b'}')
                } else {
                    (visitor.visit_seq(Entries { reader: self, first: true })?, b']')
                };
                self.depth -= 1;
                self.expect(close)?;
                Ok(value)
            }
            b't' => self.literal("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.literal("false").and_then(|()| visitor.visit_bool(false)),
            b'n' => self.literal("null").and_then(|()| visitor.visit_unit()),
            _ => self.number(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fallback> {
        match self.peek() {
            Some(b'{' | b'[') => self.skip().and_then(|()| visitor.visit_unit()),
            // Without a copy: it may be a secret.
            Some(b'"') => {
                self.at = after_string(self.text.as_bytes(), self.at + 1)?;
                visitor.visit_unit()
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fallback> {
        match self.peek() {
            Some(b'n') => self.literal("null").and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &str, visitor: V) -> Result<V::Value, Fallback> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &str,
        _: &[&str],
        visitor: V,
    ) -> Result<V::Value, Fallback> {
        self.quoted()?;
        visitor.visit_enum(self.string()?.into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier
    }
}

/// The entries of a list or a map, after its opening bracket.
struct Entries<'r, 'de> {
    reader: &'r mut Reader<'de>,
    first: bool,
}

impl Entries<'_, '_> {
    /// Consumes the separator. Returns whether another entry follows.
    #[inline]
    fn another(&mut self, close: u8) -> Result<bool, Fallback> {
        match self.reader.peek() {
            Some(byte) if byte == close => Ok(false),
            Some(_) if self.first => {
                self.first = false;
                Ok(true)
            }
            Some(b',') => {
                self.reader.at += 1;
                Ok(true)
            }
            _ => Err(Fallback),
        }
    }
}

impl<'de> SeqAccess<'de> for Entries<'_, 'de> {
    type Error = Fallback;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fallback> {
        if !self.another(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = Fallback;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fallback> {
        if !self.another(b'}')? {
            return Ok(None);
        }
        self.reader.quoted()?;
        match self.reader.string()? {
            Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some),
            Cow::Owned(key) => seed.deserialize(key.into_deserializer()).map(Some),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fallback> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use rstest::rstest;
    use serde::Deserialize;

    use super::*;
    use crate::{ObjectSeed, Plan};

    /// API server responses must not need the fallback; no other test would notice.
    #[rstest]
    #[case::compact(
        r#"{"kind":"Pod","metadata":{"labels":{},"managedFields":[{"a":"\"]}"}]},"status":{"a":[1,true]}}"#
    )]
    #[case::trailing_newline("{\"kind\":\"Pod\"}\n")]
    #[case::pretty("\r\n\t{\n  \"kind\": \"Pod\",\n  \"metadata\": { },\n  \"status\": [ ]\n}")]
    #[case::escapes(r#"{"status":"\u003ca\u003e \"b\" \n \ud83d\udc0f","a\tb":1,"spec":"\\"}"#)]
    #[case::numbers(
        r#"{"status":[0,-0,-1,1.5,1e3,-2E-2,999999999999999999,1000000000000000000,18446744073709551615]}"#
    )]
    #[case::literals(r#"{"status":[null,true,false],"spec":null}"#)]
    #[case::beyond_ascii(r#"{"status":"größer 🐏","größer":"🐏"}"#)]
    fn uses_the_fast_path(#[case] json: &str) {
        for plan in [Plan::identity(), Plan::everything()] {
            assert!(read(json, ObjectSeed(&plan)).is_ok());
        }
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Event<'a> {
        r#type: Type,
        code: Option<Code>,
        message: Option<&'a str>,
        reason: Option<Cow<'a, str>>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    enum Type {
        Error,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Code(u16);

    #[test]
    fn deserializes_structs_and_enums() {
        let json = r#"{"message":"gone","type":"ERROR","code":410,"reason":null,"more":{}}"#;
        let event = Event { r#type: Type::Error, code: Some(Code(410)), message: Some("gone"), reason: None };
        assert_eq!(read(json, PhantomData::<Event<'_>>).ok(), Some(event));
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let text = "[".repeat(1_000_000);
        assert!(read(&text, PhantomData::<serde_json::Value>).is_err());
    }

    #[test]
    fn finds_the_first_match_at_every_offset() {
        for length in 0..20 {
            let plain = vec![0x80_u8; length];
            assert_eq!(find::<true>(&plain, 0), length);
            for (place, found) in (0..length).flat_map(|place| [(place, b'"'), (place, b'\\'), (place, 0x1f)])
            {
                let mut text = plain.clone();
                text[place..].fill(found);
                let expected = if found == 0x1f { length } else { place };
                for from in 0..=place {
                    assert_eq!(find::<true>(&text, from), place);
                    assert_eq!(find::<false>(&text, from), expected);
                }
            }
        }
        assert_eq!(find::<true>(b"ab", 7), 7, "beyond the end");
    }
}
