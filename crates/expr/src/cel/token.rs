//! Words and signs.

use super::syntax::Literal;

/// A word or a sign, and the bytes of the text that it takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) at: u32,
    pub(crate) end: u32,
    pub(crate) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// A name, a keyword, or a word that is reserved.
    Word(String),
    /// A name between backticks: only the name of a field can be one.
    Escaped(String),
    Literal(Literal),
    /// The digits of a whole number: with a minus before them they may be one more than without.
    Digits(u64),
    Sign(&'static str),
    End,
}
