//! Merges many conditions into one.
//!
//! Sources report conditions: the members of an application, the components of an operator, one object in
//! many clusters. A [`Policy`] defines for one condition type how they are merged:
//!
//! 1. [`normalise`] turns what a source reports, or fails to report, into a [`Contribution`] with a
//!    [`Class`];
//! 2. a [`Tally`] counts the classes as sources come, change and go, in any order;
//! 3. [`merge()`] reads one [`Statement`] off it: status, reason and a message that names the deciding
//!    sources;
//! 4. [`damp`] can hold back a bad status until the issue has lasted;
//! 5. [`Condition::next`] and [`put_in_place`] turn the statement into the conditions to write.
//!
//! Nothing here reads a clock or does I/O, and the result does not depend on the order in which sources
//! arrive. A change takes logarithmic time in the number of sources, and a message reads only the sources
//! that fit into it.
//!
//! ```
//! use bellwether_conditions::{
//!     Condition, Consensus, Policy, Reported, Source, SourceText, Tally, merge, normalise,
//! };
//! use bellwether_model::ConditionStatus;
//!
//! let policy = Policy::new("Ready");
//! let fine = Reported { type_: "Ready", status: "True", reason: "Valid", ..Reported::default() };
//! let expired = Reported { status: "False", reason: "Expired", message: "certificate is expired", ..fine };
//! let sources = [("cluster-1", &[expired][..]), ("cluster-2", &[fine]), ("cluster-3", &[])];
//!
//! let (mut tally, mut consensus) = (Tally::new(), Consensus::new());
//! let contributions =
//!     sources.map(|(_, conditions)| normalise(&policy, &Source { conditions, ..Source::default() }));
//! for (key, contribution) in contributions.iter().enumerate() {
//!     tally.set(key, contribution.class, contribution.since);
//!     consensus.add(contribution.class, &contribution.reason, &contribution.message);
//! }
//! let statement = merge(&policy, &tally, &consensus, |&key| SourceText {
//!     name: sources[key].0.into(),
//!     reason: contributions[key].reason.clone(),
//!     message: contributions[key].message.clone(),
//! });
//! assert_eq!(statement.status, ConditionStatus::False);
//! assert_eq!(statement.reason, "Expired");
//! assert_eq!(statement.message, "cluster-1 certificate is expired; cluster-3 no Ready condition");
//!
//! let now = "2026-11-14T10:00:00.25Z".parse()?;
//! let condition = Condition::next(None, "Ready", statement, Some(3), now);
//! assert_eq!(condition.last_transition_time.to_string(), "2026-11-14T10:00:00Z");
//! # Ok::<_, jiff::Error>(())
//! ```

#![warn(missing_docs)]

mod condition;
mod consensus;
mod damping;
mod identity;
mod legal;
mod merge;
mod message;
mod place;
mod policy;
mod source;
mod tally;

pub use condition::{Condition, Statement};
pub use consensus::Consensus;
pub use damping::{Damped, damp};
pub use identity::{Identity, Names};
pub use legal::{MAX_MESSAGE, is_legal_type};
pub use merge::{SourceText, merge, merge_as};
pub use message::message;
pub use place::{has_newer_generation, put_in_place};
pub use policy::{Choice, Class, Polarity, Policy, Reasons, WhenFine};
pub use source::{Contribution, OBSERVED_GENERATION_STALE, Reported, Source, normalise};
pub use tally::Tally;
