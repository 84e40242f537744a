//! Measures the time of a row's change in a table with six aggregate functions.
//!
//! Argument: the number of rows.

use std::{
    env,
    io::{Write as _, stdout},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_bench::{CombinedTable, cpu_time, median};
use serde_json::json;

/// Long enough for the clock, and more than the rows of the largest table.
const CHANGES: u32 = 1_000_000;

fn main() -> Result<()> {
    let rows = env::args().nth(1).context("missing argument: the number of rows")?.parse()?;
    let mut table = CombinedTable::new(rows)?;
    table.fill();
    let start = cpu_time()?;
    let changed: u32 = (0..CHANGES).map(|_| u32::from(table.change())).sum();
    let time = cpu_time()?.saturating_sub(start);
    ensure!(changed > CHANGES / 2, "only {changed} changes");
    table.render()?;
    let line = json!({
        "rows": rows,
        "change_ns": time.as_secs_f64() * 1e9 / f64::from(CHANGES),
        "render_ns": median(|| table.render()),
    });
    writeln!(stdout(), "{line}")?;
    Ok(())
}
