//! The simulation itself.

mod histories;
mod hunt;
