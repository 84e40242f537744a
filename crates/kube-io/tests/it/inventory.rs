//! The inventory against real API servers: clusters come, change and go while the controller loop runs.

mod cluster_profiles;
mod connections;
mod faults;
mod files;
mod secrets;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bellwether_api::crds;
use bellwether_engine::{Cluster as ClusterKey, ClusterStatus, Engine, GroupKind, GroupSamples};
use bellwether_kube_io::{
    controller_loop::ControllerLoop,
    inventory::{InventorySettings, KubeconfigCluster},
    leader_election::Leadership,
    metrics::Metrics,
    read::ReaderSettings,
    write::Recorder,
};
use bellwether_testkit::{Access, Cluster, TIMEOUT, eventually, shared};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Namespace, Secret},
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};

/// A loop whose hub is the shared cluster, with an inventory in a namespace of its own. In each cluster, it watches the
/// ConfigMaps of this namespace.
struct InventoryFixture {
    hub: &'static Cluster,
    namespace: String,
    secrets: Api<Secret>,
    metrics: Arc<Metrics>,
    /// Keeps the loop leading.
    _leadership: watch::Sender<Leadership>,
    task: JoinHandle<()>,
}

impl InventoryFixture {
    /// `clusters` are watched if the inventory has them.
    async fn start(purpose: &str, clusters: &[&str]) -> Result<Self> {
        Self::with_settings(purpose, clusters, |_| {}).await
    }

    async fn with_settings(
        purpose: &str,
        clusters: &[&str],
        change: impl FnOnce(&mut InventorySettings),
    ) -> Result<Self> {
        let maps = GroupKind::new("", "ConfigMap");
        let engine = clusters.iter().fold(Engine::of_one_namespace(), |engine, name| {
            engine.with_feeds_in(&ClusterKey::named(name), [maps.clone()])
        });
        Self::with_engine(purpose, engine, change).await
    }

    async fn with_engine(
        purpose: &str,
        engine: Engine,
        change: impl FnOnce(&mut InventorySettings),
    ) -> Result<Self> {
        let access = shared::cluster().await?.admin();
        Self::with_access(purpose, engine, access, change).await
    }

    /// `access`: to the hub.
    async fn with_access(
        purpose: &str,
        engine: Engine,
        access: &Access,
        change: impl FnOnce(&mut InventorySettings),
    ) -> Result<Self> {
        let hub = shared::cluster().await?;
        hub.install(&crds()).await?;
        let namespace = hub.namespace(purpose).await?;
        let client = access.client().await?;
        let until = Instant::now() + Duration::from_hours(1);
        let (sender, leadership) = watch::channel(Leadership::Leading { since: Timestamp::now(), until });
        let reader = ReaderSettings { namespace: Some(namespace.clone()), ..ReaderSettings::default() };
        let mut settings = InventorySettings {
            namespace: namespace.clone(),
            clusters: Vec::new(),
            access_providers: None,
            allow_insecure: false,
            max_connecting: 20,
            probe_interval: Duration::from_secs(1),
            reader: reader.clone(),
        };
        change(&mut settings);
        let recorder = Recorder::start(client.clone(), "test");
        let mut controller_loop = ControllerLoop::new(engine, client.clone(), reader, leadership, recorder);
        controller_loop.start_inventory(settings);
        let metrics = Arc::clone(controller_loop.metrics());
        let task = tokio::spawn(controller_loop.run(std::future::pending()));
        let secrets = Api::namespaced(client, &namespace);
        Ok(Self { hub, namespace, secrets, metrics, _leadership: sender, task })
    }

    fn cluster(&self, name: &str) -> Option<ClusterStatus> {
        let clusters = self.metrics.stats().clusters.into_iter();
        clusters.filter(|(cluster, _)| cluster.name() == name).map(|(_, status)| status).next()
    }

    fn metric(&self, name: &str) -> Option<f64> {
        let text = self.metrics.text(&GroupSamples::default()).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    fn objects(&self) -> usize {
        self.metrics.stats().objects
    }

    /// Creates or replaces the Secret of a cluster.
    async fn register(&self, name: &str, labels: Value, kubeconfig: &str) -> Result<()> {
        let mut labels: BTreeMap<String, String> = serde_json::from_value(labels)?;
        labels.insert("bellwether.dev/cluster".to_owned(), name.to_owned());
        let data = BTreeMap::from([("kubeconfig".to_owned(), ByteString(kubeconfig.as_bytes().to_vec()))]);
        let mut secret = Secret { data: Some(data), ..Secret::default() };
        secret.metadata.name = Some(name.to_owned());
        secret.metadata.labels = Some(labels);
        match self.secrets.get_opt(name).await? {
            None => self.secrets.create(&PostParams::default(), &secret).await?,
            Some(_) => self.secrets.replace(name, &PostParams::default(), &secret).await?,
        };
        Ok(())
    }

    async fn forget(&self, name: &str) -> Result<()> {
        self.secrets.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until the status of a cluster satisfies `is_so`.
    async fn cluster_is(&self, name: &str, what: &str, is_so: impl Fn(&ClusterStatus) -> bool) -> Result<()> {
        eventually(TIMEOUT, &format!("cluster {name}: {what}"), async || {
            Ok(self.cluster(name).is_some_and(|status| is_so(&status)))
        })
        .await
        .with_context(|| format!("the last status: {:?}", self.cluster(name).map(without_kinds)))
    }

    async fn is_read(&self, name: &str) -> Result<()> {
        self.cluster_is(name, "identified and connected", |status| {
            status.uid.is_some() && status.last_heard.is_some() && status.disconnected_since.is_none()
        })
        .await
    }

    async fn objects_are(&self, count: usize) -> Result<()> {
        eventually(TIMEOUT, &format!("{count} objects are known"), async || Ok(self.objects() == count))
            .await
            .with_context(|| format!("last: {}", self.objects()))
    }
}

impl Drop for InventoryFixture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn without_kinds(mut status: ClusterStatus) -> ClusterStatus {
    status.kinds = Arc::default();
    status
}

async fn create_map(cluster: &Cluster, namespace: &str, name: &str) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.admin().client().await?, namespace);
    let map = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    maps.create(&PostParams::default(), &map).await?;
    Ok(())
}

/// Like [`Cluster::namespace`], with this name.
async fn create_namespace(cluster: &Cluster, name: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(cluster.admin().client().await?);
    let namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    Ok(())
}

async fn uid_of(cluster: &Cluster) -> Result<String> {
    let namespaces: Api<Namespace> = Api::all(cluster.admin().client().await?);
    eventually(TIMEOUT, "kube-system exists", async || {
        Ok(namespaces.get_opt("kube-system").await?.is_some())
    })
    .await?;
    namespaces.get("kube-system").await?.uid().context("an object has a uid")
}
