//! An in-memory cluster with the semantics of an API server: UIDs, resourceVersions, generations,
//! preconditions, merge patches, the status subresource, and a log of all changes to serve watches from.
//!
//! The demo, the simulation and the engine tests build on it. What only one of them needs, such as a lagging
//! API server or nodes that run Pods, is in that crate. There is no clock, network or randomness here. Two
//! clusters share nothing: they may serve different kinds, and have objects with the same names.

mod cluster;
mod garbage;
mod log;
mod merge;
mod object;
mod verbs;
mod write;

pub use cluster::{LogEntry, MemoryCluster, served};
pub use garbage::Garbage;
pub use merge::merge;
pub use object::{Object, Stored, identity};
pub use verbs::{Rejection, Subresource};
