//! The native rules: tables of objects and what is said of them, and what holds for every object.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a mistake in a table or in a helper fails the test that uses it"
)]

mod absurd;
mod cases;
mod objects;
mod properties;
mod user;
