//! Literals: numbers, strings and bytes.

use crate::compile_error::ErrorAt;

use super::{syntax::Literal, token::TokenKind};

type Read = Result<(usize, TokenKind), ErrorAt>;

/// Reads a number, and returns its length in bytes.
pub(super) fn number(text: &str) -> Read {
    let bytes = text.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let length = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        return whole(&hex[..length], 16, text, 2 + length);
    }
    let mut end = digits(0);
    let mut is_double = false;
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        is_double = true;
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            is_double = true;
            end = exponent;
        }
    }
    if !is_double {
        return whole(&text[..end], 10, text, end);
    }
    match text[..end].parse::<f64>() {
        Ok(number) if number.is_finite() => followed(text, end, TokenKind::Literal(Literal::Double(number))),
        _ => Err(ErrorAt::new(0, format!("{} is out of range for a double", &text[..end]))),
    }
}

fn whole(digits: &str, radix: u32, text: &str, end: usize) -> Read {
    let is_unsigned = text[end..].starts_with(['u', 'U']);
    if digits.is_empty() {
        return Err(ErrorAt::new(0, format!("`{}` is not a number", &text[..end])));
    }
    let number = u64::from_str_radix(digits, radix).map_err(|_| {
        let kind = if is_unsigned { "a uint" } else { "an int" };
        ErrorAt::new(0, format!("{} is out of range for {kind}", &text[..end]))
    })?;
    if is_unsigned {
        followed(text, end + 1, TokenKind::Literal(Literal::Uint(number)))
    } else {
        followed(text, end, TokenKind::Digits(number))
    }
}

/// Rejects a number that a word follows directly, such as `5m`.
fn followed(text: &str, end: usize, kind: TokenKind) -> Read {
    let tail = text[end..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').count();
    if tail == 0 {
        return Ok((end, kind));
    }
    let word = &text[..end + tail];
    let hint = match &text[end..end + tail] {
        "m" => Some(format!("write quantity('{word}') for a quantity, or duration('{word}') for a duration")),
        "s" | "h" | "ms" | "us" | "ns" => Some(format!("write duration('{word}')")),
        "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => {
            Some(format!("write quantity('{word}')"))
        }
        _ => None,
    };
    Err(ErrorAt::new(0, format!("`{word}` is not a number")).maybe_hint(hint))
}

/// Reads a string or bytes, and returns the length in bytes. `None` if there is no quote.
pub(super) fn quoted(text: &str) -> Option<Read> {
    let prefix = text.bytes().take(2).take_while(|byte| b"rRbB".contains(byte)).count();
    let (letters, rest) = text.split_at(prefix);
    let quote = rest.chars().next().filter(|c| *c == '"' || *c == '\'')?;
    let is_raw = letters.contains(['r', 'R']);
    let is_bytes = letters.contains(['b', 'B']);
    if prefix == 2 && is_raw != is_bytes {
        return None;
    }
    let triple = if quote == '"' { "\"\"\"" } else { "'''" };
    let mark = if rest.starts_with(triple) { triple } else { &triple[..1] };
    Some(between(rest, mark, is_raw).and_then(|inner| {
        let end = prefix + inner.len() + 2 * mark.len();
        let start = prefix + mark.len();
        let literal = match (is_raw, is_bytes) {
            (true, true) => Literal::Bytes(inner.as_bytes().to_vec()),
            (true, false) => Literal::Text(inner.to_owned()),
            (false, true) => Literal::Bytes(unescaped_bytes(inner, start)?),
            (false, false) => Literal::Text(unescaped_text(inner, start)?),
        };
        Ok((end, TokenKind::Literal(literal)))
    }))
}

/// The content between two quotes.
fn between<'a>(text: &'a str, mark: &str, is_raw: bool) -> Result<&'a str, ErrorAt> {
    let inner = &text[mark.len()..];
    let mut at = 0;
    while at < inner.len() {
        let rest = &inner[at..];
        if rest.starts_with(mark) {
            return Ok(&inner[..at]);
        }
        if mark.len() == 1 && rest.starts_with('\n') {
            break;
        }
        if !is_raw && rest.starts_with('\\') {
            at += 1;
        }
        at += inner[at..].chars().next().map_or(1, char::len_utf8);
    }
    Err(ErrorAt::new(0, "unterminated string").hint(format!("close it with {mark}")))
}

fn unescaped_text(inner: &str, start: usize) -> Result<String, ErrorAt> {
    let mut text = String::with_capacity(inner.len());
    escapes(inner, start, |piece| {
        match piece {
            Piece::Char(c) => text.push(c),
            Piece::Code(code, _) => text.push(char::from_u32(code)?),
        }
        Some(())
    })?;
    Ok(text)
}

fn unescaped_bytes(inner: &str, start: usize) -> Result<Vec<u8>, ErrorAt> {
    let mut bytes = Vec::with_capacity(inner.len());
    escapes(inner, start, |piece| {
        match piece {
            Piece::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Piece::Code(code, is_byte) => bytes.push(u8::try_from(code).ok().filter(|_| is_byte)?),
        }
        Some(())
    })?;
    Ok(bytes)
}

/// A character as it is, or the code of an escape and whether it may be a byte.
enum Piece {
    Char(char),
    Code(u32, bool),
}

/// Resolves escapes. `add` receives each piece, and returns `None` for an invalid code.
fn escapes(inner: &str, start: usize, mut add: impl FnMut(Piece) -> Option<()>) -> Result<(), ErrorAt> {
    let mut rest = inner;
    while let Some(c) = rest.chars().next() {
        let at = start + inner.len() - rest.len();
        let slip = |what: &str| {
            ErrorAt::new(u32::try_from(at).unwrap_or(u32::MAX), format!("invalid escape {what}"))
                .hint("write \\\\ for a backslash, or r'...' for a raw string")
        };
        if c != '\\' {
            rest = &rest[c.len_utf8()..];
            // A plain character is always valid.
            let _ = add(Piece::Char(c));
            continue;
        }
        let Some(escape) = rest[1..].chars().next() else { return Err(slip("\\")) };
        let after = &rest[1 + escape.len_utf8()..];
        let simple = match escape {
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            '\\' | '?' | '"' | '\'' | '`' => Some(escape),
            _ => None,
        };
        if let Some(c) = simple {
            let _ = add(Piece::Char(c));
            rest = after;
            continue;
        }
        let (digits, length, radix, is_byte) = match escape {
            'x' | 'X' => (after, 2, 16, true),
            'u' => (after, 4, 16, false),
            'U' => (after, 8, 16, false),
            '0'..='3' => (&rest[1..], 3, 8, true),
            _ => return Err(slip(&format!("\\{}", escape.escape_debug()))),
        };
        let written = digits.get(..length).filter(|digits| digits.chars().all(|c| c.is_digit(radix)));
        let code = written.and_then(|digits| u32::from_str_radix(digits, radix).ok());
        code.and_then(|code| add(Piece::Code(code, is_byte))).ok_or_else(|| {
            let all = digits.char_indices().nth(length).map_or(digits.len(), |(end, _)| end);
            let from = rest.len() - digits.len();
            let kind = if radix == 8 { "octal" } else { "hexadecimal" };
            slip(&format!("`{}`", &rest[..from + all]))
                .hint(format!("write {length} {kind} digits of a valid character code"))
        })?;
        rest = &digits[length..];
    }
    Ok(())
}
