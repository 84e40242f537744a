//! Connects the engine to clusters: reflectors send events to it, and its effects are written to the API
//! server.

mod connected;
pub mod controller_loop;
pub mod metrics;
pub mod read;
pub mod status_queries;
pub mod write;

mod clock;
