//! A controller at work on a real control plane, watched from outside.

mod process;
mod server;
mod sightings;

pub use process::Process;
pub use server::{Calls, Server};
pub use sightings::Sightings;
