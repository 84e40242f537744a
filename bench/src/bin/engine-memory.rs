//! Measures the memory that the engine keeps for an object.
//!
//! A separate program, because counting allocations takes time. Arguments: the number of objects, and the
//! number of objects in one Application.

use std::io::{Write as _, stdout};

use anyhow::{Result, ensure};
use bellwether_bench::{Driver, Population};
use serde_json::json;

fn main() -> Result<()> {
    let population = Population::from_arguments()?;
    let (objects, applications) = (population.objects(), population.applications());

    let mut driver = Driver::new(&population)?;
    let mut loaded = Ok(());
    let kept = allocation_counter::measure(|| loaded = load(&mut driver, &population));
    loaded?;
    let ready = driver.ready();
    ensure!(ready == applications, "{ready} of {applications} Applications are ready");
    let line = json!({
        "objects": objects,
        "applications": applications,
        "bytes": kept.bytes_current,
    });
    writeln!(stdout(), "{line}")?;
    Ok(())
}

/// Feeds all objects to the engine and confirms the resulting statuses.
fn load(driver: &mut Driver, population: &Population) -> Result<()> {
    let mut events = Vec::new();
    for object in 0..population.objects() {
        let decoded = driver.decode(population.object(object, 1, true)?.to_string().as_bytes())?;
        events.push(driver.event(&decoded));
    }
    driver.list(events);
    let written = driver.render_statuses();
    driver.written(written);
    Ok(())
}
