//! The objects of a cluster in memory, with the rules of an API server: identities, versions, generations, preconditions,
//! merge patches, the status subresource, and a log of all changes from which watches are served.
//!
//! The demo, the simulation and the tests of the engine each build a cluster on it. What only one of them needs, such as API
//! servers that lag or nodes that run Pods, is theirs. Nothing here knows a clock, a network or chance, and nothing is
//! shared between two clusters: they may serve other kinds, and have objects of the same names.

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
