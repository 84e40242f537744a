//! Expressions over Kubernetes objects, in two languages with one evaluator.
//!
//! A [`Program`] is a compiled expression: CEL ([`Program::cel`]) or a tree of operations
//! ([`Program::tree`]). It knows the paths that it reads ([`Program::paths`]), so that callers need to keep
//! nothing else of an object. It reads them through [`Input`]: an object, a row of several objects, or facts
//! that were kept earlier.
//!
//! [`Fuel`] bounds the time and the memory of an evaluation. A missing field is neither a value nor an error
//! but [`Stop::Missing`]. The caller decides what it means: a rule that is not true yet, SQL's null, or an
//! error.

#![warn(missing_docs)]

mod cel;
mod check;
mod compare;
mod compile_error;
mod eval;
mod functions;
mod hints;
mod input;
mod json;
mod jsonpath;
mod loops;
mod make;
mod node;
mod operator;
mod path;
mod paths;
mod program;
mod quantity;
mod reach;
mod scope;
mod stop;
mod tree;
mod types;
mod value;

pub use compile_error::{CompileError, Place};
pub use input::{Facts, Input, Variables};
pub use path::{Absent, Path, Step};
pub use program::Program;
pub use quantity::{Quantity, QuantityError};
pub use scope::{Absence, Scope};
pub use stop::{Error, Fuel, Missing, Stop};
pub use types::Type;
pub use value::{Fields, List, Made, Text, Val};
