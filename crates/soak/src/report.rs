//! The table at the end of a run.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use anyhow::Result;

use crate::{replica::Run, status_checks::CheckCounts};

const MIB: f64 = 1_048_576.0;

/// Parts of a run at which memory is reported.
const PARTS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// A check without load and faults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// The time until all statuses were right; `None` after a timeout.
    pub(crate) right: Option<Duration>,
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) time: Duration,
    /// Changes made by the load.
    pub(crate) changes: usize,
    /// The number of faults by name.
    pub(crate) faults: BTreeMap<String, usize>,
    pub(crate) checks: Vec<Check>,
    pub(crate) publications: usize,
    pub(crate) checked: CheckCounts,
    /// Write requests of the controllers by resource.
    pub(crate) writes: BTreeMap<String, usize>,
    /// List requests of the controllers.
    pub(crate) lists: usize,
    pub(crate) runs: Vec<Run>,
    pub(crate) failed_starts: usize,
    pub(crate) wrong: Vec<String>,
}

impl Report {
    pub(crate) fn table(&self) -> Result<String> {
        let mut text = format!(
            "{:.1} minutes with seed {}: {}",
            self.time.as_secs_f64() / 60.0,
            self.seed,
            if self.wrong.is_empty() { "passed" } else { "FAILED" }
        );
        let mut row = |value: String, unit: &str, what: &str| -> Result<()> {
            Ok(write!(text, "\n{value:>10}  {unit:<4}  {what}")?)
        };
        row(self.changes.to_string(), "", "changes by the load")?;
        row(self.faults.values().sum::<usize>().to_string(), "", "faults injected, of which")?;
        for (what, count) in &self.faults {
            row(count.to_string(), "", &format!("  {what}"))?;
        }
        row(self.publications.to_string(), "", "statuses published")?;
        row(self.checked.statuses.to_string(), "", "  checked")?;
        row(self.checked.skipped.to_string(), "", "  skipped, because the observer had missed changes")?;
        row(self.checks.len().to_string(), "", "checks without load and faults")?;
        let mut times: Vec<_> = self.checks.iter().filter_map(|check| check.right).collect();
        times.sort();
        if let (Some(median), Some(worst)) = (times.get(times.len() / 2), times.last()) {
            row(format!("{:.1}", median.as_secs_f64()), "s", "until all statuses were right, median")?;
            row(format!("{:.1}", worst.as_secs_f64()), "s", "maximum")?;
        }
        row(self.wrong.len().to_string(), "", "errors")?;
        row(
            self.writes.values().sum::<usize>().to_string(),
            "",
            "write requests of the controllers, of which",
        )?;
        for (what, count) in self.writes.iter().filter(|(_, count)| **count > 0) {
            row(count.to_string(), "", &format!("  {what}"))?;
        }
        row(self.lists.to_string(), "", "list requests of the controllers")?;
        row(self.runs.len().to_string(), "", "starts of controllers")?;
        row(self.failed_starts.to_string(), "", "  failed, because the API server was down")?;
        self.memory(&mut row)?;
        for wrong in &self.wrong {
            write!(text, "\n\nERROR at {}", wrong.trim_start())?;
        }
        Ok(text)
    }

    fn memory(&self, row: &mut impl FnMut(String, &str, &str) -> Result<()>) -> Result<()> {
        let Some(longest) = self.runs.iter().max_by_key(|run| run.length()) else { return Ok(()) };
        let minutes = longest.length().as_secs_f64() / 60.0;
        row(format!("{minutes:.1}"), "min", "longest run of a controller; its memory after")?;
        for part in PARTS {
            if let Some(bytes) = longest.memory(part) {
                row(format!("{:.1}", bytes / MIB), "MiB", &format!("  {:.0} % of it", 100.0 * part))?;
            }
        }
        let mut most: Vec<_> = self.runs.iter().map(Run::peak).filter(|bytes| *bytes > 0.0).collect();
        most.sort_by(f64::total_cmp);
        if let (Some(median), Some(worst)) = (most.get(most.len() / 2), most.last()) {
            row(format!("{:.1}", median / MIB), "MiB", "peak memory of a run, median")?;
            row(format!("{:.1}", worst / MIB), "MiB", "maximum")?;
        }
        Ok(())
    }
}
