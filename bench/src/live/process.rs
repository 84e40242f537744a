//! The controller as a process.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Access, Controller, memory_of, peak_memory_of, work_of, work_of_threads};

/// The timeout until the controller is ready.
const TIMEOUT: Duration = Duration::from_mins(3);

pub struct Process {
    controller: Controller,
    begun: Instant,
}

impl Process {
    /// Does not wait for readiness.
    pub fn start(program: &Path, access: &Access, arguments: &[&str]) -> Result<Self> {
        let controller = Controller::new(program, access)?.arguments(arguments);
        controller.start()?;
        Ok(Self { controller, begun: Instant::now() })
    }

    /// The time of the start.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Sends SIGTERM and waits for the end.
    pub async fn stop(self) -> Result<()> {
        let status = self.controller.program.stop().await?;
        ensure!(status.success(), "the controller did not exit with 0:\n{}", self.controller.program.log());
        Ok(())
    }

    /// Waits for readiness, and returns the time since the start.
    pub async fn ready(&self) -> Result<Duration> {
        self.controller.ready(TIMEOUT).await?;
        Ok(self.begun.elapsed())
    }

    /// The sum of a metric over all its labels.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        Ok(self.controller.metric(name).await?.unwrap_or_default())
    }

    /// The resident set size, in bytes.
    pub fn memory(&self) -> Result<f64> {
        memory_of(self.id()?)
    }

    /// The largest resident set size so far, in bytes.
    pub fn peak_memory(&self) -> Result<f64> {
        peak_memory_of(self.id()?)
    }

    /// The CPU time on all cores, in seconds.
    pub fn cpu_seconds(&self) -> Result<f64> {
        work_of(self.id()?)
    }

    /// The CPU time of all threads, in seconds: more precise, if no thread ends.
    pub fn cpu_seconds_of_threads(&self) -> Result<f64> {
        work_of_threads(self.id()?)
    }

    fn id(&self) -> Result<u32> {
        let program = &self.controller.program;
        program.id().with_context(|| format!("the controller ended:\n{}", program.log()))
    }
}
