//! Beside the controller of `app.k8s.io` that its users have: what both say of the same objects, and how soon.
//!
//! `situations.rs` has the objects, and which differences there should be and why; `stage.rs` puts them into a cluster;
//! `compare.rs` lets each controller speak of them; `race.rs` measures.

mod compare;
mod race;
mod situations;
mod stage;

pub use compare::compare;
pub use race::race;
pub use stage::Subjects;
