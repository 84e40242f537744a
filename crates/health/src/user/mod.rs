//! User rules: CEL clauses, Flux health expressions, Argo CD health scripts.
//!
//! [`UserRule::compile`] turns a [`UserRule`] into a [`CompiledRule`] or returns its [`Flaw`]s. [`UserRules`]
//! finds the rule for an object and the fields that the rules for a kind read.

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
