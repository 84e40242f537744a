//! StatusCollectors: a query like an SQL SELECT over one row for each cluster, kept up to date row by row.

mod cell;
mod collector;
mod compile;
mod errors;
mod evaluate;
mod groups;
mod number;
mod order;
mod render;
mod row;
mod selection;
mod table;
mod tally;
mod wide;

pub use collector::{Collector, CollectorError, Variable};
pub use row::Row;
pub use table::Table;
