//! CEL as it is written: text with its precedence.

use std::fmt::Write as _;

/// Precedence, from the loosest to the tightest operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Conditional,
    Or,
    And,
    Relation,
    Sum,
    Product,
    Not,
    Primary,
}

/// A CEL expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cel {
    pub(crate) text: String,
    rank: Rank,
    number: Number,
}

/// What is known of a number: a double meets only doubles in arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// The value is known only at run time.
    Any,
    Double,
    /// A literal.
    Integer,
    /// Not a number.
    Text,
}

impl Cel {
    /// A literal, a path or a call.
    pub(crate) fn primary(text: impl Into<String>) -> Self {
        Self { text: text.into(), rank: Rank::Primary, number: Number::Any }
    }

    pub(crate) fn string(text: &str) -> Self {
        Self { number: Number::Text, ..Self::primary(quoted(text)) }
    }

    pub(crate) fn number(text: &str) -> Self {
        let is_double = text.contains(['.', 'e', 'E']);
        Self { number: if is_double { Number::Double } else { Number::Integer }, ..Self::primary(text) }
    }

    /// In arithmetic, an integer beside a double is a double, as in SQL.
    pub(crate) fn operation(left: &Self, operator: &str, right: &Self, rank: Rank) -> Self {
        let is_arithmetic = matches!(rank, Rank::Sum | Rank::Product);
        if !is_arithmetic || (left.number != Number::Double && right.number != Number::Double) {
            return Self::binary(left, operator, right, rank);
        }
        let result = Self::binary(&left.as_double(), operator, &right.as_double(), rank);
        Self { number: Number::Double, ..result }
    }

    fn as_double(&self) -> Self {
        match self.number {
            Number::Any => Self::primary(format!("double({})", self.text)),
            Number::Integer => Self::primary(format!("{}.0", self.text)),
            Number::Double | Number::Text => self.clone(),
        }
    }

    /// Operands that have the rank of the operator stay without parentheses on the left.
    pub(crate) fn binary(left: &Self, operator: &str, right: &Self, rank: Rank) -> Self {
        // Comparisons are not associative in SQL.
        let is_left_open = left.rank > rank || (left.rank == rank && rank != Rank::Relation);
        let left = if is_left_open { left.text.clone() } else { format!("({})", left.text) };
        let is_associative = matches!(rank, Rank::Or | Rank::And);
        let is_right_open = right.rank > rank || (right.rank == rank && is_associative);
        let right = if is_right_open { right.text.clone() } else { format!("({})", right.text) };
        Self { text: format!("{left} {operator} {right}"), rank, number: Number::Any }
    }

    pub(crate) fn relation(left: &Self, operator: &str, right: &Self) -> Self {
        Self::binary(left, operator, right, Rank::Relation)
    }

    pub(crate) fn and(left: &Self, right: &Self) -> Self {
        Self::binary(left, "&&", right, Rank::And)
    }

    pub(crate) fn prefixed(operator: char, operand: &Self) -> Self {
        let text = format!("{operator}{}", operand.in_parentheses(Rank::Primary));
        Self { text, rank: Rank::Not, number: operand.number }
    }

    pub(crate) fn negated_if(self, negated: bool) -> Self {
        if negated { Self::prefixed('!', &self) } else { self }
    }

    pub(crate) fn conditional(condition: &Self, then: &Self, otherwise: &Self) -> Self {
        let text = format!(
            "{} ? {} : {}",
            condition.in_parentheses(Rank::Or),
            then.in_parentheses(Rank::Or),
            otherwise.text
        );
        Self { text, rank: Rank::Conditional, number: Number::Any }
    }

    pub(crate) fn method(&self, name: &str, arguments: &str) -> Self {
        Self::primary(format!("{}.{name}({arguments})", self.in_parentheses(Rank::Primary)))
    }

    fn in_parentheses(&self, least: Rank) -> String {
        if self.rank >= least { self.text.clone() } else { format!("({})", self.text) }
    }
}

/// A string literal.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for char in text.chars() {
        match char {
            '\'' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            char if char.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('\'');
    quoted
}

/// Words that CEL reserves.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// `.field`, or `['a/b']` where a dot cannot be followed by it.
pub(crate) fn field(name: &str) -> String {
    let mut chars = name.chars();
    let starts = chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let is_word = starts && chars.all(|char| char.is_ascii_alphanumeric() || char == '_');
    // As a field, `namespace` is a name like any other.
    if is_word && (name == "namespace" || !RESERVED.contains(&name)) {
        format!(".{name}")
    } else {
        format!("[{}]", quoted(name))
    }
}
