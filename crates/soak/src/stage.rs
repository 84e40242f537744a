//! The control plane, the two controllers on it, and all that they may do.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

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
    cast::{self, ANCHOR, Kind, NAMESPACES},
    replica::{Life, Replica},
};

/// How long the control plane may take for what it is asked.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where kinds are defined.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The namespace of the Lease.
const OWN_NAMESPACE: &str = "bellwether-system";

/// A control plane with two controllers.
pub(crate) struct Stage {
    cluster: Cluster,
    client: Client,
    user: Access,
    replicas: [Replica; 2],
    /// The garbage collector, and no other of Kubernetes' controllers: the load plays them.
    collector: Program,
    /// The rights to the kinds of the members, as far as they are granted.
    rights: Mutex<BTreeMap<Kind, Grant>>,
    /// The object that also owns some of the others, in each namespace.
    anchors: BTreeMap<&'static str, String>,
}

impl Stage {
    /// Sets it up, with the program of the controller.
    pub(crate) async fn set_up(program: &Path) -> Result<Self> {
        let cluster = Cluster::builder().name("soak").start().await?;
        cluster.install(&bellwether_api::crds()).await?;
        // The controllers follow this kind too, and must be seen to watch all that they follow.
        cluster.install(&[app_k8s_io()?]).await?;
        cluster.install(&[serde_json::from_value(cast::widget_definition())?]).await?;
        let client = cluster.admin().client().await?;
        let post = async |path: &str, object: &Json| -> Result<Json> {
            let request = Request::post(path).header("content-type", "application/json");
            client.request(request.body(serde_json::to_vec(object)?)?).await.context("cannot set the stage")
        };
        let mut anchors = BTreeMap::new();
        post("/api/v1/namespaces", &json!({ "metadata": { "name": OWN_NAMESPACE } })).await?;
        for name in NAMESPACES {
            post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
            let path = Kind::ConfigMap.place().within(name);
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
        let _for_ever = cluster.grant(&user, None, always).await?;
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

    /// Somebody who may do everything, and whom no fault strikes.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The controllers.
    pub(crate) fn replicas(&self) -> &[Replica; 2] {
        &self.replicas
    }

    /// The identity of the object that also owns some of the others.
    pub(crate) fn anchor(&self, namespace: &str) -> &str {
        self.anchors.get(namespace).map(String::as_str).unwrap_or_default()
    }

    /// Kills a part of the control plane, and has it come back after a while.
    pub(crate) async fn kill(&self, part: Part, away: Duration) -> Result<()> {
        self.cluster.kill_part(part)?;
        sleep(away).await;
        self.cluster.start_part(part).await?;
        self.is_well().await
    }

    /// Freezes a part of the control plane for a while.
    pub(crate) async fn freeze(&self, part: Part, time: Duration) -> Result<()> {
        self.cluster.pause_part(part)?;
        sleep(time).await;
        self.cluster.resume_part(part)?;
        self.is_well().await
    }

    /// Takes the kind of Widgets away, and brings it back after a while.
    pub(crate) async fn take_widgets(&self, away: Duration) -> Result<()> {
        let path = format!("{DEFINITIONS}/{}", Kind::Widget.place().resource());
        self.client.request_text(Request::delete(&path).body(Vec::new())?).await?;
        eventually(PATIENCE, "Widgets are gone", async || {
            let found = self.client.request_text(Request::get(&path).body(Vec::new())?).await;
            Ok(matches!(found, Err(kube::Error::Api(status)) if status.code == 404))
        })
        .await?;
        sleep(away).await;
        self.cluster.install(&[serde_json::from_value(cast::widget_definition())?]).await
    }

    /// Takes the rights to a kind from the controllers, and gives them back after a while.
    pub(crate) async fn take_rights(&self, kind: Kind, away: Duration) -> Result<()> {
        let mut rights = self.rights.lock().await;
        if let Some(grant) = rights.remove(&kind) {
            grant.revoke().await?;
        }
        for replica in &self.replicas {
            // Who watches already may go on.
            replica.proxy().cut_all().await;
        }
        sleep(away).await;
        rights.insert(kind, grant(&self.cluster, &self.user, kind).await?);
        Ok(())
    }

    /// Waits until the API server and its store are well.
    async fn is_well(&self) -> Result<()> {
        eventually(PATIENCE, "the API server is well", async || {
            let ask = self.client.request_text(Request::get("/readyz").body(Vec::new())?);
            Ok(timeout(Duration::from_secs(2), ask).await?? == "ok")
        })
        .await
    }

    /// Has everything run that is meant to.
    pub(crate) async fn mend(&self) -> Result<()> {
        self.is_well().await?;
        if !self.collector.is_running() {
            self.collector.start()?;
        }
        self.replicas.iter().try_for_each(Replica::start)
    }

    /// Looks after the controllers: see [`Replica::look_after`].
    pub(crate) fn look_after(&self, alarms: &Alarms) -> Result<()> {
        self.replicas.iter().try_for_each(|replica| replica.look_after(alarms))
    }

    /// How many changes the controllers have asked for so far, by what they concern. Leases are renewed all the time and do
    /// not count.
    pub(crate) fn writes(&self) -> BTreeMap<String, usize> {
        let mut writes = BTreeMap::new();
        let mut resources = vec!["applications.bellwether.dev/status".to_owned()];
        resources.push("healthrules.bellwether.dev/status".to_owned());
        resources.extend(Kind::ALL.map(|kind| kind.place().resource()));
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

    /// How many lists the controllers have asked for so far.
    pub(crate) fn lists(&self) -> usize {
        let lists = Requests::all().verb(Verb::List);
        self.replicas.iter().map(|replica| replica.proxy().count(&lists)).sum()
    }

    /// All lives of the controllers.
    pub(crate) fn lives(&self) -> Vec<Life> {
        self.replicas.iter().flat_map(Replica::lives).collect()
    }

    /// How often a controller did not come up, because nobody answered.
    pub(crate) fn gave_up(&self) -> usize {
        self.replicas.iter().map(Replica::gave_up).sum()
    }

    /// Writes down what the controllers have said.
    pub(crate) fn save_logs(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory)?;
        for replica in &self.replicas {
            fs::write(directory.join(format!("controller-{}.log", replica.name())), replica.log())?;
        }
        Ok(())
    }
}

async fn grant(cluster: &Cluster, user: &Access, kind: Kind) -> Result<Grant> {
    let place = kind.place();
    let rules = vec![rule(&["get", "list", "watch", "patch"], place.group, &[place.plural])];
    cluster.grant(user, None, rules).await
}
