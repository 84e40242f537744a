//! Measures the engine with Applications that depend on one another in a chain: the time to load it, of a change
//! of an unrelated Application beside it, and of the edits that close and open a circle.
//!
//! Argument: the number of Applications in the chain.

use std::{
    env, fs,
    io::{Write as _, stdout},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_bench::{Driver, Pair, Population, cpu_time, nanos, time_of_a_change};
use serde_json::{Value, json};

fn main() -> Result<()> {
    let length: usize = env::args().nth(1).context("missing argument: length of the chain")?.parse()?;
    let population = &Population::new(1, 1)?;
    let mut unrelated = Population::application(0);
    unrelated["metadata"]["uid"] = "unrelated".into();
    let chain = (0..length).map(|number| link(number, &[number + 1]));
    let begun = cpu_time()?;
    let mut driver = Driver::of("Application", chain.chain([unrelated]), "deployments")?;
    let [waiting, ready] = [false, true]
        .map(|ready| -> Result<_> { driver.decode(population.object(0, 1, ready)?.to_string().as_bytes()) });
    let mut pairs = [Pair::new(waiting?, ready?)];
    let event = pairs[0].event(&mut driver);
    driver.list([event]);
    let loading = cpu_time()?.saturating_sub(begun);
    let written = driver.render_statuses();
    ensure!(written.len() == length + 1, "{} statuses, want {}", written.len(), length + 1);
    driver.written(written);

    let (change_ns, _) = time_of_a_change(&mut driver, &mut pairs, 200, 1)?;
    let memory = peak_bytes()?;
    let mut edit = |dependencies: &[usize], generation| -> Result<_> {
        let event = driver.own_event(link(length - 1, dependencies), generation)?;
        let begun = cpu_time()?;
        driver.step([event]);
        let stepped = cpu_time()?;
        let written = driver.render_statuses();
        let rendered = cpu_time()?;
        let statuses = written.len();
        driver.written(written);
        Ok((nanos(stepped.saturating_sub(begun)), nanos(rendered.saturating_sub(stepped)), statuses))
    };
    let (close_ns, render_ns, statuses) = edit(&[0], 2)?;
    ensure!(statuses == length, "{statuses} statuses report the circle, want {length}");
    let (open_ns, _, _) = edit(&[length], 3)?;
    let line = json!({
        "length": length,
        "load_ns": nanos(loading),
        "change_ns": change_ns,
        "close_ns": close_ns,
        "render_ns": render_ns,
        "open_ns": open_ns,
        "circle_bytes": peak_bytes()?.saturating_sub(memory),
    });
    writeln!(stdout(), "{line}")?;
    Ok(())
}

/// An Application of the chain with these dependencies.
fn link(number: usize, dependencies: &[usize]) -> Value {
    let dependencies: Vec<_> = dependencies.iter().map(|number| format!("link-{number}")).collect();
    json!({
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "Application",
        "metadata": {"name": format!("link-{number}"), "namespace": "chain", "uid": format!("link-{number}")},
        "spec": {"selector": {"matchLabels": {"app": "chain"}}, "dependencies": dependencies},
    })
}

/// The maximum of the memory so far.
fn peak_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM not found")?;
    Ok(peak.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
