//! User rules: CEL clauses, Flux health expressions, Argo CD health scripts.
//!
//! [`UserRule::compile`] turns a [`UserRule`] into a [`CompiledRule`] or returns its [`RuleFieldError`]s.
//! [`UserRules`] finds the rule for an object and the fields that the rules for a kind read.

mod clauses;
mod flux;
mod input;
mod rule;
mod rule_set;
mod script;
mod source;

pub use rule::CompiledRule;
pub use rule_set::{Overridden, UserRules};
pub use source::{Clause, Form, RuleFieldError, RuleTarget, UserRule};
