//! Measures the time to compile an expression and to evaluate it for all rows.

use anyhow::Result;
use bellwether_bench::{Expression, median, report_expressions};
use serde_json::json;

fn main() -> Result<()> {
    report_expressions(|text, rows| {
        let expression = Expression::read(text, rows)?;
        Ok(json!({
            "values": expression.values()?,
            "compile_ns": median(|| expression.compile()),
            "ns": median(|| expression.over_facts()),
            "object_ns": median(|| expression.over_objects()),
        }))
    })
}
