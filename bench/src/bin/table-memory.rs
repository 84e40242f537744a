//! Measures the memory that a table keeps for a row.
//!
//! A separate program, because counting allocations takes time. Argument: the number of rows.

use std::{
    env,
    io::{Write as _, stdout},
};

use anyhow::{Context as _, Result};
use bellwether_bench::CombinedTable;
use serde_json::json;

fn main() -> Result<()> {
    let rows = env::args().nth(1).context("missing argument: the number of rows")?.parse()?;
    let mut table = CombinedTable::new(rows)?;
    let filled = allocation_counter::measure(|| table.fill());
    table.render()?;
    writeln!(stdout(), "{}", json!({"rows": rows, "bytes": filled.bytes_current}))?;
    Ok(())
}
