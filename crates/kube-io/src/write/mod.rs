//! Writes to a cluster, and leader election.
//!
//! | module | content |
//! |---|---|
//! | [`call()`] | sends one request and reads its response |
//! | [`client`] | creates a client from a kubeconfig or a service account |
//! | [`perform()`] | makes one attempt at a write |
//! | [`lease`] | leader election by a Lease |
//! | [`olm`] | copies `Upgradeable` of a Rollup to OLM's OperatorCondition |
//! | [`record`] | writes Kubernetes Events |

pub mod call;
pub mod client;
pub mod lease;
pub mod olm;
pub mod perform;
pub mod record;

pub use bellwether_wire::{Done, FIELD_MANAGER};
pub use call::{CallError, PATIENCE, call};
pub use client::{Connection, Login, LoginError};
pub use lease::{Campaign, Leadership, LeaseSettings, campaign};
pub use perform::perform;
pub use record::Recorder;
