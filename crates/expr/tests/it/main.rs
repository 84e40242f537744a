//! Expressions, as users write them.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a mistake in a table fails the test that uses it, and bombs print what they cost"
)]

mod absence;
mod bombs;
mod equivalence;
mod language;
mod mistakes;
mod mistakes_of_trees;
mod no_allocation;
mod properties;
mod sample;
mod trees;
