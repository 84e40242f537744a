//! What talks to clusters: it reads them into news for the engine, and writes what the engine wants.

mod connected;
pub mod controller_loop;
pub mod metrics;
pub mod read;
pub mod status_queries;
pub mod write;

mod clock;
