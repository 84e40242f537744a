//! `cargo xtask bench memory`: the peak of memory with large objects.

use std::{fmt::Write as _, process::Command as Process};

use anyhow::{Context as _, Result};
use clap::Args;

use super::{Figure, build_ours, lines_of};
use crate::run::{cargo, print, step};

#[derive(Debug, Args)]
pub(crate) struct Memory {
    /// Number of objects of each kind
    #[arg(long, default_value_t = 300)]
    objects: u32,
    /// Size of each object in bytes
    #[arg(long, default_value_t = 950_000)]
    size: u32,
}

/// Figure, description.
const ROWS: [(&str, &str); 3] = [
    ("empty", "peak without objects"),
    ("config_maps", "peak with the ConfigMaps, of which only metadata is read"),
    ("custom_objects", "peak with the ConfigMaps and the custom objects"),
];

impl Memory {
    pub(super) fn run(&self) -> Result<()> {
        let own = build_ours()?;
        step(&mut cargo(&["build", "--release", "--package", "bellwether"]))?;
        let mut program = Process::new(own.join("list-memory"));
        program.arg(own.join("bellwether"));
        program.args([self.objects, self.size].map(|number| number.to_string()));
        let figures: Vec<Figure> = lines_of(&mut program).context("cannot measure the memory of lists")?;
        let mut text = format!(
            "A controller starts with {} objects of {} bytes of each kind, none of them selected",
            self.objects, self.size
        );
        for (name, what) in ROWS {
            if let Some(figure) = figures.iter().find(|figure| figure.figure == name) {
                write!(text, "\n{:>8.1}  MiB {what}", figure.value / 1024.0 / 1024.0)?;
            }
        }
        print(&format!("\n{text}"));
        Ok(())
    }
}
