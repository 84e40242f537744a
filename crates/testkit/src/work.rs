//! Who has worked how long and has how much memory, as Linux tells it.

use std::fs;

use anyhow::{Context as _, Result};

/// In so many parts Linux divides a second when it tells how long a process has worked.
const TICKS: f64 = 100.0;

/// How many seconds a process has worked, on all cores together.
pub fn work_of(process: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program stands in brackets, and may have spaces in it.
    let (_, after) = stat.rsplit_once(')').context("it has no name")?;
    ticks(after.split_whitespace().skip(11).take(2))
}

/// How many seconds the cores were not ours to use: all have worked, or the host had given the core to somebody else.
pub fn work_of_all() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let times: Vec<_> = stat.lines().next().context("it is empty")?.split_whitespace().skip(1).collect();
    // The fourth and the fifth are the times in which there was nothing to do; after the eighth, guests are counted again.
    ticks(
        times.iter().take(8).enumerate().filter(|(place, _)| ![3, 4].contains(place)).map(|(_, time)| *time),
    )
}

/// How many bytes of memory a process has.
pub fn memory_of(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"));
    Ok(size.context("it has no memory")?.trim().parse::<f64>()? * 1024.0)
}

fn ticks<'a>(times: impl Iterator<Item = &'a str>) -> Result<f64> {
    Ok(times.map(str::parse::<f64>).sum::<Result<f64, _>>()? / TICKS)
}
