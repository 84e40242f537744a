//! A controller on a real control plane, observed from outside.

mod combined_statuses;
mod observations;
mod process;
mod server;
mod simulated_clusters;

pub use combined_statuses::CombinedStatuses;
pub use observations::Observations;
pub use process::Process;
pub use server::{Calls, Reads, Server};
pub use simulated_clusters::SimulatedClusters;
