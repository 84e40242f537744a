//! Writing to real API servers: every change, every way in which it can end, and who leads.

mod changes;
mod events;
mod faults;
mod leading;
mod login;
mod refusals;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bellwether_api::{Application, crds};
use bellwether_engine::{
    Change, Cluster as ClusterName, GroupKind, NamespacedName, ObjectKey, Outcome, Part, ResourceVersion,
    Served, Slot,
};
use bellwether_kube_io::write::{Done, PATIENCE, perform};
use bellwether_testkit::{Cluster, shared};
use bellwether_wire::Attempt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, Client, ResourceExt, api::PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::OnceCell, time::timeout};

/// Longer than anything takes that is not broken.
const SOON: Duration = bellwether_testkit::PATIENCE;

/// Waits for what must not take for ever, even when a test fails.
async fn soon<T>(what: impl Future<Output = T>) -> Result<T> {
    timeout(SOON, what).await.context("it took too long")
}

/// The shared cluster, with our kinds.
async fn cluster() -> Result<&'static Cluster> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let cluster = shared::cluster().await?;
    INSTALLED.get_or_try_init(async || cluster.install(&crds()).await).await?;
    Ok(cluster)
}

/// A namespace, and one who may do everything in it.
struct Stage {
    cluster: &'static Cluster,
    namespace: String,
    client: Client,
}

impl Stage {
    async fn set(purpose: &str) -> Result<Self> {
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

    /// Makes a change to the object of this name.
    async fn perform(&self, what: &What, name: &str, change: &Change) -> Done {
        self.perform_as(&self.client, what, name, change, PATIENCE).await
    }

    async fn perform_as(
        &self,
        client: &Client,
        what: &What,
        name: &str,
        change: &Change,
        within: Duration,
    ) -> Done {
        let attempt = Attempt::new(what.served.clone(), self.slot(what, name), change.clone());
        perform(client, attempt, within).await
    }

    fn slot(&self, what: &What, name: &str) -> Slot {
        let name = NamespacedName::new(&self.namespace, name);
        Slot {
            object: ObjectKey { cluster: ClusterName::hub(), kind: what.kind.clone(), name },
            part: Part::Status,
        }
    }
}

/// A kind, and how it is served.
struct What {
    kind: GroupKind,
    served: Served,
}

impl What {
    fn new(kind: GroupKind, version: &str, plural: &str) -> Self {
        let served = Served {
            version: version.into(),
            versions: [version.into()].into(),
            plural: plural.into(),
            namespaced: true,
            has_status: true,
        };
        Self { kind, served }
    }

    fn applications() -> Self {
        Self::new(GroupKind::own("Application"), "v1alpha1", "applications")
    }

    fn pods() -> Self {
        Self::new(GroupKind::pod(), "v1", "pods")
    }

    fn maps() -> Self {
        Self::new(GroupKind::new("", "ConfigMap"), "v1", "configmaps")
    }
}

/// A status for this very state of an object.
fn status(of: &impl ResourceExt, patch: Value) -> Change {
    Change::Status {
        uid: uid(of),
        version: version(of),
        patch: patch.into(),
        transitions: Box::default(),
        claims: Box::default(),
    }
}

fn create(manifest: Value) -> Change {
    Change::Create { manifest: manifest.into(), owner: "".into(), dry_run: false }
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

/// The end of a change that was done, and left this object as it is now.
fn done(now: &impl ResourceExt) -> Done {
    Outcome::Done(Some(version(now))).into()
}

/// Why a change was refused.
fn refused(done: Done) -> Result<String> {
    match done.outcome {
        Outcome::Refused(why) => Ok(why.to_string()),
        other => bail!("it was not refused, but {other:?}"),
    }
}

/// Why a change failed.
fn failed(done: Done) -> Result<String> {
    match done.outcome {
        Outcome::Failed(why) => Ok(why.to_string()),
        other => bail!("it did not fail, but {other:?}"),
    }
}

fn object<T: DeserializeOwned>(value: Value) -> Result<T> {
    Ok(serde_json::from_value(value)?)
}
