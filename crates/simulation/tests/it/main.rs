//! Tests of the simulation itself.

mod histories;
mod search;
