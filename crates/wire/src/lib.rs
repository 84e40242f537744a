//! What is said to an API server, and what its answers mean: everything about reading and writing a cluster that needs
//! neither a network nor a clock.
//!
//! | module | what it knows |
//! |---|---|
//! | [`follow`] | how a kind is listed and watched, through whatever goes wrong |
//! | [`policy`], [`backoff`] | when to list, when to watch and when to wait |
//! | [`decode`], [`decoder`] | what bytes mean: objects, events |
//! | [`api_error`], [`trouble`] | what the errors of an API server mean |
//! | [`Verb`] | how anything is asked for |
//! | [`attempt`] | how a change is asked for, and how it ended |
//! | [`operator_condition`] | what OLM is told, and how |
//! | [`election`] | who leads |
//!
//! Whoever has a network drives these with it; whoever has none can drive them all the same, and that is how every order of
//! events can be tried.

pub mod api_error;
pub mod attempt;
pub mod backoff;
pub mod decode;
pub mod election;
pub mod event_decoder;
pub mod line;
pub mod list_watch_policy;
pub mod operator_condition;
pub mod read_error;
pub mod reflector;

mod answer;
mod exists;
mod request;
mod verb;

pub use answer::Done;
pub use api_error::{ApiError, ErrorClass};
pub use attempt::Attempt;
pub use reflector::{Action, Discovered, Received, Reflector};
pub use verb::Verb;

/// As whom we write: the name in `metadata.managedFields`.
pub const FIELD_MANAGER: &str = "bellwether";
