//! Tests against real API servers.

mod read;
mod spine;
mod write;
