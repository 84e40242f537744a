//! The engine against a cluster in memory.
//!
//! Headings such as *Selecting Components* are those of the Kubernetes enhancement proposal for an
//! Application API; the tests that name them check conformance.

#![expect(clippy::expect_used, clippy::panic, reason = "a mistake in a helper fails the test that uses it")]

mod actions;
mod against_oracle;
mod app_k8s_io;
mod application_conditions;
mod arbitrary_events;
mod below;
mod bound_rows;
mod combined_status;
mod deletion;
mod dependencies;
mod event_orders;
mod fleet;
mod fleet_changes;
mod fleet_faults;
mod group_state;
mod health_check;
mod health_rules;
mod measured_elsewhere;
mod member_times;
mod membership;
mod ownership;
mod policy_views;
mod query_groups;
mod query_summary;
mod received_objects;

mod rollup;
mod rollup_damping;
mod server;
mod singletons;
mod state_events;
mod stored_below;
mod stored_statuses;
mod unreadable_kinds;
mod views;
mod world;
mod writes;
mod writes_in_flight;

use bellwether_simulation::{needed, objects, oracle};
