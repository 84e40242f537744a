//! Counts the allocations of evaluating an expression for all rows.
//!
//! A separate program, because counting takes time.

use anyhow::Result;
use bellwether_bench::{Expression, report_expressions};
use serde_json::json;

fn main() -> Result<()> {
    report_expressions(|text, rows| {
        let expression = Expression::read(text, rows)?;
        // The first evaluation initialises static tables.
        expression.over_facts();
        let counted = allocation_counter::measure(|| expression.over_facts());
        Ok(json!({ "values": expression.values()?, "allocs": counted.count_total }))
    })
}
