//! Measures the time of a change to one of many components in the engine.
//!
//! Argument: the number of components.

use std::{
    env,
    io::{Write as _, stdout},
    iter,
};

use anyhow::{Context as _, Result, ensure};
use bellwether_bench::{
    Driver, Pair, time_of_a_change,
    umbrella::{self, PLURAL},
};
use serde_json::json;

/// The number of single changes between two reads of the clock. An odd number, so that even with few
/// components some differ from their state before.
const ONE_BY_ONE: usize = 201;

fn main() -> Result<()> {
    let components: usize = env::args().nth(1).context("missing argument: number of components")?.parse()?;
    let mut driver = Driver::of("Rollup", iter::once(umbrella::rollup()), PLURAL)?;
    let mut pairs = Vec::new();
    for number in 0..components {
        let decode = |ready: bool| {
            let mut component = umbrella::component(number);
            component["status"] = umbrella::status(ready);
            driver.decode(component.to_string().as_bytes())
        };
        pairs.push(Pair::new(decode(false)?, decode(true)?));
    }
    let events: Vec<_> = pairs.iter().map(|pair| pair.event(&mut driver)).collect();
    driver.list(events);
    let written = driver.render_statuses();
    driver.written(written);
    ensure!(driver.healthy() == 1, "the Rollup is not healthy after the list");

    // One component changes, and one status is written.
    let pair = pairs.first_mut().context("the number of components is 0")?;
    let event = pair.toggle(&mut driver);
    driver.step([event]);
    let written = driver.render_statuses();
    let writes = written.len();
    driver.written(written);

    let (one_ns, words_ns) = time_of_a_change(&mut driver, &mut pairs, ONE_BY_ONE, 1)?;
    let line = json!({"components": components, "one_ns": one_ns, "words_ns": words_ns, "writes": writes});
    writeln!(stdout(), "{line}")?;
    Ok(())
}
