//! Measures the time from the bytes of an object to its verdict.

use anyhow::Result;
use bellwether_bench::{median, report};
use serde_json::json;

fn main() -> Result<()> {
    report(|subject| {
        let object = subject.decode()?;
        Ok(json!({
            "status": format!("{:?}", subject.assess(&object).state),
            "ns": median(|| subject.decode_and_assess()),
            "decode_ns": median(|| subject.decode()),
            "rule_ns": median(|| subject.assess(&object)),
        }))
    })
}
