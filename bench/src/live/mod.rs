//! A controller on a real control plane, observed from outside.

mod observations;
mod process;
mod server;

pub use observations::Observations;
pub use process::Process;
pub use server::{Calls, Reads, Server};
