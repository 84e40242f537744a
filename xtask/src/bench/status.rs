//! `cargo xtask bench status`: the duration of `bellwether status`.

use std::{fmt::Write as _, process::Command as Process};

use anyhow::{Context as _, Result};
use clap::Args;

use super::{Figure, build_ours, lines_of};
use crate::run::{cargo, print, step};

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Number of objects
    #[arg(long, default_value_t = 10_000)]
    objects: u32,
    /// Number of objects in one Application
    #[arg(long, default_value_t = 20)]
    group: u32,
    /// Number of runs
    #[arg(long, default_value_t = 10)]
    times: u32,
}

/// Figure, unit, description.
const ROWS: [(&str, &str, &str); 4] = [
    ("half_s", "s", "duration of the command, median (goal: 2)"),
    ("best_s", "s", "minimum"),
    ("worst_s", "s", "maximum"),
    ("lists", "", "list requests (goal: one for each kind: Applications, HealthRules, Deployments)"),
];

impl Status {
    pub(super) fn run(&self) -> Result<()> {
        let own = build_ours()?;
        step(&mut cargo(&["build", "--release", "--package", "bellwether"]))?;
        let mut program = Process::new(own.join("status-times"));
        program.arg(own.join("bellwether"));
        program.args([self.objects, self.group, self.times].map(|number| number.to_string()));
        let figures: Vec<Figure> = lines_of(&mut program).context("cannot measure bellwether status")?;
        let mut text = format!(
            "bellwether status -A, with {} objects in {} Applications",
            self.objects,
            self.objects.div_ceil(self.group)
        );
        for (name, unit, what) in ROWS {
            if let Some(figure) = figures.iter().find(|figure| figure.figure == name) {
                write!(text, "\n{:>8.2}  {unit:<3} {what}", figure.value)?;
            }
        }
        print(&format!("\n{text}"));
        Ok(())
    }
}
