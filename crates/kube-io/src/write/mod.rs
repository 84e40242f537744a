//! Writes to a cluster.
//!
//! | module | content |
//! |---|---|
//! | [`call()`] | sends one request and reads its response |
//! | [`perform()`] | makes one attempt at a write |
//! | [`event_recorder`] | writes Kubernetes Events |
//! | [`olm`] | copies `Upgradeable` of a Rollup to OLM's OperatorCondition |

pub mod call;
mod event_limit;
pub mod event_recorder;
pub mod olm;
pub mod perform;

pub use bellwether_wire::{FIELD_MANAGER, WriteResult};
pub use call::{CallError, REQUEST_TIMEOUT, call};
pub use event_recorder::Recorder;
pub use perform::perform;
