//! Rules that users write for their kinds: CEL clauses, Flux's expressions, Argo CD's scripts.
//!
//! A [`UserRule`] is a rule as it was written; [`UserRule::compile`] makes a [`CompiledRule`] of it or says what is wrong
//! and where. [`UserRules`] are those in force: they find the rule for an object, and say what must be kept of a kind for
//! its rules to be judged by.

mod book;
mod clauses;
mod flux;
mod input;
mod rule;
mod script;
mod written;

pub use book::{Overridden, UserRules};
pub use rule::CompiledRule;
pub use written::{Clause, Flaw, Form, JudgedKind, UserRule};
