//! A controller behind its own fault proxy.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use bellwether_testkit::{Access, Cluster, Controller, FaultProxy, memory_of};
use tokio::time::timeout;

use crate::alarm::Alarms;

const METRIC_TIMEOUT: Duration = Duration::from_secs(2);

/// Memory is not recorded while the controller starts.
const STARTUP: Duration = Duration::from_secs(4);

pub(crate) struct Replica {
    name: &'static str,
    proxy: FaultProxy,
    controller: Controller,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    all: Vec<Run>,
    /// Whether the controller should be running.
    wanted: bool,
    /// Starts that failed because the API server was down.
    failed_starts: usize,
}

/// One run of the process.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    begun: Instant,
    /// Samples of the memory, in bytes.
    memory: Vec<(Instant, f64)>,
}

impl Run {
    /// The time from the start to the last sample.
    pub(crate) fn length(&self) -> Duration {
        self.memory.last().map_or(Duration::ZERO, |(at, _)| *at - self.begun)
    }

    /// The memory after a part of the run, from 0 to 1.
    pub(crate) fn memory(&self, part: f64) -> Option<f64> {
        let at = self.begun + self.length().mul_f64(part);
        let after = self.memory.iter().find(|(time, _)| *time >= at);
        after.or(self.memory.last()).map(|(_, bytes)| *bytes)
    }

    pub(crate) fn peak(&self) -> f64 {
        self.memory.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max)
    }
}

impl Replica {
    pub(crate) async fn start_first(
        name: &'static str,
        program: &Path,
        user: &Access,
        cluster: &Cluster,
    ) -> Result<Self> {
        let proxy = FaultProxy::before(cluster).await?;
        let controller = Controller::new(program, &user.via(proxy.address()))?;
        let replica = Self { name, proxy, controller, runs: Mutex::default() };
        replica.start()?;
        Ok(replica)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn proxy(&self) -> &FaultProxy {
        &self.proxy
    }

    /// Does nothing if the controller is running.
    pub(crate) fn start(&self) -> Result<()> {
        let mut runs = self.lock();
        runs.wanted = true;
        if self.controller.program.is_running() {
            return Ok(());
        }
        self.controller.start()?;
        runs.all.push(Run { begun: Instant::now(), memory: Vec::new() });
        Ok(())
    }

    pub(crate) fn kill(&self) {
        self.lock().wanted = false;
        self.controller.program.kill();
    }

    /// Sends SIGTERM. The controller must exit with 0.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.lock().wanted = false;
        if self.controller.program.is_running() {
            let status = self.controller.program.stop().await?;
            ensure!(status.success(), "controller {} did not exit with 0 after SIGTERM: {status}", self.name);
        }
        Ok(())
    }

    pub(crate) fn pause(&self) -> Result<()> {
        self.controller.program.pause()
    }

    pub(crate) fn resume(&self) -> Result<()> {
        self.controller.program.resume()
    }

    /// Whether its metrics report it as the leader.
    pub(crate) async fn leads(&self) -> bool {
        self.metric("bellwether_leader").await == Some(1)
    }

    /// Whether it has an open watch for every kind that it follows.
    pub(crate) async fn watches_all(&self) -> bool {
        let (open, followed) =
            (self.metric("bellwether_watches_open").await, self.metric("bellwether_kinds_watched").await);
        open.is_some() && open == followed
    }

    async fn metric(&self, name: &str) -> Option<u64> {
        timeout(METRIC_TIMEOUT, self.controller.metric(name)).await.ok()?.ok()?
    }

    /// Records the memory. Restarts a controller that has ended by itself, and raises an alarm unless its
    /// start failed: a controller that cannot reach the API server at its start exits, and Kubernetes
    /// restarts it.
    pub(crate) fn supervise(&self, alarms: &Alarms) -> Result<()> {
        let mut runs = self.lock();
        // To ask for its id would take its exit status from `stop`.
        if !runs.wanted {
            return Ok(());
        }
        if let Some(id) = self.controller.program.id() {
            let memory = memory_of(id)?;
            if let Some(run) = runs.all.last_mut().filter(|run| run.begun.elapsed() > STARTUP) {
                run.memory.push((Instant::now(), memory));
            }
            return Ok(());
        }
        let log = self.controller.log_since_start();
        if self.controller.serves() || log.contains("panicked") {
            let last: Vec<_> = log.lines().rev().take(12).collect();
            let last: Vec<_> = last.into_iter().rev().collect();
            alarms.raise(&format!("controller {} has ended by itself:\n{}", self.name, last.join("\n")));
        } else {
            runs.failed_starts += 1;
        }
        drop(runs);
        self.start()
    }

    pub(crate) fn runs(&self) -> Vec<Run> {
        self.lock().all.clone()
    }

    pub(crate) fn starts(&self) -> Vec<Instant> {
        self.lock().all.iter().map(|run| run.begun).collect()
    }

    pub(crate) fn failed_starts(&self) -> usize {
        self.lock().failed_starts
    }

    pub(crate) fn log(&self) -> String {
        self.controller.program.log()
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
