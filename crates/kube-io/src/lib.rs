//! Connects the engine to clusters: sends it the events of reflectors, and its writes to the API server.

pub mod client;
mod clock;
mod connected_cluster;
pub mod controller_loop;
pub mod leader_election;
pub mod metrics;
pub mod read;
pub mod status_queries;
pub mod write;
