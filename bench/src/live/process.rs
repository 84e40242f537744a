//! The controller as a process: started, asked, weighed and stopped.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Access, Controller, memory_of, work_of};

/// So long it may take until all objects are known.
const PATIENCE: Duration = Duration::from_mins(3);

/// A controller that runs.
pub struct Process {
    controller: Controller,
    begun: Instant,
}

impl Process {
    /// Starts a controller, and does not wait for it.
    pub fn start(program: &Path, access: &Access) -> Result<Self> {
        let controller = Controller::new(program, access)?;
        controller.start()?;
        Ok(Self { controller, begun: Instant::now() })
    }

    /// When it was started.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Asks it to stop, and waits until it has.
    pub async fn stop(self) -> Result<()> {
        let status = self.controller.program.stop().await?;
        ensure!(status.success(), "the controller ended badly:\n{}", self.controller.program.log());
        Ok(())
    }

    /// How long it took from the start until it said that it is ready.
    pub async fn ready(&self) -> Result<Duration> {
        self.controller.ready(PATIENCE).await?;
        Ok(self.begun.elapsed())
    }

    /// The sum of a metric over all its labels.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        Ok(self.controller.metric(name).await?.unwrap_or_default())
    }

    /// How many bytes of memory it has.
    pub fn memory(&self) -> Result<f64> {
        memory_of(self.id()?)
    }

    /// How many seconds it has worked, on all cores together.
    pub fn work(&self) -> Result<f64> {
        work_of(self.id()?)
    }

    /// Its process id.
    fn id(&self) -> Result<u32> {
        let program = &self.controller.program;
        program.id().with_context(|| format!("the controller ended:\n{}", program.log()))
    }
}
