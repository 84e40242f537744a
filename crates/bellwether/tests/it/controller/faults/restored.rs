//! A cluster is restored from a backup of etcd while controllers run: its resourceVersions go back.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use bellwether_testkit::{Cluster, FaultProxy, Part, Requests, Verb, eventually};
use serde_json::{Value, json};

use super::super::{Controller, ControllerFixture, TIMEOUT, condition};

const WIDGET: &str = "widget/one";

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, to) = (entry?, to);
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A paused etcd leaves files as after a power failure, from which it starts.
fn back_up(cluster: &Cluster) -> Result<()> {
    cluster.pause_part(Part::Etcd)?;
    let copied = copy(&cluster.directory().join("etcd"), &cluster.directory().join("backup"));
    cluster.resume_part(Part::Etcd)?;
    copied
}

async fn restore(cluster: &Cluster) -> Result<()> {
    cluster.kill_part(Part::ApiServer)?;
    cluster.kill_part(Part::Etcd)?;
    let data = cluster.directory().join("etcd");
    fs::remove_dir_all(&data)?;
    copy(&cluster.directory().join("backup"), &data)?;
    cluster.start_part(Part::Etcd).await?;
    cluster.start_part(Part::ApiServer).await
}

fn ready(status: &str) -> Value {
    json!({ "conditions": [{ "type": "Ready", "status": status, "reason": "Reported", "message": "" }] })
}

/// The API server accepts a watch from a resourceVersion in its future, and sends nothing: only something
/// that is read shows that the versions went back. The leader and the stand-by see it in the Lease, a
/// controller without a Lease in its lists.
#[tokio::test]
async fn a_backup_is_restored_under_running_controllers() -> Result<()> {
    let cluster = super::dead_api_servers::cluster("restored").await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "restored").await?;
    fixture.apply(&super::super::widgets("restored.example.com", "status: {}")).await?;
    let widget =
        "apiVersion: restored.example.com/v1\nkind: Widget\nmetadata: {name: one, labels: {app: shop}}\n";
    eventually(TIMEOUT, "a Widget can be made", async || Ok(fixture.apply(widget).await.is_ok())).await?;
    let kinds = "  components: {}\n";
    let application = super::super::application("shop", "shop", kinds)
        .replace("{kind: ConfigMap}", "{group: restored.example.com, kind: Widget}");
    fixture.apply(&application).await?;
    fixture.report(WIDGET, ready("True")).await?;
    let leader = Controller::start(cluster.admin(), &[]).await?;
    fixture.ready_is("shop", "ComponentsReady").await?;
    let standby = Controller::start(cluster.admin(), &[]).await?;
    // In another namespace, where it has nothing to write.
    let elsewhere = cluster.namespace("elsewhere").await?;
    let arguments = ["--leader-elect=false", "--watch-namespace", &elsewhere];
    let proxy = FaultProxy::before(&cluster).await?;
    let without_lease = Controller::start(&cluster.admin().via(proxy.address()), &arguments).await?;

    back_up(&cluster)?;
    // After the backup, versions and objects go on.
    for number in 0..30 {
        fixture.kubectl(&format!("annotate {WIDGET} number={number} --overwrite")).await?;
    }
    // Enough versions that the cluster does not catch up before lists show that they went back.
    let many: String =
        (0..300).map(|number| super::super::config(&format!("many-{number}"), "none", None)).collect();
    fixture.kubectl.ok_with_input(&["create", "-f", "-"], &many).await?;
    // Only versions that it has read can go back for a controller.
    let lists = Requests::of(Verb::List, "customresourcedefinitions.apiextensions.k8s.io");
    let lists_before = proxy.count(&lists);
    eventually(TIMEOUT, "the versions are read", async || Ok(proxy.count(&lists) > lists_before + 1)).await?;
    let seen = |controller: &Controller| {
        let log = controller.program.log();
        log.contains("the cluster was restored from a backup")
    };
    assert!(!seen(&leader) && !seen(&standby) && !seen(&without_lease), "{}", leader.program.log());
    let version = async || -> Result<u64> {
        let object = fixture.get(WIDGET).await?;
        let version = object["metadata"]["resourceVersion"].as_str().context("a version")?;
        Ok(version.parse()?)
    };
    let before = version().await?;
    restore(&cluster).await?;
    fixture.report(WIDGET, ready("False")).await?;
    assert!(version().await? < before, "the versions went back");

    let is_false = |status: &Value| condition(status, "Ready")["status"] == "False";
    fixture.status("shop", "the Widget is not ready", is_false).await?;
    let path = format!("/readyz/applications/{}/shop", fixture.namespace);
    for controller in [&leader, &standby] {
        controller.probed(&path, 503, |_| true).await?;
    }
    assert!(seen(&leader) && seen(&standby));
    eventually(TIMEOUT, "lists show it, too", async || Ok(seen(&without_lease))).await?;
    fixture.report(WIDGET, ready("True")).await?;
    fixture.ready_is("shop", "ComponentsReady").await?;
    Ok(())
}
