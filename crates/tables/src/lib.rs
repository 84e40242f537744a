//! StatusCollectors: a query like an SQL SELECT over one row for each cluster, kept up to date row by row.

mod row;

pub use row::Row;
