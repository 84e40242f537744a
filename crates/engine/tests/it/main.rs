//! The engine against a cluster in memory.
//!
//! Headings such as *Selecting Components* are those of the Kubernetes enhancement proposal for an
//! Application API; the tests that name them check conformance.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a mistake in a story or in the world fails the test that uses it"
)]

mod actions;
mod against_oracle;
mod app_k8s_io;
mod arbitrary_events;
mod dependencies;
mod event_orders;
mod groups;
mod health_check;
mod kinds;
mod known;
mod membership;
mod ownership;
mod readiness;
mod rollup;
mod rollup_damping;
mod rules;
mod server;
mod summary;
mod views;
mod world;
mod writes;
mod writes_in_flight;

use bellwether_simulation::{needed, objects, oracle};
