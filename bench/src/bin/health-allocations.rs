//! What is allocated from the bytes of an object to the verdict on it.
//!
//! Not the program that measures times: counting takes some.

use std::hint::black_box;

use anyhow::Result;
use bellwether_bench::report;
use serde_json::json;

fn main() -> Result<()> {
    report(|subject| {
        // The first verdict sets up tables which all later ones use.
        subject.decode_and_judge()?;
        let counted = allocation_counter::measure(|| {
            black_box(subject.decode_and_judge().is_ok());
        });
        Ok(json!({ "allocs": counted.count_total, "bytes": counted.bytes_total }))
    })
}
