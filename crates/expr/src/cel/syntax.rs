//! The syntax tree of CEL.

use crate::operator::Operator;

/// An expression. `at` is the offset of its first token or, for operators, of the operator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub(crate) at: u32,
    /// The nesting depth, for the limit of the parser.
    pub(crate) depth: u16,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Literal(Literal),
    /// A name. With a leading dot it is absolute: variables of loops do not shadow it.
    Name {
        name: String,
        absolute: bool,
    },
    Select {
        of: Box<Expr>,
        field: String,
        field_at: u32,
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
    List(Vec<ElementExpr>),
    Map(Vec<FieldExpr>),
    /// A protobuf message: `Name{field: value}`. The compiler rejects it.
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

/// An entry of a list. An optional one is left out if it has no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ElementExpr {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A field of a map. An optional one is left out if it has no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldExpr {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}
