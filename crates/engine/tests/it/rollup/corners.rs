//! Kinds that cannot be read or come back, generations that are left out, and who comes after: where two rules meet.

use serde_json::json;

use super::{HEALTHY, conditions, rollup, virt, virt_named, world};

/// Zero is how programs in Go leave a generation out: then that of the status counts.
#[test]
fn a_generation_of_zero_is_none() {
    let mut conditions = conditions(HEALTHY);
    for condition in &mut conditions {
        condition["observedGeneration"] = 0.into();
    }
    let mut behind = virt("a", &conditions);
    behind["status"]["observedGeneration"] = 1.into();
    let mut world = world([rollup(&json!([virt_named("a")]), &json!({})), behind.clone()]);
    assert_eq!(world.triple(), HEALTHY);
    behind["spec"]["size"] = 2.into();
    world.put(behind);
    assert_eq!(world.triple(), ["Unknown"; 3]);
}
