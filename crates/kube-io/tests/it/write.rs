//! Writes to a real API server: patches, creations, deletions, conflicts (409), rejections, Events, leader
//! election.

mod changes;
mod events;
mod faults;
mod kubeconfig;
mod leader_election;
mod rejections;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bellwether_api::{Application, crds};
use bellwether_engine::{
    Cluster as ClusterName, GroupKind, NamespacedName, ObjectKey, Outcome, Part, ResourceVersion,
    ServedResource, Slot, Write,
};
use bellwether_kube_io::write::{REQUEST_TIMEOUT, WriteResult, perform};
use bellwether_testkit::{Cluster, shared};
use bellwether_wire::Attempt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, Client, ResourceExt, api::PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::OnceCell, time::timeout};

/// The timeout of a test step.
const SOON: Duration = bellwether_testkit::TIMEOUT;

async fn soon<T>(future: impl Future<Output = T>) -> Result<T> {
    timeout(SOON, future).await.context("timed out")
}

/// The shared cluster, with our CRDs.
async fn cluster() -> Result<&'static Cluster> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let cluster = shared::cluster().await?;
    INSTALLED.get_or_try_init(async || cluster.install(&crds()).await).await?;
    Ok(cluster)
}

/// A namespace and an admin client.
struct WriterFixture {
    cluster: &'static Cluster,
    namespace: String,
    client: Client,
}

impl WriterFixture {
    async fn new(purpose: &str) -> Result<Self> {
        let cluster = cluster().await?;
        let namespace = cluster.namespace(purpose).await?;
        Ok(Self { cluster, namespace, client: cluster.admin().client().await? })
    }

    fn applications(&self) -> Api<Application> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn application(&self, name: &str) -> Result<Application> {
        let manifest = object(json!({
            "apiVersion": "bellwether.dev/v1alpha1",
            "kind": "Application",
            "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "componentKinds": [{ "group": "apps", "kind": "Deployment" }],
            },
        }))?;
        Ok(self.applications().create(&PostParams::default(), &manifest).await?)
    }

    async fn map(&self, name: &str) -> Result<ConfigMap> {
        let manifest = object(json!({ "metadata": { "name": name }, "data": { "key": "value" } }))?;
        Ok(self.maps().create(&PostParams::default(), &manifest).await?)
    }

    async fn perform(&self, resource: &Resource, name: &str, change: &Write) -> WriteResult {
        self.perform_as(&self.client, resource, name, change, REQUEST_TIMEOUT).await
    }

    async fn perform_as(
        &self,
        client: &Client,
        resource: &Resource,
        name: &str,
        change: &Write,
        within: Duration,
    ) -> WriteResult {
        let attempt = Attempt::new(resource.served.clone(), self.slot(resource, name), change.clone());
        perform(client, attempt, within).await
    }

    fn slot(&self, resource: &Resource, name: &str) -> Slot {
        let name = NamespacedName::new(&self.namespace, name);
        Slot {
            object: ObjectKey { cluster: ClusterName::hub(), kind: resource.kind.clone(), name },
            part: Part::Status,
        }
    }
}

struct Resource {
    kind: GroupKind,
    served: ServedResource,
}

impl Resource {
    fn new(kind: GroupKind, version: &str, plural: &str) -> Self {
        let served = ServedResource {
            version: version.into(),
            versions: [version.into()].into(),
            plural: plural.into(),
            namespaced: true,
            has_status: true,
        };
        Self { kind, served }
    }

    fn applications() -> Self {
        Self::new(GroupKind::bellwether("Application"), "v1alpha1", "applications")
    }

    fn pods() -> Self {
        Self::new(GroupKind::pod(), "v1", "pods")
    }

    fn maps() -> Self {
        Self::new(GroupKind::new("", "ConfigMap"), "v1", "configmaps")
    }
}

/// A status patch with the UID and the resourceVersion of this object.
fn status(of: &impl ResourceExt, patch: Value) -> Write {
    Write::Status {
        uid: uid(of),
        resource_version: version(of),
        patch: patch.into(),
        transitions: Box::default(),
        owned_kinds: Box::default(),
    }
}

fn create(manifest: Value) -> Write {
    Write::Create { manifest: manifest.into(), owner: "".into(), dry_run: false }
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "none" }] },
    })
}

fn uid(of: &impl ResourceExt) -> Box<str> {
    of.uid().unwrap_or_default().into()
}

fn version(of: &impl ResourceExt) -> ResourceVersion {
    ResourceVersion::new(&of.resource_version().unwrap_or_default())
}

/// The result of a successful write that left this object.
fn done(now: &impl ResourceExt) -> WriteResult {
    Outcome::Written(Some(version(now))).into()
}

/// The message of a rejected write.
fn rejection(done: WriteResult) -> Result<String> {
    match done.outcome {
        Outcome::Rejected(why) => Ok(why.to_string()),
        other => bail!("not rejected: {other:?}"),
    }
}

/// The message of a failed write.
fn failure(done: WriteResult) -> Result<String> {
    match done.outcome {
        Outcome::Failed(why) => Ok(why.to_string()),
        other => bail!("not failed: {other:?}"),
    }
}

fn object<T: DeserializeOwned>(value: Value) -> Result<T> {
    Ok(serde_json::from_value(value)?)
}
