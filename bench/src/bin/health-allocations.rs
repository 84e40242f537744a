//! Counts the allocations from the bytes of an object to its verdict.
//!
//! A separate program, because counting takes time.

use std::hint::black_box;

use anyhow::Result;
use bellwether_bench::report;
use serde_json::json;

fn main() -> Result<()> {
    report(|subject| {
        // The first verdict initialises static tables.
        subject.decode_and_assess()?;
        let counted = allocation_counter::measure(|| {
            black_box(subject.decode_and_assess().is_ok());
        });
        Ok(json!({ "allocs": counted.count_total, "bytes": counted.bytes_total }))
    })
}
