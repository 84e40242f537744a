//! A scanner for Rust source: what is a string literal, what is a comment, and what is only for tests.

use std::ops::Range;

/// Copies of a source file, byte by byte, in which everything else is blanked. Line breaks stay.
pub(super) struct Masks {
    /// String literals, and doc comments from which clap makes help texts.
    pub(super) texts: Vec<u8>,
    /// Comments, and the reasons of lint attributes.
    pub(super) comments: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Comment,
    DocComment,
    /// The range excludes the delimiters.
    Text {
        raw: bool,
    },
    Word,
    Punctuation(u8),
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    range: Range<usize>,
}

/// The derive macros of clap that turn doc comments into help texts.
const CLAP: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

pub(super) fn masks(source: &str) -> Masks {
    let tokens = tokens(source.as_bytes());
    let source = source.as_bytes();
    let items = Items { source, tokens: &tokens };
    let (tests, help, lints) = (items.tests(), items.help(), items.lints());
    let mut masks = Masks { texts: blank(source), comments: blank(source) };
    for (index, token) in tokens.iter().enumerate() {
        let is_in = |ranges: &[Range<usize>]| ranges.iter().any(|range| range.contains(&index));
        if is_in(&tests) {
            continue;
        }
        match token.kind {
            Kind::DocComment if is_in(&help) => copy_comment(source, &mut masks.texts, &token.range),
            Kind::Comment | Kind::DocComment => copy_comment(source, &mut masks.comments, &token.range),
            Kind::Text { raw } => {
                let mask = if is_in(&lints) { &mut masks.comments } else { &mut masks.texts };
                copy_text(source, mask, &token.range, raw);
            }
            Kind::Word | Kind::Punctuation(_) => {}
        }
    }
    masks
}

/// The names of modules that are declared as `#[cfg(test)] mod name;`.
pub(super) fn test_modules(source: &str) -> Vec<String> {
    let tokens = tokens(source.as_bytes());
    let items = Items { source: source.as_bytes(), tokens: &tokens };
    let name = |range: Range<usize>| {
        let module = range.clone().find(|index| items.is_word(*index, "mod"))?;
        let is_declared = items.is_punctuation(module + 2, b';');
        is_declared.then(|| source[tokens[module + 1].range.clone()].to_owned())
    };
    items.tests().into_iter().filter_map(name).collect()
}

fn blank(source: &[u8]) -> Vec<u8> {
    source.iter().map(|byte| if *byte == b'\n' { b'\n' } else { 0 }).collect()
}

/// The marks become spaces, and so does the indentation: a sentence continues on the next line.
fn copy_comment(source: &[u8], mask: &mut [u8], range: &Range<usize>) {
    let line = source[..range.start].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if source[line..range.start].iter().all(u8::is_ascii_whitespace) {
        mask[line..range.start].fill(b' ');
    }
    mask[range.clone()].copy_from_slice(&source[range.clone()]);
    let is_mark = |byte: &&mut u8| matches!(byte, b'/' | b'!' | b'*');
    mask[range.clone()].iter_mut().take_while(is_mark).for_each(|byte| *byte = b' ');
}

/// An escape becomes white space or punctuation of the same length.
fn copy_text(source: &[u8], mask: &mut [u8], range: &Range<usize>, raw: bool) {
    mask[range.clone()].copy_from_slice(&source[range.clone()]);
    let mut at = range.start;
    while !raw && at < range.end {
        if source[at] != b'\\' {
            at += 1;
            continue;
        }
        match source.get(at + 1) {
            Some(b'n' | b'r' | b't') => mask[at..at + 2].fill(b' '),
            // The line continues: the white space after it is not part of the text.
            Some(b'\n') => mask[at] = b' ',
            _ => mask[at..(at + 2).min(range.end)].fill(b'.'),
        }
        at += 2;
    }
}

fn tokens(source: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let token = if rest.starts_with(b"//") {
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(source.len(), |end| at + end);
            let is_doc = (rest.starts_with(b"///") && !rest.starts_with(b"////")) || rest.starts_with(b"//!");
            Some((if is_doc { Kind::DocComment } else { Kind::Comment }, at..end, end))
        } else if rest.starts_with(b"/*") {
            let end = block_comment_end(source, at);
            Some((Kind::Comment, at..end, end))
        } else if let Some((range, end)) = raw_text(source, at) {
            Some((Kind::Text { raw: true }, range, end))
        } else if let Some(start) = text_start(rest) {
            let end = text_end(source, at + start);
            Some((Kind::Text { raw: false }, at + start..end, end + 1))
        } else if rest[0] == b'\'' {
            at = character_end(source, at);
            None
        } else if is_word(rest[0]) {
            let end = rest.iter().position(|byte| !is_word(*byte)).map_or(source.len(), |end| at + end);
            Some((Kind::Word, at..end, end))
        } else if rest[0].is_ascii_whitespace() {
            at += 1;
            None
        } else {
            Some((Kind::Punctuation(rest[0]), at..at + 1, at + 1))
        };
        if let Some((kind, range, end)) = token {
            let end = end.min(source.len());
            tokens.push(Token { kind, range: range.start..range.end.min(source.len()) });
            at = end;
        }
    }
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Block comments nest.
fn block_comment_end(source: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < source.len() {
        if source[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if source[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    source.len()
}

/// `r"…"`, `r#"…"#`, `br"…"`, `cr"…"`: the range of the text, and the end of the literal.
fn raw_text(source: &[u8], start: usize) -> Option<(Range<usize>, usize)> {
    let rest = &source[start..];
    let prefix = [&b"r"[..], b"br", b"cr"].into_iter().find(|prefix| rest.starts_with(prefix))?.len();
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(prefix + hashes) != Some(&b'"') {
        return None;
    }
    let text = start + prefix + hashes + 1;
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let end = source[text..].windows(close.len()).position(|window| window == close);
    let end = end.map_or(source.len(), |end| text + end);
    Some((text..end, end + close.len()))
}

/// `"…"`, `b"…"`, `c"…"`: the length of what precedes the text.
fn text_start(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'"', ..] => Some(1),
        [b'b' | b'c', b'"', ..] => Some(2),
        _ => None,
    }
}

/// The offset of the closing quote.
fn text_end(source: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < source.len() && source[at] != b'"' {
        at += if source[at] == b'\\' { 2 } else { 1 };
    }
    at.min(source.len())
}

/// The end of a character literal, or of the quote of a lifetime.
fn character_end(source: &[u8], start: usize) -> usize {
    let rest = &source[start + 1..];
    if rest.first() == Some(&b'\\') {
        let end = rest.iter().skip(2).position(|byte| *byte == b'\'');
        return end.map_or(source.len(), |end| start + end + 4);
    }
    let length = rest.iter().skip(1).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count() + 1;
    if rest.get(length) == Some(&b'\'') { start + length + 2 } else { start + 1 }
}

/// Finds items by their attributes. All ranges are of tokens.
struct Items<'a> {
    source: &'a [u8],
    tokens: &'a [Token],
}

impl Items<'_> {
    /// Items with `#[cfg(test)]`; everything after `#![cfg(test)]`.
    fn tests(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (attribute, inner) in self.attributes() {
            let words: Vec<_> = self.significant(attribute.clone()).collect();
            if words == ["[", "cfg", "(", "test", ")", "]"] {
                let end = if inner { self.tokens.len() } else { self.item_end(attribute.end) };
                found.push(attribute.start..end);
            }
        }
        found
    }

    /// Types whose doc comments clap shows, with the doc comments before them.
    fn help(&self) -> Vec<Range<usize>> {
        let is_clap = |(attribute, _): &(Range<usize>, bool)| {
            let words: Vec<_> = self.significant(attribute.clone()).collect();
            words.get(1) == Some(&"derive") && words.iter().any(|word| CLAP.contains(word))
        };
        let with_docs = |(attribute, _): (Range<usize>, bool)| {
            let before = self.tokens[..attribute.start].iter().rev();
            // The token before the brackets is the hash.
            let docs = before.skip(1).take_while(|token| token.kind == Kind::DocComment).count();
            attribute.start - 1 - docs..self.item_end(attribute.end)
        };
        self.attributes().into_iter().filter(is_clap).map(with_docs).collect()
    }

    /// The attributes `allow` and `expect`, whose reasons are for developers.
    fn lints(&self) -> Vec<Range<usize>> {
        let is_lint = |(attribute, _): &(Range<usize>, bool)| {
            matches!(self.significant(attribute.clone()).nth(1), Some("allow" | "expect"))
        };
        self.attributes().into_iter().filter(is_lint).map(|(attribute, _)| attribute).collect()
    }

    /// The brackets of each attribute, and whether it is an inner one.
    fn attributes(&self) -> Vec<(Range<usize>, bool)> {
        let mut found = Vec::new();
        for index in 0..self.tokens.len() {
            let inner = self.is_punctuation(index + 1, b'!');
            let open = index + 1 + usize::from(inner);
            if self.is_punctuation(index, b'#') && self.is_punctuation(open, b'[') {
                found.push((open..self.closing(open) + 1, inner));
            }
        }
        found
    }

    /// The token after an item: behind its block or its semicolon.
    fn item_end(&self, start: usize) -> usize {
        let mut at = start;
        while at < self.tokens.len() {
            match self.tokens[at].kind {
                Kind::Punctuation(b';') => return at + 1,
                Kind::Punctuation(b'{') => return self.closing(at) + 1,
                Kind::Punctuation(b'(' | b'[') => at = self.closing(at),
                _ => {}
            }
            at += 1;
        }
        at
    }

    /// The bracket that closes the one at `open`.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for (index, token) in self.tokens.iter().enumerate().skip(open) {
            match token.kind {
                Kind::Punctuation(b'(' | b'[' | b'{') => depth += 1,
                Kind::Punctuation(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if depth == 0 {
                return index;
            }
        }
        self.tokens.len().saturating_sub(1)
    }

    /// The words and the punctuation of a range.
    fn significant(&self, range: Range<usize>) -> impl Iterator<Item = &str> {
        let tokens = self.tokens[range].iter();
        tokens
            .filter(|token| matches!(token.kind, Kind::Word | Kind::Punctuation(_)))
            .map(|token| self.text(token))
    }

    fn is_word(&self, index: usize, word: &str) -> bool {
        self.tokens.get(index).is_some_and(|token| token.kind == Kind::Word && self.text(token) == word)
    }

    fn is_punctuation(&self, index: usize, byte: u8) -> bool {
        self.tokens.get(index).is_some_and(|token| token.kind == Kind::Punctuation(byte))
    }

    fn text(&self, token: &Token) -> &str {
        std::str::from_utf8(&self.source[token.range.clone()]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The parts of a mask, separated by a bar.
    fn parts(mask: &[u8]) -> String {
        let text = String::from_utf8_lossy(mask).into_owned();
        let parts: Vec<_> = text.split(['\0', '\n']).map(str::trim).filter(|part| !part.is_empty()).collect();
        parts.join("|")
    }

    fn texts(source: &str) -> String {
        parts(&masks(source).texts)
    }

    fn comments(source: &str) -> String {
        parts(&masks(source).comments)
    }

    #[rstest]
    #[case::plain(r#"f("one", "two")"#, "one|two")]
    #[case::quotes(r#"f("a \"b\" c")"#, "a ..b.. c")]
    #[case::backslash(r#"f("a\\", "b")"#, "a..|b")]
    #[case::white_space(r#"f("a\nb\tc")"#, "a  b  c")]
    #[case::continued("f(\"is \\\n      no\")", "is|no")]
    #[case::raw(r###"f(r"a\", r#"b "c" d"#, r##"e"#f"##)"###, r##"a\|b "c" d|e"#f"##)]
    #[case::bytes(r##"f(b"a", br"b", br#"c"#, c"d")"##, "a|b|c|d")]
    #[case::characters(r#"f('"', '\'', '\u{1f}', 'é', "a")"#, "a")]
    #[case::lifetimes(r#"fn f<'a>(x: &'a str) { g("a") }"#, "a")]
    #[case::raw_word(r#"r#type("a")"#, "a")]
    #[case::in_comments("// \"a\"\n/* \"b\" /* \"c\" */ \"d\" */ f(\"e\")", "e")]
    #[case::like_a_comment(r#"f("http://a", "/* b")"#, "http://a|/* b")]
    #[case::umlauts(r#"f("ä … b")"#, "ä … b")]
    #[case::open(r#"f("a"#, "a")]
    fn string_literals_are_found(#[case] source: &str, #[case] expected: &str) {
        assert_eq!(texts(source), expected);
    }

    #[rstest]
    #[case("// one\n/// two\n//! three\nf(); // four", "one|two|three|four")]
    #[case("/* one\n * two */ f()", "one|* two */")]
    #[case(r#"f("// no", 'a') // yes"#, "yes")]
    #[case("//// bars\n//\n// end", "bars|end")]
    fn comments_are_found(#[case] source: &str, #[case] expected: &str) {
        assert_eq!(comments(source), expected);
    }

    #[test]
    fn masks_keep_every_offset() {
        let source = "// ä\nfn f() {\n    g(\"b\");\n}\n";
        let masks = masks(source);
        assert_eq!((masks.texts.len(), masks.comments.len()), (source.len(), source.len()));
        let lines = |mask: &[u8]| mask.split(|byte| *byte == b'\n').count();
        assert_eq!((lines(&masks.texts), lines(&masks.comments)), (5, 5));
        let offset = masks.texts.iter().position(|byte| *byte == b'b');
        assert_eq!(offset, source.find("b\""));
    }

    #[rstest]
    #[case::module("f(\"a\"); #[cfg(test)] mod tests { fn g() { h(\"b\") } } i(\"c\")", "a|c")]
    #[case::with_attributes("#[cfg(test)] #[expect(x)] mod tests { \"a\" } \"b\"", "b")]
    #[case::function("#[cfg(test)] pub(crate) fn f(x: [u8; 2]) -> u8 { g(\"a\") } \"b\"", "b")]
    #[case::import("#[cfg(test)] use a::{b, c}; \"d\"", "d")]
    #[case::brace_in_a_string("#[cfg(test)] mod tests { f(\"}\", '}') } \"b\"", "b")]
    #[case::whole_file("#![cfg(test)] f(\"a\")", "")]
    #[case::not_only_for_tests("#[cfg(any(test, feature = \"x\"))] mod a { f(\"b\") }", "x|b")]
    #[case::no_test("#[cfg(not(test))] mod a { f(\"b\") }", "b")]
    fn tests_are_skipped(#[case] source: &str, #[case] expected: &str) {
        assert_eq!(texts(source), expected);
    }

    #[test]
    fn modules_for_tests_are_known_by_name() {
        let source = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod c;\n#[cfg(test)]\nmod tests {\n    mod d;\n}\n";
        assert_eq!(test_modules(source), ["b", "c"]);
    }

    #[test]
    fn doc_comments_for_clap_are_texts() {
        let source = "/// About\n#[derive(Debug, Args)]\nstruct A {\n    /// Help\n    #[arg(long)]\n    // why\n    a: u8,\n}\n/// Doc\nstruct B;\n";
        assert_eq!((texts(source).as_str(), comments(source).as_str()), ("About|Help", "why|Doc"));
    }

    #[test]
    fn reasons_of_lints_are_comments() {
        let source = "#[expect(clippy::x, reason = \"why\")]\nfn f() { g(\"a\") }\n";
        assert_eq!((texts(source).as_str(), comments(source).as_str()), ("a", "why"));
    }
}
