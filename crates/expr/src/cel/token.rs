//! Tokens.

use super::syntax::Literal;

/// A token and its byte range.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) at: u32,
    pub(crate) end: u32,
    pub(crate) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// An identifier, keyword or reserved identifier.
    Word(String),
    /// A field name in backticks.
    Escaped(String),
    Literal(Literal),
    /// The digits of an integer. Their limit depends on a minus before them, which only the parser knows.
    Digits(u64),
    Sign(&'static str),
    End,
}
