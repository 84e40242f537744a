//! What is told in the end.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use anyhow::Result;

use crate::{judge::Judged, replica::Life};

const MIB: f64 = 1_048_576.0;

/// Parts of a life at which memory is told.
const PARTS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// A moment at which all was quiet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// How long it took until all was right; nothing if it never was.
    pub(crate) right: Option<Duration>,
}

/// All that happened.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What everything followed from.
    pub(crate) seed: u64,
    /// For how long it went on.
    pub(crate) time: Duration,
    /// How many changes were made.
    pub(crate) changes: usize,
    /// How often things were broken, by what was.
    pub(crate) faults: BTreeMap<String, usize>,
    /// What was found when all was quiet.
    pub(crate) checks: Vec<Check>,
    /// How many statuses were published, and how they were judged.
    pub(crate) publications: usize,
    /// How statuses were judged.
    pub(crate) judged: Judged,
    /// How many changes the controllers asked for, by what they concern.
    pub(crate) writes: BTreeMap<String, usize>,
    /// How many lists they asked for.
    pub(crate) lists: usize,
    /// All lives of the controllers.
    pub(crate) lives: Vec<Life>,
    /// How often one did not come up, because nobody answered.
    pub(crate) gave_up: usize,
    /// All that was wrong.
    pub(crate) wrong: Vec<String>,
}

impl Report {
    /// The table.
    pub(crate) fn table(&self) -> Result<String> {
        let mut text = format!(
            "{:.1} minutes with seed {}: {}",
            self.time.as_secs_f64() / 60.0,
            self.seed,
            if self.wrong.is_empty() { "nothing was wrong" } else { "SOMETHING WAS WRONG" }
        );
        let mut row = |value: String, unit: &str, what: &str| -> Result<()> {
            Ok(write!(text, "\n{value:>10}  {unit:<4}  {what}")?)
        };
        row(self.changes.to_string(), "", "changes made")?;
        row(self.faults.values().sum::<usize>().to_string(), "", "things broken, of which")?;
        for (what, count) in &self.faults {
            row(count.to_string(), "", &format!("  {what}"))?;
        }
        row(self.publications.to_string(), "", "statuses published")?;
        row(self.judged.statuses.to_string(), "", "  judged")?;
        row(
            self.judged.unclear.to_string(),
            "",
            "  not judged, because the witness had missed something itself",
        )?;
        row(self.checks.len().to_string(), "", "times when all was quiet")?;
        let mut times: Vec<_> = self.checks.iter().filter_map(|check| check.right).collect();
        times.sort();
        if let (Some(median), Some(worst)) = (times.get(times.len() / 2), times.last()) {
            row(format!("{:.1}", median.as_secs_f64()), "s", "until all was right then, half of them")?;
            row(format!("{:.1}", worst.as_secs_f64()), "s", "the longest")?;
        }
        row(self.wrong.len().to_string(), "", "wrong answers")?;
        row(
            self.writes.values().sum::<usize>().to_string(),
            "",
            "changes that the controllers asked for, of which",
        )?;
        for (what, count) in self.writes.iter().filter(|(_, count)| **count > 0) {
            row(count.to_string(), "", &format!("  {what}"))?;
        }
        row(self.lists.to_string(), "", "lists that they asked for")?;
        row(self.lives.len().to_string(), "", "starts of a controller")?;
        row(self.gave_up.to_string(), "", "  that ended at once, because nobody answered")?;
        self.memory(&mut row)?;
        for wrong in &self.wrong {
            write!(text, "\n\nWRONG at {}", wrong.trim_start())?;
        }
        Ok(text)
    }

    fn memory(&self, row: &mut impl FnMut(String, &str, &str) -> Result<()>) -> Result<()> {
        let Some(longest) = self.lives.iter().max_by_key(|life| life.length()) else { return Ok(()) };
        let minutes = longest.length().as_secs_f64() / 60.0;
        row(format!("{minutes:.1}"), "min", "the longest life of a controller; its memory after")?;
        for part in PARTS {
            if let Some(bytes) = longest.memory(part) {
                row(format!("{:.1}", bytes / MIB), "MiB", &format!("  {:.0} % of it", 100.0 * part))?;
            }
        }
        let mut most: Vec<_> = self.lives.iter().map(Life::most).filter(|bytes| *bytes > 0.0).collect();
        most.sort_by(f64::total_cmp);
        if let (Some(median), Some(worst)) = (most.get(most.len() / 2), most.last()) {
            row(format!("{:.1}", median / MIB), "MiB", "the most that a life ever had, half of them")?;
            row(format!("{:.1}", worst / MIB), "MiB", "of all")?;
        }
        Ok(())
    }
}
