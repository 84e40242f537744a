//! Measures the cost of a change in the engine.

use std::time::Duration;

use anyhow::Result;
use bellwether_engine::Event;

use crate::{
    driver::{DecodedObject, Driver},
    rounds::cpu_time,
};

/// The CPU time of each measurement.
const LONG: Duration = Duration::from_millis(1500);

/// An object in two states, at first ready.
#[derive(Debug)]
pub struct Pair {
    states: [DecodedObject; 2],
    ready: bool,
}

impl Pair {
    pub fn new(unready: DecodedObject, ready: DecodedObject) -> Self {
        Self { states: [unready, ready], ready: true }
    }

    /// Changes the state, and returns the watch event.
    pub fn toggle(&mut self, driver: &mut Driver) -> Event {
        self.ready = !self.ready;
        self.event(driver)
    }

    /// The watch event for the current state.
    pub fn event(&self, driver: &mut Driver) -> Event {
        driver.event(&self.states[usize::from(self.ready)])
    }
}

/// The time of one change, in nanoseconds, in batches of `together` changes; and the time to render one
/// status, which happens after each round.
pub fn time_of_a_change(
    driver: &mut Driver,
    pairs: &mut [Pair],
    round: usize,
    together: usize,
) -> Result<(u64, u64)> {
    let (mut time, mut changes, mut next) = (Duration::ZERO, 0, 0);
    let (mut rendering, mut statuses) = (Duration::ZERO, 0);
    while time + rendering < LONG {
        let mut events: Vec<_> = (0..round)
            .map(|_| {
                // A prime, so that consecutive changes are far apart in the list.
                next = (next + 7919) % pairs.len();
                pairs[next].toggle(driver)
            })
            .collect();
        let begun = cpu_time()?;
        while !events.is_empty() {
            driver.step(events.drain(..together.min(events.len())));
        }
        let stepped = cpu_time()?;
        let written = driver.render_statuses();
        rendering += cpu_time()?.saturating_sub(stepped);
        time += stepped.saturating_sub(begun);
        changes += round as u64;
        statuses += written.len() as u64;
        driver.written(written);
    }
    Ok((nanos(time) / changes, nanos(rendering) / statuses.max(1)))
}

pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
