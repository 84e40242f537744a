//! Records what a watch of CombinedStatuses shows, and when.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bellwether_api::{CombinedStatusFields, combined_status_labels::NAME};
use futures::TryStreamExt as _;
use serde::Deserialize;
use tokio::{sync::watch, time::timeout};

use super::server::Server;
use crate::workload::{NAMESPACE, Shown};

/// By the name of the Deployment: what its CombinedStatus shows, and since when.
type Latest = HashMap<String, (Shown, Instant)>;

/// Shares its watch with its clones.
#[derive(Clone)]
pub struct CombinedStatuses(watch::Receiver<Latest>);

#[derive(Deserialize)]
struct Line {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(flatten)]
    fields: CombinedStatusFields,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: HashMap<String, String>,
}

impl CombinedStatuses {
    /// Starts the watch. Restarts it when the API server ends it.
    pub async fn begin(server: &Server) -> Result<Self> {
        let path = format!("/apis/bellwether.dev/v1alpha1/namespaces/{NAMESPACE}/combinedstatuses");
        let (sender, latest) = watch::channel(Latest::new());
        let server = server.clone();
        let mut lines = server.watch(&path).await?;
        tokio::spawn(async move {
            loop {
                while let Ok(Some(line)) = lines.try_next().await {
                    let at = Instant::now();
                    if let Some((name, shown)) = read(&line) {
                        sender.send_modify(|latest| drop(latest.insert(name, (shown, at))));
                    }
                }
                // Without a watch, `all_show` times out.
                match server.watch(&path).await {
                    Ok(again) => lines = again,
                    Err(_) => return,
                }
            }
        });
        Ok(Self(latest))
    }

    /// Waits until the CombinedStatus of each Deployment shows this. Returns since when each does.
    pub async fn all_show(
        &self,
        expected: &HashMap<String, Shown>,
        within: Duration,
    ) -> Result<Vec<Instant>> {
        let mut latest = self.0.clone();
        let since = |latest: &Latest, (name, expected): (&String, &Shown)| {
            latest.get(name).filter(|(shown, _)| shown == expected).map(|(_, at)| *at)
        };
        let all = |latest: &Latest| -> Option<Vec<Instant>> {
            expected.iter().map(|expected| since(latest, expected)).collect()
        };
        let shown = timeout(within, latest.wait_for(|latest| all(latest).is_some())).await;
        let shown = shown.ok().context("a CombinedStatus is still wrong").and_then(|shown| Ok(shown?));
        match shown {
            Ok(latest) => all(&latest).context("the CombinedStatuses are wrong again"),
            Err(error) => {
                let latest = self.0.borrow();
                let wrong = expected.iter().find(|expected| since(&latest, *expected).is_none());
                let wrong = wrong.map(|(name, expected)| (name, expected, latest.get(name)));
                Err(error.context(format!("{wrong:?}")))
            }
        }
    }
}

fn read(line: &str) -> Option<(String, Shown)> {
    let Line { object } = serde_json::from_str(line).ok()?;
    let name = object.metadata.labels.get(NAME)?.clone();
    Some((name, object.fields.into()))
}
