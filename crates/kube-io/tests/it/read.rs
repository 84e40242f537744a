//! Reading a real API server: what becomes of its objects is told, whatever goes wrong on the way.

mod faults;
mod following;
mod kinds;
mod past;
mod rights;
mod snapshot;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bellwether_engine::{FeedEvent, GroupKind, Lens, Unreadable};
use bellwether_health::user::UserRules;
use bellwether_kube_io::read::{BackoffLimits, Reader, Settings};
use bellwether_testkit::{Access, Cluster, FaultProxy, Requests, Verb, shared};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

/// Longer than anything takes that is not broken.
const SOON: Duration = bellwether_testkit::PATIENCE;

/// The feed that most tests follow.
const MAPS: &str = "maps";

/// A namespace of config maps, one who reads it through a proxy, and what they tell.
struct Stage {
    cluster: &'static Cluster,
    namespace: String,
    proxy: FaultProxy,
    maps: Api<ConfigMap>,
    reader: Reader<&'static str>,
    news: mpsc::Receiver<(&'static str, FeedEvent)>,
}

impl Stage {
    /// With settings for those who are in a hurry.
    async fn set(purpose: &str) -> Result<Self> {
        Self::set_with(purpose, |_| {}).await
    }

    async fn set_with(purpose: &str, change: impl FnOnce(&mut Settings)) -> Result<Self> {
        let cluster = shared::cluster().await?;
        Self::set_for(cluster, cluster.admin(), purpose, change).await
    }

    /// Only this user reads; objects come and go all the same.
    async fn set_for(
        cluster: &'static Cluster,
        user: &Access,
        purpose: &str,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self> {
        let namespace = cluster.namespace(purpose).await?;
        let proxy = FaultProxy::before(cluster).await?;
        let mut settings = quick();
        settings.namespace = Some(namespace.clone());
        change(&mut settings);
        // With room for one, the reader waits for us at every step.
        let (tell, news) = mpsc::channel(1);
        Ok(Self {
            reader: Reader::start(user.via(proxy.address()).client().await?, settings, tell),
            maps: Api::namespaced(cluster.admin().client().await?, &namespace),
            cluster,
            namespace,
            proxy,
            news,
        })
    }

    fn follow(&mut self, feed: &'static str, group: &str, kind: &str) {
        let kind = GroupKind::new(group, kind);
        let lens = Lens::new(&kind, Arc::new(UserRules::default()));
        self.reader.follow(feed, kind, Arc::new(lens));
    }

    /// Follows the config maps, and waits until they are listed.
    async fn follow_maps(&mut self, names: &[&str]) -> Result<()> {
        self.follow(MAPS, "", "ConfigMap");
        self.tells(&["maps: served as v1/configmaps"]).await?;
        self.tells_list(names).await
    }

    /// The next news is this.
    async fn tells(&mut self, expected: &[&str]) -> Result<()> {
        for expected in expected {
            let told = self.told().await.with_context(|| format!("nothing came instead of: {expected}"))?;
            ensure!(told == *expected, "told: {told}; expected: {expected}");
        }
        Ok(())
    }

    /// The next news is a list of these config maps.
    async fn tells_list(&mut self, names: &[&str]) -> Result<()> {
        self.tells(&["maps: listing"]).await?;
        for name in names {
            let expected = format!("maps: {}/{name} old", self.namespace);
            self.tells(&[&expected]).await?;
        }
        self.tells(&["maps: listed"]).await
    }

    /// The next news is of this config map: how it is, or that it is gone.
    async fn tells_of(&mut self, name: &str, how: &str) -> Result<()> {
        let expected = format!("maps: {}/{name} {how}", self.namespace);
        self.tells(&[&expected]).await
    }

    /// The next news in a few words.
    async fn told(&mut self) -> Result<String> {
        let (feed, news) = timeout(SOON, self.news.recv()).await?.context("the reader has ended")?;
        let told = match news {
            FeedEvent::Served(served) => format!("served as {}/{}", served.version, served.plural),
            FeedEvent::Unreadable(Unreadable::NotServed) => "not served".to_owned(),
            FeedEvent::Unreadable(Unreadable::Forbidden { resource }) => format!("forbidden: {resource}"),
            FeedEvent::Unreadable(Unreadable::NotConnected) => "not connected".to_owned(),
            FeedEvent::Unreadable(Unreadable::NotInInput) => "not given".to_owned(),
            FeedEvent::Unreadable(Unreadable::Failing { why }) => format!("failing: {why}"),
            FeedEvent::ListStarted => "listing".to_owned(),
            FeedEvent::Restored => "put back".to_owned(),
            FeedEvent::ListCompleted => "listed".to_owned(),
            FeedEvent::Deleted(name) => format!("{name} gone"),
            FeedEvent::Applied(name, seen) => {
                format!("{name} {}", seen.facts.labels.get("state").unwrap_or("as it is"))
            }
        };
        Ok(format!("{feed}: {told}"))
    }

    /// Makes a config map behind the proxy's back, and says at which version.
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

    /// How many lists of config maps were asked for.
    fn lists(&self) -> usize {
        self.proxy.count(&lists())
    }

    /// How many watches of config maps were asked for.
    fn watches(&self) -> usize {
        self.proxy.count(&watches())
    }
}

fn quick() -> Settings {
    Settings {
        watch_lasts: Duration::from_mins(1)..=Duration::from_mins(1),
        // A busy machine is not a silent one.
        slack: Duration::from_secs(10),
        answers_within: Duration::from_secs(10),
        pauses: BackoffLimits { first: Duration::from_millis(10), longest: Duration::from_millis(200) },
        looks_every: Duration::from_secs(1),
        ..Settings::default()
    }
}

/// Lets watches last a second.
fn short_watches(settings: &mut Settings) {
    settings.watch_lasts = Duration::from_secs(1)..=Duration::from_secs(1);
}

fn lists() -> Requests {
    Requests::of(Verb::List, "configmaps")
}

fn watches() -> Requests {
    Requests::of(Verb::Watch, "configmaps")
}
