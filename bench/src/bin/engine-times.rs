//! How many changes the engine takes in a second, and how long it takes to know all objects.
//!
//! The command line has how many objects there are, and how many of them belong to one Application.

use std::io::{Write as _, stdout};

use anyhow::{Result, ensure};
use bellwether_bench::{Driver, Pair, Population, nanos, time_of_a_change, worked};
use serde_json::json;

/// What a controller takes in at a time when much happens.
const BATCH: usize = 1024;

/// What is told one by one, between two looks at the clock.
const ONE_BY_ONE: usize = 200;

fn main() -> Result<()> {
    let population = &Population::from_arguments()?;
    let mut driver = Driver::new(population)?;

    let json = |ready| {
        let objects = (0..population.objects()).map(move |object| population.object(object, 1, ready));
        objects.map(|object| Ok(object?.to_string().into_bytes())).collect::<Result<Vec<_>>>()
    };
    let (ready, waiting) = (json(true)?, json(false)?);
    let begun = worked()?;
    let ready: Vec<_> = ready.iter().map(|json| driver.read(json)).collect::<Result<_>>()?;
    let reading = worked()?.saturating_sub(begun);
    let waiting: Vec<_> = waiting.iter().map(|json| driver.read(json)).collect::<Result<_>>()?;
    let states = waiting.into_iter().zip(ready);
    let mut pairs: Vec<_> = states.map(|(waiting, ready)| Pair::new(waiting, ready)).collect();

    let events: Vec<_> = pairs.iter().map(|pair| pair.event(&mut driver)).collect();
    let begun = worked()?;
    driver.list(events);
    let loading = worked()?.saturating_sub(begun);
    let written = driver.put_into_words();
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
