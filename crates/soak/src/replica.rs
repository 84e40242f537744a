//! A controller that reaches the API server only through a proxy of its own.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use bellwether_testkit::{Access, Cluster, Controller, FaultProxy, memory_of};
use tokio::time::timeout;

use crate::alarm::Alarms;

/// How long it may take to answer about itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// Before that, it is only about to know anything.
const YOUTH: Duration = Duration::from_secs(4);

/// A controller that is started again and again.
pub(crate) struct Replica {
    name: &'static str,
    proxy: FaultProxy,
    controller: Controller,
    lives: Mutex<Lives>,
}

/// All its lives.
#[derive(Default)]
struct Lives {
    all: Vec<Life>,
    /// Whether it is meant to run.
    wanted: bool,
    /// How often it did not come up, because nobody answered.
    gave_up: usize,
}

/// From a start to an end.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    begun: Instant,
    /// Its memory at times, in bytes.
    memory: Vec<(Instant, f64)>,
}

impl Life {
    /// For how long its memory was watched.
    pub(crate) fn length(&self) -> Duration {
        self.memory.last().map_or(Duration::ZERO, |(at, _)| *at - self.begun)
    }

    /// Its memory when this part of the life was over, which is between 0 and 1.
    pub(crate) fn memory(&self, part: f64) -> Option<f64> {
        let at = self.begun + self.length().mul_f64(part);
        let after = self.memory.iter().find(|(time, _)| *time >= at);
        after.or(self.memory.last()).map(|(_, bytes)| *bytes)
    }

    /// The most that it ever had.
    pub(crate) fn most(&self) -> f64 {
        self.memory.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max)
    }
}

impl Replica {
    /// Starts one.
    pub(crate) async fn start_first(
        name: &'static str,
        program: &Path,
        user: &Access,
        cluster: &Cluster,
    ) -> Result<Self> {
        let proxy = FaultProxy::before(cluster).await?;
        let controller = Controller::new(program, &user.via(proxy.address()))?;
        let replica = Self { name, proxy, controller, lives: Mutex::default() };
        replica.start()?;
        Ok(replica)
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// What it reaches the API server through.
    pub(crate) fn proxy(&self) -> &FaultProxy {
        &self.proxy
    }

    /// Starts it, if it does not run.
    pub(crate) fn start(&self) -> Result<()> {
        let mut lives = self.lock();
        lives.wanted = true;
        if self.controller.program.is_running() {
            return Ok(());
        }
        self.controller.start()?;
        lives.all.push(Life { begun: Instant::now(), memory: Vec::new() });
        Ok(())
    }

    /// `kill -9`.
    pub(crate) fn kill(&self) {
        self.lock().wanted = false;
        self.controller.program.kill();
    }

    /// Asks it to end, which it must do in good order.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.lock().wanted = false;
        if self.controller.program.is_running() {
            let status = self.controller.program.stop().await?;
            ensure!(
                status.success(),
                "the controller {} was asked to end, and did so badly: {status}",
                self.name
            );
        }
        Ok(())
    }

    /// Stops time for it.
    pub(crate) fn pause(&self) -> Result<()> {
        self.controller.program.pause()
    }

    /// Lets time go on.
    pub(crate) fn resume(&self) -> Result<()> {
        self.controller.program.resume()
    }

    /// Whether it leads, by its own account.
    pub(crate) async fn leads(&self) -> bool {
        self.metric("bellwether_leader").await == Some(1)
    }

    /// Whether it watches every kind that it follows, so that it knows all that has happened.
    pub(crate) async fn watches_all(&self) -> bool {
        let (open, followed) =
            (self.metric("bellwether_watches_open").await, self.metric("bellwether_kinds_watched").await);
        open.is_some() && open == followed
    }

    async fn metric(&self, name: &str) -> Option<u64> {
        timeout(PATIENCE, self.controller.metric(name)).await.ok()?.ok()?
    }

    /// Notes its memory, and looks whether it has ended by itself. One that cannot reach an API server when it is started
    /// says so and ends, as it should; whoever runs it starts it again.
    pub(crate) fn look_after(&self, alarms: &Alarms) -> Result<()> {
        let mut lives = self.lock();
        if let Some(id) = self.controller.program.id() {
            let memory = memory_of(id)?;
            if let Some(life) = lives.all.last_mut().filter(|life| life.begun.elapsed() > YOUTH) {
                life.memory.push((Instant::now(), memory));
            }
            return Ok(());
        }
        if !lives.wanted {
            return Ok(());
        }
        let log = self.controller.log_since_start();
        if self.controller.serves() || log.contains("panicked") {
            let last: Vec<_> = log.lines().rev().take(12).collect();
            let last: Vec<_> = last.into_iter().rev().collect();
            alarms.raise(&format!("the controller {} has ended by itself:\n{}", self.name, last.join("\n")));
        } else {
            lives.gave_up += 1;
        }
        drop(lives);
        self.start()
    }

    /// All its lives.
    pub(crate) fn lives(&self) -> Vec<Life> {
        self.lock().all.clone()
    }

    /// How often it did not come up, because nobody answered.
    pub(crate) fn gave_up(&self) -> usize {
        self.lock().gave_up
    }

    /// Everything that it has said.
    pub(crate) fn log(&self) -> String {
        self.controller.program.log()
    }

    fn lock(&self) -> MutexGuard<'_, Lives> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
