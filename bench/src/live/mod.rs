//! A controller at work on a real control plane, watched from outside.

mod process;
mod server;
mod sightings;
mod work;

pub use process::Process;
pub use server::{Calls, Server};
pub use sightings::Sightings;
pub use work::{memory_of, work_of, work_of_all};
