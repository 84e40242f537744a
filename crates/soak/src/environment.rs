//! The control plane, two controllers and their rights.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bellwether_testkit::{
    Access, Binary, Cluster, Grant, Part, Program, Requests, Verb, app_k8s_io, eventually, rule,
};
use http::Request;
use kube::Client;
use serde_json::{Value as Json, json};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use crate::{
    alarm::Alarms,
    objects::{self, ANCHOR, Kind, NAMESPACES},
    replica::{Replica, Run},
};

/// How long the control plane may take for a change.
const TIMEOUT: Duration = Duration::from_mins(1);

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The namespace of the Lease.
const OWN_NAMESPACE: &str = "bellwether-system";

pub(crate) struct Environment {
    cluster: Cluster,
    client: Client,
    user: Access,
    replicas: [Replica; 2],
    /// A controller manager with only the garbage collector. The load acts as the other controllers.
    collector: Program,
    /// The grants for the kinds of the members and for those below.
    rights: Mutex<BTreeMap<Kind, Grant>>,
    /// The uid of the anchor in each namespace.
    anchors: BTreeMap<&'static str, String>,
}

impl Environment {
    pub(crate) async fn set_up(program: &Path) -> Result<Self> {
        let cluster = Cluster::builder().name("soak").start().await?;
        cluster.install(&bellwether_api::crds()).await?;
        // The controllers watch this kind too, and `watches_all` requires a watch for every kind.
        cluster.install(&[app_k8s_io()?]).await?;
        cluster.install(&[serde_json::from_value(objects::widget_crd())?]).await?;
        let client = cluster.admin().client().await?;
        let post = async |path: &str, object: &Json| -> Result<Json> {
            let request = Request::post(path).header("content-type", "application/json");
            client
                .request(request.body(serde_json::to_vec(object)?)?)
                .await
                .context("cannot create the initial objects")
        };
        let mut anchors = BTreeMap::new();
        post("/api/v1/namespaces", &json!({ "metadata": { "name": OWN_NAMESPACE } })).await?;
        for name in NAMESPACES {
            post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
            let path = Kind::ConfigMap.api_resource().within(name);
            let anchor = post(&path, &json!({ "metadata": { "name": ANCHOR } })).await?;
            anchors.insert(name, anchor["metadata"]["uid"].as_str().context("no uid")?.to_owned());
        }
        let collector = Program::new(Binary::ControllerManager.find()?)?
            .arguments([
                "--controllers=garbage-collector-controller",
                "--leader-elect=false",
                "--secure-port=0",
            ])
            .arguments(["--kube-api-qps=200", "--kube-api-burst=400"])
            .arguments([format!("--kubeconfig={}", cluster.kubeconfig().display())]);
        collector.start()?;
        let user = cluster.user("controller")?;
        let read = ["get", "list", "watch"];
        let always = vec![
            rule(&read, "bellwether.dev", &["applications", "healthrules", "rollups"]),
            rule(&["patch"], "bellwether.dev", &["applications/status", "healthrules/status"]),
            rule(&read, "app.k8s.io", &["applications"]),
            rule(&read, "apiextensions.k8s.io", &["customresourcedefinitions"]),
            rule(&["create"], "events.k8s.io", &["events"]),
            rule(&["get", "create", "update"], "coordination.k8s.io", &["leases"]),
        ];
        let _permanent = cluster.grant(&user, None, always).await?;
        let mut rights = BTreeMap::new();
        for kind in Kind::ALL {
            rights.insert(kind, grant(&cluster, &user, kind).await?);
        }
        let replicas = [
            Replica::start_first("A", program, &user, &cluster).await?,
            Replica::start_first("B", program, &user, &cluster).await?,
        ];
        Ok(Self { cluster, client, user, replicas, collector, rights: Mutex::new(rights), anchors })
    }

    /// A client of the administrator, without a fault proxy.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn replicas(&self) -> &[Replica; 2] {
        &self.replicas
    }

    /// The uid of the anchor in a namespace.
    pub(crate) fn anchor(&self, namespace: &str) -> &str {
        self.anchors.get(namespace).map(String::as_str).unwrap_or_default()
    }

    /// Kills a part of the control plane and starts it again after `away`.
    pub(crate) async fn kill(&self, part: Part, away: Duration) -> Result<()> {
        self.cluster.kill_part(part)?;
        sleep(away).await;
        self.cluster.start_part(part).await?;
        self.api_server_ready().await
    }

    /// Pauses a part of the control plane for `time`.
    pub(crate) async fn freeze(&self, part: Part, time: Duration) -> Result<()> {
        self.cluster.pause_part(part)?;
        sleep(time).await;
        self.cluster.resume_part(part)?;
        self.api_server_ready().await
    }

    /// Deletes the CRD of Widgets and installs it again after `away`.
    pub(crate) async fn remove_widgets(&self, away: Duration) -> Result<()> {
        let path = format!("{CRDS}/{}", Kind::Widget.api_resource().qualified_name());
        self.client.request_text(Request::delete(&path).body(Vec::new())?).await?;
        eventually(TIMEOUT, "the CRD of Widgets is deleted", async || {
            let found = self.client.request_text(Request::get(&path).body(Vec::new())?).await;
            Ok(matches!(found, Err(kube::Error::Api(status)) if status.code == 404))
        })
        .await?;
        sleep(away).await;
        self.cluster.install(&[serde_json::from_value(objects::widget_crd())?]).await
    }

    /// Revokes the rights of the controllers to a kind and grants them again after `away`.
    pub(crate) async fn revoke_rights(&self, kind: Kind, away: Duration) -> Result<()> {
        let mut rights = self.rights.lock().await;
        if let Some(grant) = rights.remove(&kind) {
            grant.revoke().await?;
        }
        for replica in &self.replicas {
            // Open watches would continue without the rights.
            replica.proxy().cut_all().await;
        }
        sleep(away).await;
        rights.insert(kind, grant(&self.cluster, &self.user, kind).await?);
        Ok(())
    }

    /// Waits until the API server is ready, which includes etcd.
    async fn api_server_ready(&self) -> Result<()> {
        eventually(TIMEOUT, "the API server is ready", async || {
            let ask = self.client.request_text(Request::get("/readyz").body(Vec::new())?);
            Ok(timeout(Duration::from_secs(2), ask).await?? == "ok")
        })
        .await
    }

    /// Starts everything that is not running.
    pub(crate) async fn recover(&self) -> Result<()> {
        self.api_server_ready().await?;
        if !self.collector.is_running() {
            self.collector.start()?;
        }
        self.replicas.iter().try_for_each(Replica::start)
    }

    /// See [`Replica::supervise`].
    pub(crate) fn supervise(&self, alarms: &Alarms) -> Result<()> {
        self.replicas.iter().try_for_each(|replica| replica.supervise(alarms))
    }

    /// The number of write requests of the controllers by resource, without renewals of the Lease.
    pub(crate) fn writes(&self) -> BTreeMap<String, usize> {
        let mut writes = BTreeMap::new();
        let mut resources = vec!["applications.bellwether.dev/status".to_owned()];
        resources.push("healthrules.bellwether.dev/status".to_owned());
        resources.extend(Kind::MEMBERS.map(|kind| kind.api_resource().qualified_name()));
        resources.push("events.events.k8s.io".to_owned());
        for resource in resources {
            let requests = Requests::writes().resource(&resource);
            let count = self.replicas.iter().map(|replica| replica.proxy().count(&requests)).sum();
            writes.insert(resource, count);
        }
        let all =
            self.replicas.iter().map(|replica| replica.proxy().count(&Requests::writes())).sum::<usize>();
        let leases = Requests::writes().resource("leases.coordination.k8s.io");
        let leases = self.replicas.iter().map(|replica| replica.proxy().count(&leases)).sum::<usize>();
        writes.insert("others".to_owned(), all - leases - writes.values().sum::<usize>());
        writes
    }

    /// The number of list requests of the controllers.
    pub(crate) fn lists(&self) -> usize {
        let lists = Requests::all().verb(Verb::List);
        self.replicas.iter().map(|replica| replica.proxy().count(&lists)).sum()
    }

    pub(crate) fn runs(&self) -> Vec<Run> {
        self.replicas.iter().flat_map(Replica::runs).collect()
    }

    /// When controllers were started.
    pub(crate) fn starts(&self) -> Vec<Instant> {
        self.replicas.iter().flat_map(Replica::starts).collect()
    }

    pub(crate) fn failed_starts(&self) -> usize {
        self.replicas.iter().map(Replica::failed_starts).sum()
    }

    pub(crate) fn save_logs(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory)?;
        for replica in &self.replicas {
            fs::write(directory.join(format!("controller-{}.log", replica.name())), replica.log())?;
        }
        Ok(())
    }
}

async fn grant(cluster: &Cluster, user: &Access, kind: Kind) -> Result<Grant> {
    let resource = kind.api_resource();
    let mut verbs = vec!["get", "list", "watch"];
    // Controllers write nothing below members.
    verbs.extend(kind.is_member().then_some("patch"));
    let rules = vec![rule(&verbs, resource.group, &[resource.plural])];
    cluster.grant(user, None, rules).await
}
