//! Tests of the crate through its interface.

mod examples;
mod sample;
