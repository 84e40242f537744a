//! The lexer.

use crate::{compile_error::ErrorAt, hints};

use super::{
    literal,
    syntax::Literal,
    token::{Token, TokenKind},
};

/// Longer operators first: the first match wins.
const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "+", "*", "/", "%", "?",
    ":", "!", "<", ">",
];

/// The tokens of an expression, with `End` last.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, ErrorAt> {
    let mut tokens = Vec::with_capacity(text.len() / 3 + 1);
    let mut at = 0;
    loop {
        at = skip_blank(text, at);
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            tokens.push(Token { at: offset(at), end: offset(at), kind: TokenKind::End });
            return Ok(tokens);
        };
        let (length, kind) = if let Some(quoted) = literal::quoted(rest) {
            quoted.map_err(|slip| shifted(slip, at))?
        } else if first.is_ascii_digit()
            || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            literal::number(rest).map_err(|slip| shifted(slip, at))?
        } else if first == '_' || first.is_ascii_alphabetic() {
            let length = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            (length, word(&rest[..length]))
        } else if first == '`' {
            escaped(rest).map_err(|slip| shifted(slip, at))?
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (sign.len(), TokenKind::Sign(sign))
        } else {
            return Err(ErrorAt::new(offset(at), format!("unexpected `{}`", first.escape_debug()))
                .maybe_hint(hints::for_stray(rest)));
        };
        tokens.push(Token { at: offset(at), end: offset(at + length), kind });
        at += length;
    }
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn shifted(mut slip: ErrorAt, by: usize) -> ErrorAt {
    slip.at += offset(by);
    slip
}

/// Skips whitespace and comments.
fn skip_blank(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        at += rest.len() - trimmed.len();
        if !trimmed.starts_with("//") {
            return at;
        }
        at += trimmed.find('\n').unwrap_or(trimmed.len());
    }
}

fn word(word: &str) -> TokenKind {
    match word {
        "null" => TokenKind::Literal(Literal::Null),
        "true" => TokenKind::Literal(Literal::Bool(true)),
        "false" => TokenKind::Literal(Literal::Bool(false)),
        "in" => TokenKind::Sign("in"),
        other => TokenKind::Word(other.to_owned()),
    }
}

/// A field name in backticks, such as `` `app.kubernetes.io/name` ``.
fn escaped(rest: &str) -> Result<(usize, TokenKind), ErrorAt> {
    let Some((name, _)) = rest[1..].split_once('`') else {
        return Err(ErrorAt::new(0, "unterminated field name").hint("close it with `"));
    };
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
    if name.is_empty() || !name.chars().all(is_legal) {
        return Err(ErrorAt::new(0, format!("invalid field name `{name}` in backticks"))
            .hint(format!("write ['{name}']")));
    }
    Ok((name.len() + 2, TokenKind::Escaped(name.to_owned())))
}
