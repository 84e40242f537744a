//! Compiled expressions: what the evaluator walks through, whichever language they were written in.

use bellwether_model::Value;
use jiff::{SignedDuration, Timestamp};

use crate::{
    functions::{Function, Pattern},
    quantity::Quantity,
    types::Type,
};

/// An operation, and where it was written: a byte of a text, or the number of a place in a tree.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: u32,
    pub(crate) op: Op,
}

#[derive(Debug)]
pub(crate) enum Op {
    Constant(Constant),
    /// The value at a path of the input.
    Read(usize),
    /// Whether there is something at a path of the input.
    Has(usize),
    /// A variable of a loop.
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
    /// The `null` of SQL: nothing is there.
    Nothing,
    /// The input as one object: all fields of the first, but those that the others say.
    Whole(Box<[(Box<str>, usize)]>),
    /// Whether there is nothing, or `null`.
    IsNull(Box<Node>),
    /// Whether there is something that is not `null`.
    IsSomething(Box<Node>),
    List(Box<[Element]>),
    Map(Box<[Field]>),
    Loop(Box<Loop>),
    /// A value that the rest has a name for.
    Bind(Box<[Node; 2]>),
    /// If something is there, what the rest makes of it; `flat` if that may itself be nothing.
    Mapped {
        parts: Box<[Node; 2]>,
        flat: bool,
    },
    /// A function, one of several if the types of the arguments decide.
    Call(Box<[&'static Function]>, Box<[Node]>),
    /// A regular expression that was known beforehand.
    Matches(Box<Node>, Box<Pattern>),
}

impl Node {
    /// Whether its value is always true or false.
    pub(crate) fn is_question(&self) -> bool {
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

/// A value that was known beforehand.
#[derive(Debug)]
pub(crate) enum Constant {
    /// What JSON can tell.
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

/// Something that is done with each entry of a list or each field of a map.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    pub(crate) range: Node,
    /// Whether the loop has two variables: index or key, and value. With one, it is the entry of a list or the key of a map.
    pub(crate) pairs: bool,
    /// What is left out.
    pub(crate) filter: Option<Node>,
    pub(crate) body: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    /// A list of what the body gives.
    List,
    /// A list of the entries for which the body is true.
    Filter,
    /// A map with the same keys.
    Map,
    /// A map of the maps that the body gives.
    MapEntries,
    /// The entries in the order of what the body gives.
    Sort,
}
