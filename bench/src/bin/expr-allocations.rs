//! What is allocated to evaluate an expression on all rows.
//!
//! Not the program that measures times: counting takes some.

use anyhow::Result;
use bellwether_bench::{Expression, report_expressions};
use serde_json::json;

fn main() -> Result<()> {
    report_expressions(|text, rows| {
        let expression = Expression::read(text, rows)?;
        // The first evaluation sets up tables which all later ones use.
        expression.over_facts();
        let counted = allocation_counter::measure(|| expression.over_facts());
        Ok(json!({ "values": expression.values()?, "allocs": counted.count_total }))
    })
}
