//! Connects the engine to clusters: sends it the events of reflectors, and its writes to the API server.

pub mod bound_objects;
pub mod client;
mod client_switch;
mod clock;
mod cluster_client;
mod connected_cluster;
pub mod controller_client;
pub mod controller_loop;
mod identity;
pub mod inventory;
mod labelled_kinds;
pub mod leader_election;
pub mod metrics;
pub mod read;
mod remote_cluster;
pub mod reviews;
mod rights;
pub mod status_queries;
pub mod write;
