//! What a change to one of many components costs the engine.
//!
//! The command line has how many components there are.

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

/// What is told one by one, between two looks at the clock. An odd number: however few components there are, not all of them
/// are in the end what they were.
const ONE_BY_ONE: usize = 201;

fn main() -> Result<()> {
    let components: usize = env::args().nth(1).context("how many components?")?.parse()?;
    let mut driver = Driver::of("Rollup", iter::once(umbrella::rollup()), PLURAL)?;
    let mut pairs = Vec::new();
    for number in 0..components {
        let told = |well: bool| {
            let mut component = umbrella::component(number);
            component["status"] = umbrella::status(well);
            driver.read(component.to_string().as_bytes())
        };
        pairs.push(Pair::new(told(false)?, told(true)?));
    }
    let events: Vec<_> = pairs.iter().map(|pair| pair.event(&mut driver)).collect();
    driver.list(events);
    let written = driver.put_into_words();
    driver.written(written);
    ensure!(driver.healthy() == 1, "the Rollup is not healthy after the list");

    // One component turns, and one status is written.
    let pair = pairs.first_mut().context("there is no component")?;
    let event = pair.turn(&mut driver);
    driver.step([event]);
    let written = driver.put_into_words();
    let writes = written.len();
    driver.written(written);

    let (one_ns, words_ns) = time_of_a_change(&mut driver, &mut pairs, ONE_BY_ONE, 1)?;
    let line = json!({"components": components, "one_ns": one_ns, "words_ns": words_ns, "writes": writes});
    writeln!(stdout(), "{line}")?;
    Ok(())
}
