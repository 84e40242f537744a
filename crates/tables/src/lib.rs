//! StatusCollectors: a query like an SQL SELECT over one row for each cluster, kept up to date row by row.
//!
//! A [`Collector`] is a compiled spec, a [`Table`] its result over the rows that it was given. What a row
//! contributed is retracted before the row contributes again, so a change costs the evaluation of the
//! expressions and a search among the groups, however many rows there are. The result is always the one that an
//! evaluation of all rows from scratch would give, bit for bit.
//!
//! # Rows
//!
//! - A missing field is null. The filter lets a row through if it is true; null is false.
//! - A row for which an expression fails is left out of the result as a whole, and named with each column
//!   concerned. So is a row whose filter is not a bool, or has a value that a result cannot hold: infinity,
//!   `NaN`, a type, a map with keys that are not strings, more than 256 KiB. No function then counts half of
//!   a row. The expressions of a row share one cost limit.
//!
//! # Numbers
//!
//! - Equal numbers are one value: `1` and `1.0` are in one group.
//! - A multiple of a billionth below 10^21, which every integer and nearly every quantity is, is exact, and so
//!   are sums of them. Their mean is exact if it is a multiple of a billionth, too.
//! - Any other sum or mean is the double nearest to the exact result.
//!
//! # Aggregate functions
//!
//! - All skip nulls, except COUNT without a subject. Without values, COUNT is 0 and the others are null.
//! - A string that is a number or a quantity is a number for SUM, AVG, MIN and MAX. MIN and MAX return it as a
//!   number: `1Gi` is 1073741824. A plain number with more than nine decimals is a double.
//! - SUM and AVG leave other values out and report one of them for each column, that of the first cluster.
//! - MIN and MAX order a string in the format of RFC 3339 as a point in time, between numbers and other strings.
//!
//! # Order
//!
//! - Values are in the order null, bool, number, string, list, map; descending is the reverse. Numbers compare
//!   by value, strings byte by byte, lists entry by entry, maps by their sorted fields.
//! - Rows are in the order of `orderBy`, then of the values of `groupBy`, then of the clusters.

mod cell;
mod collector;
mod compile;
mod contribution;
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
pub use row::{Propagation, Row, last_status_update, returned};
pub use table::Table;
