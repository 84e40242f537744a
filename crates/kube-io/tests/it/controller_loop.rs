//! The controller loop against a real API server: identity, discovery and loss of the cluster; effects for a
//! cluster that is not connected.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bellwether_api::crds;
use bellwether_engine::{
    Cluster, ClusterStatus, Dialect, Engine, GroupKind, GroupRef, GroupSamples, NamespacedName, ObjectKey,
    OwnKind, Part, Slot, Write,
};
use bellwether_kube_io::{
    controller_loop::ControllerLoop, leader_election::Leadership, metrics::Metrics, read::ReaderSettings,
    write::Recorder,
};
use bellwether_testkit::{Fault, FaultProxy, Requests, TIMEOUT, Verb, eventually, shared};
use http::StatusCode;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, Client, ResourceExt as _, api::PostParams};
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle};

/// A loop that leads, in one namespace and behind a fault proxy.
struct Running {
    proxy: Option<FaultProxy>,
    metrics: Arc<Metrics>,
    /// Keeps the loop leading.
    _leadership: watch::Sender<Leadership>,
    task: JoinHandle<()>,
}

impl Running {
    async fn start(engine: Engine, namespace: String) -> Result<Self> {
        let cluster = shared::cluster().await?;
        cluster.install(&crds()).await?;
        let proxy = FaultProxy::before(cluster).await?;
        let client = cluster.admin().via(proxy.address()).client().await?;
        let until = Instant::now() + Duration::from_hours(1);
        let (sender, leadership) = watch::channel(Leadership::Leading { since: Timestamp::now(), until });
        let settings = ReaderSettings { namespace: Some(namespace), ..ReaderSettings::default() };
        let recorder = Recorder::start(client.clone(), "test");
        let controller_loop = ControllerLoop::new(engine, client, settings, leadership, recorder);
        let metrics = Arc::clone(controller_loop.metrics());
        let task = tokio::spawn(controller_loop.run(std::future::pending()));
        Ok(Self { proxy: Some(proxy), metrics, _leadership: sender, task })
    }

    fn hub(&self) -> Option<ClusterStatus> {
        let clusters = self.metrics.stats().clusters.into_iter();
        clusters.filter(|(cluster, _)| cluster.is_hub()).map(|(_, status)| status).next()
    }

    fn metric(&self, name: &str) -> Option<f64> {
        let text = self.metrics.text(&GroupSamples::default()).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn admin() -> Result<Client> {
    shared::cluster().await?.admin().client().await
}

#[tokio::test]
async fn the_engine_learns_identity_kinds_and_loss_of_the_cluster() -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(admin().await?);
    eventually(TIMEOUT, "kube-system exists", async || {
        Ok(namespaces.get_opt("kube-system").await?.is_some())
    })
    .await?;
    let uid = namespaces.get("kube-system").await?.uid().context("an object has a uid")?;
    let begun = Timestamp::now();
    let namespace = shared::cluster().await?.namespace("learns").await?;
    let mut running = Running::start(Engine::of_one_namespace(), namespace).await?;
    eventually(TIMEOUT, "the cluster is connected, identified and its kinds are known", async || {
        Ok(running.hub().is_some_and(|hub| {
            hub.uid.as_deref() == Some(&*uid)
                && hub
                    .kinds
                    .served
                    .get(&GroupKind::new("apps", "Deployment"))
                    .is_some_and(|served| &*served.version == "v1")
                && hub.kinds.served.contains_key(&GroupKind::bellwether("Application"))
                && hub.last_heard.is_some_and(|heard| heard >= begun)
                && hub.disconnected_since.is_none()
        }))
    })
    .await?;
    assert_eq!(running.metric(r#"bellwether_cluster_fresh{cluster=""}"#), Some(1.0));

    running.proxy = None;
    eventually(TIMEOUT, "the cluster is lost", async || {
        Ok(running.hub().is_some_and(|hub| hub.disconnected_since.is_some_and(|lost| lost >= begun)))
    })
    .await
}

/// Another cluster may have the same address, and a new cluster has no `kube-system` yet.
#[tokio::test]
async fn the_identity_is_read_again_after_a_reconnect() -> Result<()> {
    let namespace = shared::cluster().await?.namespace("asked-again").await?;
    let running = Running::start(Engine::of_one_namespace(), namespace).await?;
    let proxy = running.proxy.as_ref().context("the proxy runs")?;
    // A cluster of which nothing has been listed cannot be lost.
    eventually(TIMEOUT, "the cluster is identified, and our own kinds are listed", async || {
        let is_known = running.hub().is_some_and(|hub| hub.uid.is_some() && hub.disconnected_since.is_none());
        Ok(is_known && running.metrics.stats().synced)
    })
    .await?;

    let unavailable = Fault::Answer { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: None };
    let outage = proxy.inject(Requests::all(), unavailable);
    proxy.cut_all().await;
    eventually(TIMEOUT, "the cluster is lost", async || {
        Ok(running.hub().is_some_and(|hub| hub.disconnected_since.is_some()))
    })
    .await?;
    let identity = Requests::of(Verb::Get, "namespaces").name("kube-system");
    let not_found =
        proxy.inject(identity, Fault::Answer { status: StatusCode::NOT_FOUND, retry_after: None });
    drop(outage);
    eventually(TIMEOUT, "the cluster is connected again, and its identity was requested twice", async || {
        Ok(running.hub().is_some_and(|hub| hub.disconnected_since.is_none()) && not_found.strikes() > 1)
    })
    .await
}

/// The hub has an object of the same kind, name and uid. It must be neither read nor changed instead.
#[tokio::test]
async fn effects_for_a_cluster_that_is_not_connected_read_and_write_nothing() -> Result<()> {
    let cluster = shared::cluster().await?;
    let namespace = cluster.namespace("unconnected").await?;
    let maps: Api<ConfigMap> = Api::namespaced(admin().await?, &namespace);
    let map = serde_json::from_value(json!({ "metadata": { "name": "kept" } }))?;
    let map = maps.create(&PostParams::default(), &map).await?;
    let uid = map.uid().context("an object has a uid")?;

    let (east, kind) = (Cluster::named("east"), GroupKind::new("", "ConfigMap"));
    let name = NamespacedName::new(&namespace, "kept");
    let group =
        GroupRef::new(OwnKind::Application(Dialect::Bellwether), NamespacedName::new(&namespace, "none"));
    let slot = Slot {
        object: ObjectKey { cluster: east.clone(), kind: kind.clone(), name },
        part: Part::Object(group),
    };
    let engine = Engine::of_one_namespace()
        .with_feeds_in(&east, [kind])
        .with_requested_write(slot, Write::Delete { uid: uid.as_str().into() });
    let running = Running::start(engine, namespace).await?;
    eventually(TIMEOUT, "our own kinds are listed, and the write has failed", async || {
        let failed = running.metric(r#"bellwether_writes_total{outcome="failed"}"#);
        Ok(running.metrics.stats().synced && failed.is_some_and(|failed| failed > 0.0))
    })
    .await?;
    let stats = running.metrics.stats();
    assert!(stats.unlisted_kinds.is_empty(), "the kind is unreadable, not unknown: {stats:?}");
    let proxy = running.proxy.as_ref().context("the loop runs")?;
    assert_eq!(proxy.count(&Requests::all().resource("configmaps")), 0);
    assert_eq!(proxy.count(&Requests::writes()), 0);
    assert_eq!(maps.get("kept").await?.resource_version(), map.resource_version());
    Ok(())
}
