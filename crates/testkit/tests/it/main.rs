//! The testkit against itself: what it starts is real, what it breaks breaks, and nothing is left behind.

mod cluster;
mod leftovers;
mod program;
mod proxy;
