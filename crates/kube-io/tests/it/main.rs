//! Tests against real API servers.

mod controller_loop;
mod read;
mod write;
