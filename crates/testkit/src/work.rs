//! CPU time and memory of processes, from `/proc`.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};

/// The unit of CPU times in `/proc`: ticks for each second (`USER_HZ`).
const TICKS: f64 = 100.0;

/// The CPU time of a process on all cores, in seconds.
pub fn work_of(process: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The program name is in parentheses and may contain spaces.
    let (_, after) = stat.rsplit_once(')').context("/proc/PID/stat has no program name")?;
    ticks(after.split_whitespace().skip(11).take(2))
}

/// The CPU time of the running threads of a process, in seconds. Without threads that have ended, but precise to
/// the microsecond.
pub fn work_of_threads(process: u32) -> Result<f64> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // The thread may end meanwhile.
        let Ok(times) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        let time = times.split_whitespace().next().context("/proc/PID/task/TID/schedstat is empty")?;
        nanoseconds += time.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds).as_secs_f64())
}

/// The CPU time of the whole machine on all cores, in seconds, including time that the hypervisor has stolen.
pub fn work_of_all() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let times: Vec<_> =
        stat.lines().next().context("/proc/stat is empty")?.split_whitespace().skip(1).collect();
    // The fourth and the fifth field are idle and iowait. Those after the eighth (guests) are included in the
    // first two.
    ticks(
        times.iter().take(8).enumerate().filter(|(place, _)| ![3, 4].contains(place)).map(|(_, time)| *time),
    )
}

/// The resident set size of a process, in bytes.
pub fn memory_of(process: u32) -> Result<f64> {
    size_of(process, "VmRSS")
}

/// The largest resident set size of a process so far, in bytes.
pub fn peak_memory_of(process: u32) -> Result<f64> {
    size_of(process, "VmHWM")
}

/// A size in `/proc/PID/status`, in bytes.
fn size_of(process: u32, field: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let size =
        status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')?.strip_suffix("kB"));
    let size = size.with_context(|| format!("/proc/PID/status has no {field}"))?;
    Ok(size.trim().parse::<f64>()? * 1024.0)
}

fn ticks<'a>(times: impl Iterator<Item = &'a str>) -> Result<f64> {
    Ok(times.map(str::parse::<f64>).sum::<Result<f64, _>>()? / TICKS)
}
