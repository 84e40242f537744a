//! Failed Pods of an old revision do not count after a rollback or the next rollout.

use anyhow::{Context as _, Result};
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    ControllerFixture,
    failing_pods::{becomes, report_pod, waiting},
    text,
};

const BACK_OFF: &str = "ImagePullBackOff";

struct Workload {
    fixture: ControllerFixture,
    kind: &'static str,
}

impl Workload {
    /// Two Pods, ready by kwok.
    async fn new(kind: &'static str, spec: &str) -> Result<Self> {
        let fixture = ControllerFixture::new(&format!("revisions-{}", kind.to_lowercase())).await?;
        fixture
            .apply(&format!(
                "
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {{name: shop}}
spec:
  selector: {{matchLabels: {{app: shop}}}}
  componentKinds: [{{group: apps, kind: {kind}}}]
---
apiVersion: apps/v1
kind: {kind}
metadata: {{name: work, labels: {{app: shop}}}}
spec: {{{spec} selector: {{matchLabels: {{run: work}}}}, template: {{
  metadata: {{labels: {{run: work}}}}, spec: {{containers: [{{name: server, image: 'shop/work:1'}}]}},
}}}}
"
            ))
            .await?;
        let workload = Self { fixture, kind };
        workload.is_ready().await?;
        Ok(workload)
    }

    async fn is_ready(&self) -> Result<Value> {
        let is_ready =
            |status: &Value| status["state"] == "Ready" && status["objects"][0]["status"] == "Ready";
        self.fixture.status("shop", "Ready", is_ready).await
    }

    /// Rolls out an image, to Pods that the scheduler and kwok run or to Pods that nothing runs.
    async fn roll_out(&self, image: &str, runs: bool) -> Result<()> {
        let scheduler = if runs { "default-scheduler" } else { "none" };
        let template = json!({"spec": {
            "schedulerName": scheduler, "containers": [{"name": "server", "image": image}],
        }});
        self.fixture.patch(&format!("{}/work", self.kind), json!({"spec": {"template": template}})).await
    }

    /// Rolls out an image that does not exist, and waits until the Application is Failed. Returns the Pod.
    async fn break_it(&self, image: &str) -> Result<String> {
        self.roll_out(image, false).await?;
        let pod = self.pod(|pod| pod["spec"]["containers"][0]["image"] == image).await?;
        report_pod(&self.fixture, &pod, &waiting(BACK_OFF)).await?;
        becomes(&self.fixture, "Failed", BACK_OFF, Some(BACK_OFF)).await?;
        Ok(pod)
    }

    /// The name of the first Pod like this, as soon as there is one.
    async fn pod(&self, is_it: impl Fn(&Value) -> bool) -> Result<String> {
        let mut name = None;
        bellwether_testkit::eventually(bellwether_testkit::TIMEOUT, "there is such a Pod", async || {
            let pods = self.fixture.get("pods").await?;
            let mut pods = pods["items"].as_array().into_iter().flatten();
            name = pods.find(|pod| is_it(pod)).map(|pod| text(&pod["metadata"]["name"]));
            Ok(name.is_some())
        })
        .await?;
        name.context("no Pod")
    }

    async fn undo(&self) -> Result<()> {
        self.fixture.kubectl(&format!("rollout undo {}/work", self.kind)).await.map(drop)
    }
}

#[rstest]
#[case::deployment("Deployment", "replicas: 2,")]
#[case::stateful_set("StatefulSet", "replicas: 2, serviceName: work, podManagementPolicy: Parallel,")]
#[case::daemon_set("DaemonSet", "")]
#[tokio::test]
async fn a_broken_rollout_is_rolled_back_and_forward(
    #[case] kind: &'static str,
    #[case] spec: &str,
) -> Result<()> {
    let workload = Workload::new(kind, spec).await?;
    workload.break_it("shop/work:tpyo").await?;
    workload.undo().await?;
    workload.is_ready().await?;
    workload.break_it("shop/work:2-tpyo").await?;
    workload.roll_out("shop/work:2", true).await?;
    let status = workload.is_ready().await?;
    assert!(status["objects"][0]["cause"].is_null(), "{status:#}");
    Ok(())
}

/// The controller of ReplicaSets deletes only Pods that are active: evicted Pods stay.
#[tokio::test]
async fn an_evicted_pod_of_an_old_revision_remains() -> Result<()> {
    let workload = Workload::new("Deployment", "replicas: 2,").await?;
    let pod = workload.break_it("shop/work:tpyo").await?;
    let evicted =
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."});
    report_pod(&workload.fixture, &pod, &evicted).await?;
    workload.roll_out("shop/work:2", true).await?;
    workload.is_ready().await?;
    assert!(workload.fixture.exists(&format!("pod/{pod}")).await?);
    // Also while the next rollout is not ready.
    workload.roll_out("shop/work:3", false).await?;
    let status =
        workload.fixture.status("shop", "InProgress", |status| status["state"] == "InProgress").await?;
    assert!(status["objects"][0]["cause"].is_null(), "{status:#}");
    Ok(())
}

/// Where the controller does not replace a failed Pod by itself, a person must delete it.
#[rstest]
#[case::ordered("StatefulSet", "replicas: 2, serviceName: work,")]
#[case::on_delete("DaemonSet", "updateStrategy: {type: OnDelete},")]
#[tokio::test]
async fn a_failed_pod_of_an_old_revision_remains(
    #[case] kind: &'static str,
    #[case] spec: &str,
) -> Result<()> {
    let workload = Workload::new(kind, spec).await?;
    let fixture = &workload.fixture;
    let pod = if kind == "DaemonSet" {
        workload.roll_out("shop/work:tpyo", false).await?;
        let old = workload.pod(|pod| pod["spec"]["containers"][0]["image"] == "shop/work:1").await?;
        fixture.kubectl(&format!("delete pod/{old}")).await?;
        workload.break_it("shop/work:tpyo").await?
    } else {
        workload.break_it("shop/work:tpyo").await?
    };
    workload.undo().await?;
    // It has failed for long: if it counted, the workload would stay Failed.
    let status = fixture.status("shop", "InProgress", |status| status["state"] == "InProgress").await?;
    assert_eq!(status["objects"][0]["status"], "InProgress", "{status:#}");
    let failed = fixture.get(&format!("pod/{pod}")).await?;
    assert_eq!(failed["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], BACK_OFF);
    fixture.kubectl(&format!("delete pod/{pod}")).await?;
    workload.is_ready().await?;
    Ok(())
}
