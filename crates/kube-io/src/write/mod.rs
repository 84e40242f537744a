//! Writing to a cluster, and being the one who may.
//!
//! | module | what it does |
//! |---|---|
//! | [`call()`] | makes one request, and reads its answer |
//! | [`client`] | finds out which API server is meant and as whom, and makes a client |
//! | [`perform()`] | makes one change, and says how it ended |
//! | [`lease`] | sees to it that one process leads, and others stand by |
//! | [`olm`] | tells OLM whether an operator may be upgraded |
//! | [`record`] | tells people what has turned, as Events |

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
