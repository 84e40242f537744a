//! What a text says, before anybody asks what it means.

use crate::operator::Operator;

/// An expression, and where it begins or, for operators, where the operator stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub(crate) at: u32,
    /// How many expressions deep it is.
    pub(crate) depth: u16,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Literal(Literal),
    /// A name; with a dot before it, it is nobody's but the scope's.
    Name {
        name: String,
        absolute: bool,
    },
    Select {
        of: Box<Expr>,
        field: String,
        optional: bool,
    },
    Index {
        of: Box<Expr>,
        index: Box<Expr>,
        optional: bool,
    },
    Call {
        on: Option<Box<Expr>>,
        name: String,
        arguments: Vec<Expr>,
    },
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary {
        operator: Operator,
        operands: Box<[Expr; 2]>,
    },
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Conditional(Box<[Expr; 3]>),
    List(Vec<Element>),
    Map(Vec<Field>),
    /// A message of protocol buffers: `Name{field: value}`.
    Message {
        name: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// An entry of a list; an optional one is left out if it is not there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A field of a map; an optional one is left out if it is not there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}
