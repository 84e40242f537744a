//! The types of CEL, and sets of them for the type checker.

use std::fmt;

/// A type of CEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `null_type`, the type of `null`.
    Null,
    /// `bool`.
    Bool,
    /// `int`, 64 bits.
    Int,
    /// `uint`, 64 bits.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    Text,
    /// `bytes`.
    Bytes,
    /// `list`, with entries of any type.
    List,
    /// `map`, with keys of type bool, int, uint or string.
    Map,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// `google.protobuf.Duration`.
    Duration,
    /// `type`, the type of types.
    Type,
    /// A quantity of Kubernetes, such as `250Mi`.
    Quantity,
    /// `optional_type`, a value or none.
    Optional,
}

impl Type {
    const ALL: [Self; 14] = [
        Self::Null,
        Self::Bool,
        Self::Int,
        Self::Uint,
        Self::Double,
        Self::Text,
        Self::Bytes,
        Self::List,
        Self::Map,
        Self::Timestamp,
        Self::Duration,
        Self::Type,
        Self::Quantity,
        Self::Optional,
    ];

    /// The name in CEL: `type(x)` is a value of this name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::List => "list",
            Self::Map => "map",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::Type => "type",
            Self::Quantity => "kubernetes.Quantity",
            Self::Optional => "optional_type",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }
}

impl Type {
    /// With an article, for messages: `an int`.
    pub fn one(self) -> String {
        match self {
            Self::Int | Self::Optional => format!("an {self}"),
            Self::Null | Self::Bytes => self.to_string(),
            _ => format!("a {self}"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::Quantity => "quantity",
            Self::Null => "null",
            Self::Optional => "optional",
            other => other.name(),
        })
    }
}

/// The types that an expression may have. The checker rejects only what no type of the set allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u16);

impl Types {
    pub(crate) const ANY: Self = Self(u16::MAX);
    pub(crate) const BOOL: Self = Self::of(Type::Bool);
    pub(crate) const INT: Self = Self::of(Type::Int);
    pub(crate) const UINT: Self = Self::of(Type::Uint);
    pub(crate) const DOUBLE: Self = Self::of(Type::Double);
    pub(crate) const TEXT: Self = Self::of(Type::Text);
    pub(crate) const BYTES: Self = Self::of(Type::Bytes);
    pub(crate) const LIST: Self = Self::of(Type::List);
    pub(crate) const MAP: Self = Self::of(Type::Map);
    pub(crate) const TIMESTAMP: Self = Self::of(Type::Timestamp);
    pub(crate) const DURATION: Self = Self::of(Type::Duration);
    pub(crate) const TYPE: Self = Self::of(Type::Type);
    pub(crate) const QUANTITY: Self = Self::of(Type::Quantity);
    pub(crate) const OPTIONAL: Self = Self::of(Type::Optional);
    pub(crate) const NUMBER: Self = Self::INT.or(Self::UINT).or(Self::DOUBLE);

    pub(crate) const fn of(one: Type) -> Self {
        Self(1 << one as u16)
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn members(self) -> impl Iterator<Item = Type> {
        Type::ALL.into_iter().filter(move |one| self.meets(Self::of(*one)))
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return f.write_str("anything");
        }
        for (index, one) in self.members().enumerate() {
            if index > 0 {
                f.write_str(" or ")?;
            }
            write!(f, "{one}")?;
        }
        Ok(())
    }
}
