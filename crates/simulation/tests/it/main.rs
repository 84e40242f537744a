//! The simulation itself.

mod hunt;
