//! Tests of the testkit: control planes work, faults break what they should, and nothing is left behind.

mod cluster;
mod leftovers;
mod program;
mod proxy;
