//! Compiled expressions. CEL and trees share them.

use bellwether_model::Value;
use jiff::{SignedDuration, Timestamp};

use crate::{
    functions::{Function, Pattern},
    quantity::Quantity,
    types::Type,
};

/// An operation and its place: a byte offset in text, or the number of a place in a tree.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: u32,
    pub(crate) op: Op,
}

#[derive(Debug)]
pub(crate) enum Op {
    Constant(Constant),
    /// The value at a path of the input, by its index.
    Read(usize),
    /// Whether a path of the input has a value, by its index.
    Has(usize),
    /// A variable of a loop, by its slot.
    Local(usize),
    Select {
        of: Box<Node>,
        field: Box<str>,
        optional: bool,
    },
    HasField {
        of: Box<Node>,
        field: Box<str>,
    },
    Index {
        of: Box<Node>,
        index: Box<Node>,
        optional: bool,
    },
    Not(Box<Node>),
    Negate(Box<Node>),
    All(Box<[Node]>),
    Any(Box<[Node]>),
    Conditional(Box<[Node; 3]>),
    Compare(Comparison, Box<[Node; 2]>),
    Arithmetic(Arithmetic, Box<[Node; 2]>),
    In(Box<[Node; 2]>),
    /// SQL's `null`: a missing value.
    Nothing,
    /// The input as one object: the fields of the first path, overlaid with the named others.
    Whole(Box<[(Box<str>, usize)]>),
    /// Whether the operand is missing or `null`.
    IsNull(Box<Node>),
    /// Whether the operand is neither missing nor `null`.
    IsSomething(Box<Node>),
    List(Box<[Element]>),
    Map(Box<[Field]>),
    Loop(Box<Loop>),
    /// `cel.bind`: a value, and the expression that uses it.
    Bind(Box<[Node; 2]>),
    /// `optMap`, or `optFlatMap` if `flat`: an optional, and the expression for its value.
    Mapped {
        parts: Box<[Node; 2]>,
        flat: bool,
    },
    /// A call. The types of the arguments select one of the overloads at run time.
    Call(Box<[&'static Function]>, Box<[Node]>),
    /// `matches` with a constant pattern, compiled once.
    Matches(Box<Node>, Box<Pattern>),
}

impl Node {
    /// Whether the value is always a bool. Such nodes are evaluated without a [`Val`](crate::value::Val).
    pub(crate) fn is_predicate(&self) -> bool {
        matches!(
            self.op,
            Op::Compare(..)
                | Op::All(_)
                | Op::Any(_)
                | Op::Not(_)
                | Op::Has(_)
                | Op::HasField { .. }
                | Op::In(_)
                | Op::IsNull(_)
                | Op::IsSomething(_)
                | Op::Matches(..)
        )
    }
}

/// A value that is known at compile time.
#[derive(Debug)]
pub(crate) enum Constant {
    /// A value of JSON.
    Value(Value<'static>),
    Uint(u64),
    Bytes(Box<[u8]>),
    Type(Type),
    Timestamp(Timestamp),
    Duration(SignedDuration),
    Quantity(Quantity),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

/// A macro that evaluates an expression for each entry of a list or each field of a map.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    pub(crate) range: Node,
    /// Whether the loop has two variables, index or key and value. A single one is the entry of a list or the
    /// key of a map.
    pub(crate) pairs: bool,
    /// Only entries for which this is true are evaluated.
    pub(crate) filter: Option<Node>,
    pub(crate) body: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    /// `map`, `transformList`: a list of the values of the body.
    List,
    /// `filter`: a list of the entries for which the body is true.
    Filter,
    /// `transformMap`: a map with the same keys.
    Map,
    /// `transformMapEntry`: the union of the maps that the body returns.
    MapEntries,
    /// `sortBy`: the entries in the order of the values of the body.
    Sort,
}
