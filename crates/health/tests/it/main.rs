//! Native rules: tables of objects with expected verdicts, properties, user rules.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "an error in a table or a helper fails the test that uses it"
)]

mod absurd;
mod cases;
mod objects;
mod properties;
mod user;
