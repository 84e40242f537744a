//! CEL: lexer, parser and compiler.

mod compile;
mod lex;
mod literal;
mod macros;
mod parse;
mod syntax;
mod token;

pub(crate) use compile::compile;
