//! Pod: scheduling, image pulls, crash loops, probes, OOM, completion, eviction.

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::LifecycleFixture;

/// The status of a Pod whose only container is not ready.
fn not_ready(phase: &str, container: Value) -> Value {
    let reason = "ContainersNotReady";
    let message = "containers with unready status: [server]";
    let mut status = json!({ "name": "server", "image": "shop/web:1", "imageID": "", "ready": false });
    if let (Some(status), Value::Object(container)) = (status.as_object_mut(), container) {
        status.extend(container);
    }
    json!({
        "phase": phase,
        "conditions": [
            { "type": "PodScheduled", "status": "True", "lastTransitionTime": "2024-01-01T10:00:00Z" },
            { "type": "Ready", "status": "False", "reason": reason, "message": message,
              "lastTransitionTime": "2024-01-01T10:00:00Z" },
        ],
        "containerStatuses": [status],
    })
}

/// The status of a Pod whose container is waiting.
fn waiting(reason: &str, message: Option<&str>) -> Value {
    let state = json!({ "waiting": { "reason": reason, "message": message } });
    not_ready("Pending", json!({ "restartCount": 0, "state": state }))
}

pub(super) fn image_pull_back_off(image: &str) -> Value {
    let message = format!("Back-off pulling image \"{image}\": ErrImagePull: not found");
    waiting("ImagePullBackOff", Some(&message))
}

/// The state of a terminated container.
pub(super) fn ended(exit_code: i32, reason: &str) -> Value {
    json!({ "terminated": {
        "exitCode": exit_code, "reason": reason, "containerID": "containerd://1",
        "startedAt": "2024-01-01T10:01:00Z", "finishedAt": "2024-01-01T10:02:00Z",
    } })
}

pub(super) fn crash_loop(restarts: u32) -> Value {
    let message = "back-off 1m20s restarting failed container=server pod=web";
    let container = json!({
        "restartCount": restarts,
        "state": { "waiting": { "reason": "CrashLoopBackOff", "message": message } },
        "lastState": ended(1, "Error"),
    });
    not_ready("Running", container)
}

/// The status of a Pod that has failed.
pub(super) fn failed(exit_code: i32) -> Value {
    not_ready("Failed", json!({ "restartCount": 0, "state": ended(exit_code, "Error") }))
}

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, finalizers: [example.com/hold]}
spec:
  schedulerName: no-scheduler
  initContainers: [{name: migrate, image: 'shop/migrate:1'}]
  containers: [{name: server, image: 'shop/web:1'}]
";

const CHOOSY: &str = "
apiVersion: v1
kind: Pod
metadata: {name: choosy}
spec:
  nodeSelector: {disk: golden}
  containers: [{name: server, image: 'shop/web:1'}]
";

const GATED: &str = "
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec:
  schedulingGates: [{name: example.com/licence}]
  containers: [{name: server, image: 'shop/web:1'}]
";

#[tokio::test]
async fn pod() -> Result<()> {
    let mut fixture = LifecycleFixture::new("pod").await?;
    fixture.apply(CHOOSY).await?;
    let (soon, later) = (SignedDuration::from_secs(14), SignedDuration::from_secs(15));
    fixture.is_after(soon, "unschedulable for 14 s", "pod/choosy", "InProgress Unschedulable").await?;
    fixture.is_after(later, "unschedulable for 15 s", "pod/choosy", "Failed Unschedulable").await?;
    fixture.apply(GATED).await?;
    fixture.is("scheduling gate", "pod/gated", "Suspended").await?;
    fixture.patch("pod/gated", json!({ "spec": { "schedulingGates": null } })).await?;
    fixture.is("scheduling gate removed", "pod/gated", "Ready").await?;

    let web = "pod/web";
    fixture.apply(POD).await?;
    fixture.is("not scheduled", web, "InProgress").await?;
    let prepared = json!({
        "phase": "Pending",
        "conditions": [{ "type": "PodScheduled", "status": "True" }],
        "initContainerStatuses": [{
            "name": "migrate", "image": "shop/migrate:1", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": "PodInitializing" } },
        }],
        "containerStatuses": [{
            "name": "server", "image": "shop/web:1", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": "PodInitializing" } },
        }],
    });
    fixture.report(web, prepared).await?;
    fixture.is("scheduled", web, "InProgress").await?;
    let init = |ready: bool, state: Value| {
        json!({ "initContainerStatuses": [{
            "name": "migrate", "image": "shop/migrate:1", "imageID": "", "ready": ready,
            "restartCount": 1, "state": state, "lastState": ended(2, "Error"),
        }] })
    };
    fixture.report(web, init(false, json!({ "waiting": { "reason": "CrashLoopBackOff" } }))).await?;
    fixture.is("init container in CrashLoopBackOff", web, "Failed CrashLoopBackOff").await?;
    fixture.report(web, init(true, ended(0, "Completed"))).await?;
    fixture.is("init container completed", web, "InProgress").await?;
    fixture.report(web, waiting("ErrImagePull", Some("not found"))).await?;
    fixture.is("ErrImagePull", web, "Failed ErrImagePull").await?;
    fixture.report(web, image_pull_back_off("shop/web:1")).await?;
    fixture.is("ImagePullBackOff", web, "Failed ImagePullBackOff").await?;
    fixture.report(web, waiting("CreateContainerConfigError", Some("secret \"db\" not found"))).await?;
    fixture.is("Secret missing", web, "Failed CreateContainerConfigError").await?;
    fixture.report(web, waiting("ContainerCreating", None)).await?;
    fixture.is("Secret created", web, "InProgress PodPending").await?;
    let running = json!({ "restartCount": 0, "started": true, "state": { "running": {} } });
    fixture.report(web, not_ready("Running", running)).await?;
    fixture.is("running", web, "InProgress PodNotReady").await?;
    let ready = json!({ "containerStatuses": [{
        "name": "server", "image": "shop/web:1", "imageID": "", "ready": true, "started": true,
        "restartCount": 0, "state": { "running": {} },
    }], "conditions": [{ "type": "Ready", "status": "True" }] });
    fixture.report(web, ready).await?;
    fixture.is("readiness probe succeeds", web, "Ready").await?;
    fixture.report(web, crash_loop(1)).await?;
    fixture.is("CrashLoopBackOff", web, "Failed CrashLoopBackOff").await?;
    let out_of_memory = |restarts: u32| {
        let container = json!({
            "restartCount": restarts, "started": true, "state": { "running": { "startedAt": Timestamp::now() } },
            "lastState": ended(137, "OOMKilled"),
        });
        not_ready("Running", container)
    };
    fixture.report(web, out_of_memory(1)).await?;
    fixture.is("OOMKilled and restarted", web, "InProgress").await?;
    fixture.report(web, out_of_memory(3)).await?;
    fixture.is("OOMKilled in a crash loop", web, "Failed OOMKilled").await?;
    fixture.kubectl("delete --wait=false pod/web").await?;
    fixture.is("deleted", web, "Terminating").await?;
    fixture.release(web).await?;
    fixture.is_gone("finalizer removed", web).await?;

    fixture.kubectl("run done --image=shop/web:1 --restart=Never").await?;
    fixture.is("another one, restartPolicy Never", "pod/done", "Ready PodReady").await?;
    fixture.deleted("being deleted", "pods/done").await?;
    fixture.report("pod/done", json!({ "phase": "Succeeded" })).await?;
    fixture.is("completed", "pod/done", "Ready Completed").await?;
    fixture.report("pod/done", failed(3)).await?;
    fixture.is("failed", "pod/done", "Failed").await?;
    let evicted = json!({
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
    });
    fixture.report("pod/done", evicted).await?;
    fixture.is("evicted", "pod/done", "Failed Evicted").await?;
    fixture.end("pod");
    Ok(())
}
