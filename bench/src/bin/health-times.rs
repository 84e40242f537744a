//! How long it takes from the bytes of an object to the verdict on it.

use anyhow::Result;
use bellwether_bench::{median, report};
use serde_json::json;

fn main() -> Result<()> {
    report(|subject| {
        let object = subject.decode()?;
        Ok(json!({
            "status": format!("{:?}", subject.judge(&object).state),
            "ns": median(|| subject.decode_and_judge()),
            "decode_ns": median(|| subject.decode()),
            "rule_ns": median(|| subject.judge(&object)),
        }))
    })
}
