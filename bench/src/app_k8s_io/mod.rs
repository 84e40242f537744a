//! Comparison with the controller of `app.k8s.io`: statuses and latency on the same objects.
//!
//! `situations.rs` has the objects and the expected differences; `stage.rs` creates them in a cluster;
//! `compare.rs` compares the statuses; `race.rs` measures the latency.

mod compare;
mod race;
mod situations;
mod stage;

pub use compare::compare;
pub use race::race;
pub use stage::Subjects;
