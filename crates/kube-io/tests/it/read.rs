//! The reader against a real API server: list, watch, relist, discovery, 403, 410 Gone, stale reads.

mod discovery;
mod faults;
mod forbidden;
mod snapshot;
mod stale_reads;
mod watch;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bellwether_engine::{FeedEvent, GroupKind, Lens, Unreadable};
use bellwether_health::user::UserRules;
use bellwether_kube_io::read::{BackoffLimits, Reader, ReaderSettings};
use bellwether_testkit::{Access, Cluster, FaultProxy, Requests, Verb, shared};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

/// The timeout of a test step.
const SOON: Duration = bellwether_testkit::TIMEOUT;

/// The feed of ConfigMaps.
const MAPS: &str = "maps";

/// A namespace of ConfigMaps, a reader behind a fault proxy, and its events.
struct ReaderFixture {
    cluster: &'static Cluster,
    namespace: String,
    proxy: FaultProxy,
    maps: Api<ConfigMap>,
    reader: Reader<&'static str>,
    events: mpsc::Receiver<(&'static str, FeedEvent)>,
}

impl ReaderFixture {
    async fn new(purpose: &str) -> Result<Self> {
        Self::with_settings(purpose, |_| {}).await
    }

    async fn with_settings(purpose: &str, change: impl FnOnce(&mut ReaderSettings)) -> Result<Self> {
        let cluster = shared::cluster().await?;
        Self::for_user(cluster, cluster.admin(), purpose, change).await
    }

    /// The reader has the permissions of this user; objects are written by an admin.
    async fn for_user(
        cluster: &'static Cluster,
        user: &Access,
        purpose: &str,
        change: impl FnOnce(&mut ReaderSettings),
    ) -> Result<Self> {
        let namespace = cluster.namespace(purpose).await?;
        let proxy = FaultProxy::before(cluster).await?;
        let mut settings = quick();
        settings.namespace = Some(namespace.clone());
        change(&mut settings);
        // With a queue of one, the reader waits for the test at every event.
        let (sender, events) = mpsc::channel(1);
        Ok(Self {
            reader: Reader::start(user.via(proxy.address()).client().await?, settings, sender),
            maps: Api::namespaced(cluster.admin().client().await?, &namespace),
            cluster,
            namespace,
            proxy,
            events,
        })
    }

    fn watch(&mut self, feed: &'static str, group: &str, kind: &str) {
        let kind = GroupKind::new(group, kind);
        let lens = Lens::new(&kind, Arc::new(UserRules::default()));
        self.reader.follow(feed, kind, Arc::new(lens));
    }

    /// Watches the ConfigMaps, and expects a list of these names.
    async fn watch_maps(&mut self, names: &[&str]) -> Result<()> {
        self.watch(MAPS, "", "ConfigMap");
        self.expect_events(&["maps: served as v1/configmaps"]).await?;
        self.expect_list(names).await
    }

    async fn expect_events(&mut self, expected: &[&str]) -> Result<()> {
        for expected in expected {
            let event = self.next_event().await.with_context(|| format!("no event; expected: {expected}"))?;
            ensure!(event == *expected, "event: {event}; expected: {expected}");
        }
        Ok(())
    }

    /// Expects a complete list of these ConfigMaps.
    async fn expect_list(&mut self, names: &[&str]) -> Result<()> {
        self.expect_events(&["maps: listing"]).await?;
        for name in names {
            let expected = format!("maps: {}/{name} old", self.namespace);
            self.expect_events(&[&expected]).await?;
        }
        self.expect_events(&["maps: listed"]).await
    }

    /// Expects a ConfigMap with this label `state`, or `deleted`.
    async fn expect_object(&mut self, name: &str, state: &str) -> Result<()> {
        let expected = format!("maps: {}/{name} {state}", self.namespace);
        self.expect_events(&[&expected]).await
    }

    /// The next event as `FEED: TEXT`.
    async fn next_event(&mut self) -> Result<String> {
        let (feed, event) = timeout(SOON, self.events.recv()).await?.context("the reader has ended")?;
        let text = match event {
            FeedEvent::Served(served) => format!("served as {}/{}", served.version, served.plural),
            FeedEvent::Unreadable(Unreadable::NotServed) => "not served".to_owned(),
            FeedEvent::Unreadable(Unreadable::Forbidden { resource }) => format!("forbidden: {resource}"),
            FeedEvent::Unreadable(Unreadable::NotConnected) => "not connected".to_owned(),
            FeedEvent::Unreadable(Unreadable::NotInInput) => "not in input".to_owned(),
            FeedEvent::Unreadable(Unreadable::InvalidInput) => "invalid input".to_owned(),
            FeedEvent::Unreadable(Unreadable::Failing { why }) => format!("failing: {why}"),
            FeedEvent::ListStarted => "listing".to_owned(),
            FeedEvent::Restored => "restored".to_owned(),
            FeedEvent::ListCompleted => "listed".to_owned(),
            FeedEvent::Deleted(name) => format!("{name} deleted"),
            FeedEvent::Applied(name, seen) => {
                format!("{name} {}", seen.facts.labels.get("state").unwrap_or("applied"))
            }
        };
        Ok(format!("{feed}: {text}"))
    }

    /// Creates a ConfigMap, not through the proxy, and returns its resourceVersion.
    async fn create(&self, name: &str) -> Result<u64> {
        let map = json!({ "metadata": { "name": name, "labels": { "state": "old" } } });
        let map = self.maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
        Ok(map.resource_version().context("an object has a version")?.parse()?)
    }

    async fn change(&self, name: &str) -> Result<()> {
        let change = Patch::Merge(json!({ "metadata": { "labels": { "state": "new" } } }));
        self.maps.patch(name, &PatchParams::default(), &change).await?;
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.maps.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The number of list requests for ConfigMaps.
    fn list_count(&self) -> usize {
        self.proxy.count(&lists())
    }

    /// The number of watch requests for ConfigMaps.
    fn watch_count(&self) -> usize {
        self.proxy.count(&watches())
    }
}

/// Settings with short timeouts and pauses.
fn quick() -> ReaderSettings {
    ReaderSettings {
        watch_timeout: Duration::from_mins(1)..=Duration::from_mins(1),
        // Long enough for a busy machine.
        watch_timeout_grace: Duration::from_secs(10),
        response_timeout: Duration::from_secs(10),
        backoff: BackoffLimits { first: Duration::from_millis(10), longest: Duration::from_millis(200) },
        discovery_interval: Duration::from_secs(1),
        ..ReaderSettings::default()
    }
}

/// Watches with a timeout of one second.
fn short_watches(settings: &mut ReaderSettings) {
    settings.watch_timeout = Duration::from_secs(1)..=Duration::from_secs(1);
}

fn lists() -> Requests {
    Requests::of(Verb::List, "configmaps")
}

fn watches() -> Requests {
    Requests::of(Verb::Watch, "configmaps")
}
