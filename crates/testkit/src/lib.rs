//! Real Kubernetes control planes for tests, and ways to break them.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use bellwether_testkit::{Cluster, Part};
//!
//! let cluster = Cluster::builder().nodes(2).start().await?;
//! let client = cluster.admin().client().await?;
//! // … use the client, then kill the API server and start it again with the same data:
//! cluster.kill_part(Part::ApiServer)?;
//! cluster.start_part(Part::ApiServer).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Tests that break nothing share a control plane ([`shared`]), each in its own namespace. When the test
//! process ends, for any reason, its control planes, ports and files are removed.

mod access;
mod app_k8s_io;
mod arguments;
mod binaries;
mod cluster;
mod controller;
mod crds;
mod go_build;
mod guardian;
mod kubectl;
mod nodes;
mod pki;
mod ports;
mod program;
mod proxy;
mod rights;
pub mod shared;
mod wait;
mod work;

pub use access::{Access, Login};
pub use app_k8s_io::app_k8s_io;
pub use binaries::{ASSETS_VARIABLE, Binary, CACHE_VARIABLE};
pub use cluster::{Cluster, ClusterBuilder, Part};
pub use controller::Controller;
pub use http::StatusCode;
pub use kubectl::{Kubectl, Output};
pub use pki::{Authority, Credentials, Identity};
pub use program::Program;
pub use proxy::{Call, Fault, FaultProxy, Injected, Recorded, Requests, Resource, Verb, tls_acceptor};
pub use rights::{Grant, rule};
pub use wait::{TIMEOUT, eventually};
pub use work::{memory_of, peak_memory_of, work_of, work_of_all, work_of_threads};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data stays valid when a test panics while it holds the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
