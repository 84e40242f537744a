//! How many changes the engine takes in a second, and how long it takes to know all objects.
//!
//! The command line has how many objects there are, and how many of them belong to one Application.

use std::{
    io::{Write as _, stdout},
    time::Duration,
};

use anyhow::{Result, ensure};
use bellwether_bench::{Driver, Population, Told, worked};
use serde_json::json;

/// So long the engine works in each measurement.
const LONG: Duration = Duration::from_millis(1500);

/// What a controller takes in at a time when much happens.
const BATCH: usize = 1024;

/// What is told one by one, between two looks at the clock.
const ONE_BY_ONE: usize = 200;

/// An object in both of its states.
struct Pair {
    states: [Told; 2],
    ready: bool,
}

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
    let mut pairs: Vec<_> =
        states.map(|(waiting, ready)| Pair { states: [waiting, ready], ready: true }).collect();

    let events: Vec<_> = pairs.iter().map(|pair| driver.event(&pair.states[1])).collect();
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

/// The time that the engine takes for a change, in nanoseconds, if it is told of so many together; and the time that it
/// takes to put a status into words, which happens after each round.
fn time_of_a_change(
    driver: &mut Driver,
    pairs: &mut [Pair],
    round: usize,
    together: usize,
) -> Result<(u64, u64)> {
    let (mut time, mut changes, mut next) = (Duration::ZERO, 0, 0);
    let (mut words, mut statuses) = (Duration::ZERO, 0);
    while time + words < LONG {
        let mut events: Vec<_> = (0..round)
            .map(|_| {
                // A prime: neighbours in time are none in the list.
                next = (next + 7919) % pairs.len();
                let pair = &mut pairs[next];
                pair.ready = !pair.ready;
                driver.event(&pair.states[usize::from(pair.ready)])
            })
            .collect();
        let begun = worked()?;
        while !events.is_empty() {
            driver.step(events.drain(..together.min(events.len())));
        }
        let told = worked()?;
        let written = driver.put_into_words();
        words += worked()?.saturating_sub(told);
        time += told.saturating_sub(begun);
        changes += round as u64;
        statuses += written.len() as u64;
        driver.written(written);
    }
    Ok((nanos(time) / changes, nanos(words) / statuses.max(1)))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
