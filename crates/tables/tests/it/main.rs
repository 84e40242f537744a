//! StatusCollectors, as users write them, over rows of many clusters.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a mistake in a table of cases fails the test that uses it"
)]

mod any_json;
mod compile_errors;
mod examples;
mod incremental;
mod naive;
mod random;
mod sample;
mod semantics;
mod sqlite;
