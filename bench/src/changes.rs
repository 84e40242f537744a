//! How long the engine takes for a change.

use std::time::Duration;

use anyhow::Result;
use bellwether_engine::Event;

use crate::{
    driver::{Driver, Told},
    rounds::worked,
};

/// So long the engine works in each measurement.
const LONG: Duration = Duration::from_millis(1500);

/// An object in both of its states, well to begin with.
#[derive(Debug)]
pub struct Pair {
    states: [Told; 2],
    ready: bool,
}

impl Pair {
    /// How it is while it is not well, and while it is.
    pub fn new(unwell: Told, well: Told) -> Self {
        Self { states: [unwell, well], ready: true }
    }

    /// It turns. What a watch says of it then.
    pub fn turn(&mut self, driver: &mut Driver) -> Event {
        self.ready = !self.ready;
        self.event(driver)
    }

    /// What a watch says of it as it is.
    pub fn event(&self, driver: &mut Driver) -> Event {
        driver.event(&self.states[usize::from(self.ready)])
    }
}

/// The time that the engine takes for a change, in nanoseconds, if it is told of so many together; and the time that it
/// takes to put a status into words, which happens after each round.
pub fn time_of_a_change(
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
                pairs[next].turn(driver)
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

/// Nanoseconds.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
