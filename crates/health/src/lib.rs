//! The health of any Kubernetes object, with its reason.
//!
//! [`assess()`] says of one object whether it is ready, on its way, failed or something else, why, how far along, and by
//! which rule. It does no I/O and has no clock: the time comes with the [`Context`].
//!
//! The first that applies decides: the object is being deleted; a rule that a user wrote for its kind ([`user`]); a built-in rule for its kind ([`builtin`]); the generic
//! rules, for any kind ([`generic`]). What nobody can judge is `Unknown`, never green.

mod assess;
mod builtin;
pub mod dialect;
mod evidence;
mod generation;
mod generic;
mod read;
mod rules;
pub mod user;
mod verdict;

pub use assess::{Context, Explained, assess, explain, plan};
pub use evidence::Evidence;
pub use rules::{RuleText, page as rules_page, rules};
pub use verdict::{Later, Rule, Source, Verdict};
