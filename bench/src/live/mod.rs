//! A controller on a real control plane, observed from outside.

mod process;
mod server;
mod sightings;

pub use process::Process;
pub use server::{Calls, Server};
pub use sightings::Sightings;
