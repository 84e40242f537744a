//! Tests against real API servers.

mod read;
mod write;
