//! The simulation itself.

mod histories;
mod search;
