//! The text of a statement, made into tokens that the SQL parser accepts.
//!
//! Two things in it are not SQL: the objects after FROM (`deployments.apps/web-0`), and `$`, the root of paths
//! in collectors.

use sqlparser::{
    dialect::GenericDialect,
    keywords::Keyword,
    tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError, Word},
};

use crate::{From, error::SqlError};

/// Bounds the recursion over the parsed statement, too.
const MAX_TOKENS: usize = 2000;

/// The name of the root of paths in place of `$`.
pub(crate) const ROOT: &str = "$";

/// What the parser reads in place of the objects after FROM.
const PLACEHOLDER: char = 't';

pub(crate) struct Source {
    pub(crate) tokens: Vec<TokenWithSpan>,
    pub(crate) from: Option<From>,
}

impl Source {
    pub(crate) fn of(text: &str) -> Result<Self, SqlError> {
        let found = objects(text);
        let (from, text) = match found {
            None => (None, text.to_owned()),
            Some(Objects { start, end, at }) => {
                let objects = &text[start..end];
                let from = parse_objects(objects).map_err(|error| at_place(error, at))?;
                // Places of errors stay what they are.
                let spaces = " ".repeat(objects.chars().count() - 1);
                (Some(from), format!("{}{PLACEHOLDER}{spaces}{}", &text[..start], &text[end..]))
            }
        };
        let mut tokens = tokens(&text)?;
        if tokens.len() > MAX_TOKENS {
            return Err(SqlError::at(Location { line: 1, column: 1 }, "the statement is too long"));
        }
        for token in &mut tokens {
            if matches!(&token.token, Token::Placeholder(text) if text == ROOT) {
                let word = Word { value: ROOT.to_owned(), quote_style: None, keyword: Keyword::NoKeyword };
                token.token = Token::Word(word);
            }
        }
        Ok(Self { tokens, from })
    }
}

fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, SqlError> {
    Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().map_err(|error: TokenizerError| {
        let (first, rest) = error.message.split_at(error.message.chars().next().map_or(0, char::len_utf8));
        SqlError::at(error.location, format!("{}{rest}", first.to_lowercase()))
    })
}

/// Where the objects after FROM are, as byte offsets, and for errors.
struct Objects {
    start: usize,
    end: usize,
    at: Location,
}

/// None without FROM, or if it is followed by a subquery or by nothing: the parser reports these.
fn objects(text: &str) -> Option<Objects> {
    let mut tokens = Vec::new();
    // A name such as a--b begins a comment, which is an error only if it stays one.
    let _ = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens);
    let mut depth = 0_usize;
    for token in &tokens {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 0 && word.keyword == Keyword::FROM => {
                let after = offset(text, token.span.end)?;
                let start = after + text[after..].find(|c: char| !c.is_whitespace())?;
                let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')');
                let end = text[start..].find(is_end).map_or(text.len(), |length| start + length);
                let before = &text[..start];
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
                let at = Location {
                    line: number(before.matches('\n').count() + 1),
                    column: number(before[line_start..].chars().count() + 1),
                };
                return (end > start).then_some(Objects { start, end, at });
            }
            _ => {}
        }
    }
    None
}

/// The byte offset of a place.
fn offset(text: &str, location: Location) -> Option<usize> {
    let line = usize::try_from(location.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(location.column).ok()?.checked_sub(1)?;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = text.get(start..)?;
    Some(start + rest.char_indices().nth(column).map_or(rest.len(), |(index, _)| index))
}

fn parse_objects(objects: &str) -> Result<From, SqlError> {
    let objects = objects.trim_matches(['"', '`']);
    let unknown = Location { line: 0, column: 0 };
    let (kind, name) = match objects.split_once('/') {
        None => (objects, None),
        Some((kind, name)) => (kind, Some(name)),
    };
    let is_word = |word: &str| {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
        !word.is_empty() && word.chars().all(is_legal)
    };
    if !is_word(kind) || name.is_some_and(|name| !is_word(name)) {
        return Err(SqlError::at(unknown, format!("invalid objects {objects:?} after FROM"))
            .hint("write a resource such as deployments, deployments.apps or deployments/web"));
    }
    Ok(From { kind: kind.to_owned(), name: name.map(str::to_owned) })
}

fn at_place(error: SqlError, at: Location) -> SqlError {
    let hint = error.hint;
    SqlError { hint, ..SqlError::at(at, error.text) }
}
