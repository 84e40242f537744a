//! Reading from and writing to an API server, as state machines without network or clock.
//!
//! | module | content |
//! |---|---|
//! | [`reflector`] | lists and watches one kind |
//! | [`list_watch_policy`], [`backoff`] | decide when to list, to watch and to wait |
//! | [`page_reader`], [`envelope`], [`object_decoder`] | decode list pages and watch events |
//! | [`wiped_buffer`] | leaves no bytes of a Secret in memory |
//! | [`restore_detector`] | notices that a cluster was restored from a backup |
//! | [`api_error`], [`read_error`] | classify error responses |
//! | [`Verb`] | builds HTTP requests |
//! | [`attempt`] | one write: its requests and its outcome |
//! | [`operator_condition`] | the condition `Upgradeable` of OLM's OperatorCondition |
//! | [`election`] | leader election |
//!
//! `bellwether-kube-io` drives them with a client and a clock; the simulation drives them with events of its
//! own, in any order.

pub mod api_error;
pub mod attempt;
pub mod backoff;
pub mod election;
pub mod envelope;
pub mod error_text;
pub mod list_watch_policy;
pub mod object_decoder;
pub mod operator_condition;
pub mod page_reader;
pub mod read_error;
pub mod reflector;
pub mod restore_detector;
pub mod wiped_buffer;

mod owner_check;
mod verb;
mod write_outcome;
mod write_request;

pub use api_error::{ApiError, ErrorClass};
pub use attempt::Attempt;
pub use reflector::{Action, Discovered, Received, Reflector};
pub use verb::Verb;
pub use write_outcome::WriteResult;

pub const FIELD_MANAGER: &str = "bellwether";
