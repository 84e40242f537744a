//! Records what a watch of Applications shows, and when.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use futures::TryStreamExt as _;
use serde::Deserialize;
use tokio::time::sleep;

use super::server::Server;

const APPLICATIONS: &str = "/apis/bellwether.dev/v1alpha1/applications";

/// By the name of the Application.
#[derive(Clone, Default)]
pub struct Observations(Arc<Mutex<HashMap<String, Vec<Observation>>>>);

/// One event of the watch.
struct Observation {
    at: Instant,
    /// The number of ready objects.
    ready: usize,
    /// The names of the other objects.
    waiting: HashSet<String>,
}

#[derive(Deserialize)]
struct Line {
    object: Application,
}

#[derive(Deserialize)]
struct Application {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    object_counts: Counts,
    objects: Vec<Object>,
}

#[derive(Default, Deserialize)]
struct Counts {
    ready: usize,
}

#[derive(Deserialize)]
struct Object {
    name: String,
    status: String,
}

impl Observations {
    /// Starts the watch. Restarts it when the API server ends it.
    pub async fn begin(server: &Server) -> Result<Self> {
        let all = Self::default();
        let (recorder, server) = (all.clone(), server.clone());
        let mut watch = server.watch(APPLICATIONS).await?;
        tokio::spawn(async move {
            loop {
                while let Ok(Some(line)) = watch.try_next().await {
                    recorder.record(&line, Instant::now());
                }
                // Without a watch, `all_have` times out.
                match server.watch(APPLICATIONS).await {
                    Ok(again) => watch = again,
                    Err(_) => return,
                }
            }
        });
        Ok(all)
    }

    /// When, after a time, the status of an Application first showed an object as ready (or not ready).
    pub fn first(&self, application: &str, after: Instant, object: &str, ready: bool) -> Option<Instant> {
        let all = self.lock();
        let is_it = |observation: &&Observation| {
            observation.at >= after && observation.waiting.contains(object) != ready
        };
        all.get(application)?.iter().find(is_it).map(|observation| observation.at)
    }

    /// Waits until each Application has the expected number of ready objects. Returns when the last one had.
    pub async fn all_have(&self, ready: &HashMap<String, usize>, timeout: Duration) -> Result<Instant> {
        let begun = Instant::now();
        loop {
            let pending = {
                let all = self.lock();
                let last = |name: &String| all.get(name).and_then(|observations| observations.last());
                let is_right =
                    |(name, ready): &(&String, &usize)| last(name).is_some_and(|seen| seen.ready == **ready);
                if ready.iter().all(|expected| is_right(&expected)) {
                    return Ok(ready.keys().filter_map(|name| Some(last(name)?.at)).max().unwrap_or(begun));
                }
                ready.iter().filter(|expected| !is_right(expected)).count()
            };
            if begun.elapsed() > timeout {
                bail!("{pending} Applications have a wrong status after {} s", timeout.as_secs());
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn record(&self, line: &str, at: Instant) {
        let Ok(Line { object }) = serde_json::from_str(line) else { return };
        let Application { metadata, status } = object;
        let waiting = status.objects.into_iter().filter(|object| object.status != "Ready");
        let waiting = waiting.map(|object| object.name).collect();
        let observation = Observation { at, ready: status.object_counts.ready, waiting };
        self.lock().entry(metadata.name).or_default().push(observation);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Observation>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
