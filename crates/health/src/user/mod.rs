//! User rules: CEL clauses, Flux health expressions, Argo CD health scripts.
//!
//! [`UserRule::compile`] turns a [`UserRule`] into a [`CompiledRule`] or returns its [`Flaw`]s. [`UserRules`]
//! finds the rule for an object and the fields that the rules for a kind read.

mod clauses;
mod flux;
mod input;
mod rule;
mod rule_set;
mod script;
mod source;

pub use rule::CompiledRule;
pub use rule_set::{Overridden, UserRules};
pub use source::{Clause, Flaw, Form, RuleTarget, UserRule};
