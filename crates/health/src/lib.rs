//! The health of any Kubernetes object, with its reason.
//!
//! [`assess()`] returns the [`Verdict`] on one object: state, reason, message, progress and the rule that
//! decided. It does no I/O and reads no clock: the time comes with the [`Context`].
//!
//! Order of evaluation, first match: a deletion timestamp; a user rule for the kind ([`user`]); a built-in
//! rule for the kind ([`builtin`]); the generic rules ([`generic`]). An object that no rule can evaluate is
//! `Unknown`, never `Ready`.

#![warn(missing_docs)]

mod assess;
mod builtin;
pub mod dialect;
mod evidence;
pub mod generation;
mod generic;
mod read;
pub mod reasons;
mod rules;
pub mod user;
mod verdict;

pub use assess::{Context, Explained, assess, explain, plan};
pub use evidence::Evidence;
pub use generic::known_words as generic_words;
pub use rules::{RuleText, SERVICE_ENDPOINTS, page as rules_page, rules};
pub use verdict::{Later, Rule, Source, Verdict};
