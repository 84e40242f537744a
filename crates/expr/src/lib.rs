//! Expressions over Kubernetes objects, in two languages with one evaluator.
//!
//! A [`Program`] is an expression that was read once: CEL ([`Program::cel`]), or a tree of operations ([`Program::tree`]).
//! It knows which parts of its input it reads ([`Program::paths`]), so that nothing else has to be kept, and it reads them
//! from whatever has them ([`Input`]): an object, a row of several, facts that were kept earlier.
//!
//! An evaluation runs on [`Fuel`]: neither its time nor its memory can grow beyond what it was given. A field that is not
//! there is neither a value nor an error but [`Stop::Missing`], and the caller decides what that means: a rule that is not
//! true yet, SQL's null, or an error.

mod cel;
mod check;
mod compare;
mod eval;
mod functions;
mod hints;
mod input;
mod json;
mod jsonpath;
mod loops;
mod make;
mod mistake;
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

pub use input::{Facts, Input, Variables};
pub use mistake::{Mistake, Place};
pub use path::{Absent, Path, Step};
pub use program::Program;
pub use quantity::{Quantity, QuantityError};
pub use scope::{Absence, Scope};
pub use stop::{Error, Fuel, Missing, Stop};
pub use types::Type;
pub use value::{Fields, List, Made, Text, Val};
