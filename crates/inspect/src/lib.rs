//! Reads Applications and Rollups from a cluster, or from files instead of one, and prints their health.
//!
//! [`observe`] evaluates groups with an engine, once or as objects change. [`owner_tree`] adds the objects
//! that the members own. [`status`], [`tree`], [`wait`] and [`whose`] render the output of the commands of
//! these names. [`fleet`] reads one kind in many clusters, for StatusCollectors. The binary parses arguments, prints the text and sets the exit code.

pub mod fleet;
pub mod observe;
pub mod owner_tree;
pub mod shell;
pub mod status;
pub mod tree;
pub mod wait;
pub mod whose;
