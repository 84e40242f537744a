//! A hub behind a fault proxy, and clusters that share one API server: each is another name for it, with a proxy of
//! its own if a test breaks it alone.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use bellwether_testkit::{Access, Cluster, FaultProxy, Requests, Verb};
use http::Method;
use serde_json::{Value, json};

use super::{
    super::{
        Controller,
        combined_status::{registration, rows_of, spokes},
    },
    namespace_actions::{COMBINED_STATUSES, DEPLOYMENTS, SECRETS, TestNamespace},
    observer::{Observer, Revision},
};

const OWN: &str = "/apis/bellwether.dev/v1alpha1";

pub(super) const RESULTS: &str = "combinedstatuses.bellwether.dev";

/// The collector of all policies: the name of the cluster, whether it is stale, and `status.replicas`.
pub(super) const COLLECTOR: &str = "replicas";

/// A Deployment that is bound in all tests.
const FENCE: &str = "fence";

pub(super) struct FleetFixture {
    pub(super) hub: Cluster,
    /// Before the hub.
    pub(super) proxy: FaultProxy,
    /// In the hub.
    pub(super) namespace: TestNamespace,
    /// The namespace of the same name in all clusters.
    pub(super) spoke: TestNamespace,
    /// Of the CombinedStatuses.
    pub(super) observer: Observer,
    fences: AtomicU64,
}

impl FleetFixture {
    /// Without clusters.
    pub(super) async fn new(name: &str) -> Result<Self> {
        let (hub, [spoke, ..]) = (Cluster::start().await?, spokes().await?);
        hub.install(&bellwether_api::crds()).await?;
        let namespace = TestNamespace::new(&hub, name).await?;
        let spoke = TestNamespace::named(spoke, &namespace.name).await?;
        let observer = Observer::of_resources(&namespace, &[COMBINED_STATUSES]).await?;
        let proxy = FaultProxy::before(&hub).await?;
        let fixture = Self { hub, proxy, namespace, spoke, observer, fences: AtomicU64::new(0) };
        let columns = json!([
            {"name": "cluster", "def": "inventory.name"}, {"name": "stale", "def": "propagation.stale"},
            {"name": "replicas", "def": "returned.status.replicas"},
        ]);
        fixture.collector(COLLECTOR, json!({"select": columns, "limit": 100})).await?;
        fixture.deployment(FENCE).await?;
        fixture.policy(FENCE, "10m", json!({"statusCollectors": [COLLECTOR]})).await?;
        Ok(fixture)
    }

    /// Registers a cluster, `c1` for 0, or changes how it is reached.
    pub(super) async fn register(&self, number: usize, access: &Access) -> Result<()> {
        self.register_with(number, &access.kubeconfig()).await
    }

    pub(super) async fn register_with(&self, number: usize, kubeconfig: &str) -> Result<()> {
        let secret = serde_json::from_str(&registration(number, kubeconfig, "edge"))?;
        self.namespace.apply(&self.namespace.path(SECRETS, None), &secret).await
    }

    /// The API server of all clusters.
    pub(super) async fn spoke() -> Result<&'static Cluster> {
        let [spoke, ..] = spokes().await?;
        Ok(spoke)
    }

    pub(super) fn arguments(&self) -> [&str; 3] {
        ["--namespace", &self.namespace.name, "--probe-interval=1s"]
    }

    /// Starts a controller behind the proxy, without leader election.
    pub(super) fn launch(&self, more: &[&str]) -> Result<Controller> {
        self.launch_via(&self.proxy, &[&["--leader-elect=false"], more].concat())
    }

    /// Starts a controller behind another proxy.
    pub(super) fn launch_via(&self, proxy: &FaultProxy, more: &[&str]) -> Result<Controller> {
        Controller::launch(&self.hub.admin().via(proxy.address()), &[&self.arguments(), more].concat())
    }

    pub(super) async fn collector(&self, name: &str, spec: Value) -> Result<()> {
        self.own("StatusCollector", "statuscollectors", name, spec).await
    }

    /// A policy that binds the Deployment of its own name to all clusters.
    pub(super) async fn policy(&self, name: &str, threshold: &str, more: Value) -> Result<()> {
        let mut clause = json!({
            "apiGroup": "apps", "resources": ["deployments"], "namespaces": [self.namespace.name],
            "objectNames": [name],
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            clause[field] = value.clone();
        }
        let spec = json!({
            "clusterSelectors": [{"matchLabels": {"tier": "edge"}}], "downsync": [clause],
            "stalenessThreshold": threshold,
        });
        self.own("BindingPolicy", "bindingpolicies", name, spec).await
    }

    pub(super) async fn own(&self, kind: &str, plural: &str, name: &str, spec: Value) -> Result<()> {
        let object = json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        self.namespace.apply(&format!("{OWN}/{plural}"), &object).await
    }

    pub(super) async fn get_own(&self, plural: &str, name: &str) -> Result<Value> {
        self.namespace.request(Method::GET, &format!("{OWN}/{plural}/{name}"), &Value::Null).await
    }

    pub(super) async fn delete_own(&self, plural: &str, name: &str) -> Result<()> {
        self.namespace.request(Method::DELETE, &format!("{OWN}/{plural}/{name}"), &json!({})).await.map(drop)
    }

    /// Creates a Deployment in the hub and in the clusters, where it has one replica.
    pub(super) async fn deployment(&self, name: &str) -> Result<()> {
        self.namespace.unowned_deployment(name, name).await?;
        self.spoke.unowned_deployment(name, name).await?;
        self.report(name, 1).await
    }

    /// Writes the status of a Deployment in all clusters.
    pub(super) async fn report(&self, deployment: &str, replicas: u64) -> Result<()> {
        self.spoke.report(DEPLOYMENTS, deployment, json!({"replicas": replicas})).await.map(drop)
    }

    /// Waits until the CombinedStatus of a Deployment satisfies `is_so`, and returns it.
    pub(super) async fn combined_is(
        &self,
        deployment: &str,
        what: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let found =
            |observer: &Observer| of(observer, deployment).map(|last| last.object).filter(|last| is_so(last));
        let until = self.observer.until(&format!("{deployment}: {what}"), found).await;
        until.with_context(|| {
            let last = of(&self.observer, deployment).map(|last| last.object).unwrap_or_default();
            format!("the last was {:#}", json!([last["clusters"], rows_of(&last, COLLECTOR)]))
        })
    }

    pub(super) async fn rows_are(&self, deployment: &str, rows: Value) -> Result<()> {
        let what = format!("the rows are {rows}");
        self.combined_is(deployment, &what, |status| rows_of(status, COLLECTOR) == rows).await.map(drop)
    }

    pub(super) async fn has_no_combined(&self, deployment: &str) -> Result<()> {
        let is_so = |observer: &Observer| of(observer, deployment).is_none().then_some(());
        self.observer.until(&format!("{deployment} has no CombinedStatus"), is_so).await
    }

    /// Changes the fence, and waits until it shows in this many clusters: the controller has listed everything, and
    /// has started every write that was due before.
    pub(super) async fn fence(&self, clusters: usize) -> Result<()> {
        let replicas = self.fences.fetch_add(1, Ordering::Relaxed) + 2;
        self.report(FENCE, replicas).await?;
        let rows = (1..=clusters).map(|number| json!([format!("c{number}"), false, replicas]));
        self.rows_are(FENCE, rows.collect()).await
    }

    /// The requests of this kind, without those for the fence.
    pub(super) fn count(&self, requests: &Requests) -> usize {
        let fence = of(&self.observer, FENCE).map(|fence| fence.name).unwrap_or_default();
        self.proxy.count(requests) - self.proxy.count(&requests.clone().name(&fence))
    }

    /// All writes but those for the fence and Events.
    pub(super) fn writes(&self) -> usize {
        self.count(&Requests::writes())
            - self.proxy.count(&Requests::of(Verb::Create, "events.events.k8s.io"))
    }
}

/// The CombinedStatus of a Deployment.
pub(super) fn of(observer: &Observer, deployment: &str) -> Option<Revision> {
    let mut present = observer.present(COMBINED_STATUSES.plural).into_values();
    present.find(|revision| is_of(revision, deployment))
}

pub(super) fn is_of(revision: &Revision, deployment: &str) -> bool {
    revision.object["metadata"]["labels"]["status.bellwether.dev/name"] == deployment
}
