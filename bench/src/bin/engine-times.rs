//! Measures the time of a change in the engine, and the time to load all objects.
//!
//! Arguments: the number of objects, and the number of objects in one Application.

use std::io::{Write as _, stdout};

use anyhow::{Result, ensure};
use bellwether_bench::{Driver, Pair, Population, cpu_time, nanos, time_of_a_change};
use serde_json::json;

/// The maximum number of events in one step of a controller.
const BATCH: usize = 1024;

/// The number of single changes between two reads of the clock.
const ONE_BY_ONE: usize = 200;

fn main() -> Result<()> {
    let population = &Population::from_arguments()?;
    let mut driver = Driver::new(population)?;

    let json = |ready| {
        let objects = (0..population.objects()).map(move |object| population.object(object, 1, ready));
        objects.map(|object| Ok(object?.to_string().into_bytes())).collect::<Result<Vec<_>>>()
    };
    let (ready, waiting) = (json(true)?, json(false)?);
    let begun = cpu_time()?;
    let ready: Vec<_> = ready.iter().map(|json| driver.decode(json)).collect::<Result<_>>()?;
    let reading = cpu_time()?.saturating_sub(begun);
    let waiting: Vec<_> = waiting.iter().map(|json| driver.decode(json)).collect::<Result<_>>()?;
    let states = waiting.into_iter().zip(ready);
    let mut pairs: Vec<_> = states.map(|(waiting, ready)| Pair::new(waiting, ready)).collect();

    let events: Vec<_> = pairs.iter().map(|pair| pair.event(&mut driver)).collect();
    let begun = cpu_time()?;
    driver.list(events);
    let loading = cpu_time()?.saturating_sub(begun);
    let written = driver.render_statuses();
    driver.written(written);
    let (ready, all) = (driver.ready(), population.applications());
    ensure!(ready == all, "{ready} of {all} Applications are ready after the list");

    let (one_ns, words_ns) = time_of_a_change(&mut driver, &mut pairs, ONE_BY_ONE, 1)?;
    let (batch_ns, _) = time_of_a_change(&mut driver, &mut pairs, BATCH, BATCH)?;
    let line = json!({
        "objects": population.objects(),
        "applications": all,
        "read_ns": nanos(reading) / population.objects() as u64,
        "load_ns": nanos(loading),
        "one_ns": one_ns,
        "batch_ns": batch_ns,
        "words_ns": words_ns,
    });
    writeln!(stdout(), "{line}")?;
    Ok(())
}
