//! `cargo xtask bench status`: how long a person waits for `bellwether status`.

use std::{fmt::Write as _, process::Command as Process};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Deserialize;

use super::{build_ours, lines_of};
use crate::run::{cargo, print, step};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// How many objects there are
    #[arg(long, default_value_t = 10_000)]
    objects: u32,
    /// How many of them belong to one Application
    #[arg(long, default_value_t = 20)]
    group: u32,
    /// How often to ask
    #[arg(long, default_value_t = 10)]
    times: u32,
}

#[derive(Debug, Deserialize)]
struct Figure {
    figure: String,
    value: f64,
}

/// What is told, with its unit and its goal.
const ROWS: [(&str, &str, &str); 4] = [
    ("half_s", "s", "from the command to its end, half of them (goal: 2)"),
    ("best_s", "s", "the quickest"),
    ("worst_s", "s", "the slowest"),
    ("lists", "", "lists that it asks for (goal: one for each kind: Applications, HealthRules, Deployments)"),
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
