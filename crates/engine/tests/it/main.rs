//! The engine as a cluster meets it: what happens to objects, and what becomes of them.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a mistake in a story or in the world fails the test that uses it"
)]

mod actions;
mod dependencies;
mod health_check;
mod kinds;
mod known;
mod membership;
mod noise;
mod objects;
mod oracle;
mod orders;
mod ownership;
mod readiness;
mod rules;
mod scratch;
mod server;
mod views;
mod world;
