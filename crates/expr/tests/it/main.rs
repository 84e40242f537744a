//! Expressions, as users write them.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a mistake in a table fails the test that uses it, and bombs print what they cost"
)]

mod absence;
mod bombs;
mod compile_errors;
mod equivalence;
mod language;
mod no_allocation;
mod properties;
mod sample;
mod tree_compile_errors;
mod trees;
