//! Tests against real API servers: reflectors, writes, leader election, the controller loop.

mod controller_loop;
mod inventory;
mod read;
mod write;
