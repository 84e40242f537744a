//! Request counts: no writes without a change, none after a restart, one list and one watch per kind.

use std::{fmt::Write as _, time::Duration};

use anyhow::Result;
use bellwether_testkit::{Cluster, FaultProxy, Requests, Verb};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Controller, ControllerFixture, application, condition, config, text};

/// A cluster whose controller goes through a proxy that counts requests.
struct Counted {
    cluster: Cluster,
    proxy: FaultProxy,
}

impl Counted {
    async fn new(name: &str) -> Result<Self> {
        let cluster = Cluster::builder().name(name).start().await?;
        cluster.install(&bellwether_api::crds()).await?;
        let proxy = FaultProxy::before(&cluster).await?;
        Ok(Self { cluster, proxy })
    }

    async fn controller(&self) -> Result<Controller> {
        Controller::start(&self.cluster.admin().via(self.proxy.address()), &["--leader-elect=false"]).await
    }

    fn writes(&self) -> usize {
        self.proxy.count(&Requests::writes())
    }

    /// The lists and watches of a resource, without the search for singletons, which requests at most one object.
    fn reads(&self, resource: &str) -> (usize, usize) {
        let mut requests = self.proxy.requests();
        requests
            .retain(|request| request.call.resource.as_ref().is_some_and(|it| it.to_string() == resource));
        let of = |verb| requests.iter().filter(move |request| request.call.verb == verb);
        let (searches, lists): (Vec<_>, Vec<_>) =
            of(Verb::List).partition(|request| request.uri.contains("labelSelector"));
        assert!(
            searches.len() <= 1 && searches.iter().all(|search| search.uri.ends_with("limit=1")),
            "{searches:?}"
        );
        (lists.len(), of(Verb::Watch).count())
    }
}

/// Annotations and data of objects, such as heartbeats, cause no writes. Neither does a restart.
#[tokio::test]
async fn nothing_is_written_for_nothing() -> Result<()> {
    let counted = Counted::new("quiet").await?;
    let fixture = ControllerFixture::in_cluster(&counted.cluster, "quiet").await?;
    let controller = counted.controller().await?;
    fixture.apply(&application("shop", "shop", "  components: {mine: {kind: ConfigMap}}")).await?;
    fixture.apply(&config("mine", "shop", Some("shop"))).await?;
    fixture.ready_is("shop", "ComponentsReady").await?;
    fixture.owners_are("configmap/mine", &["shop"]).await?;
    let before = fixture.get("application/shop").await?["status"].take();
    let events = controller.metric("bellwether_objects_decoded_total").await?;
    counted.proxy.forget();

    for number in 0..5 {
        fixture.kubectl(&format!("annotate configmap mine heartbeat={number} --overwrite")).await?;
        fixture.kubectl(&format!("annotate application shop heartbeat={number} --overwrite")).await?;
        fixture.patch("configmap/mine", json!({ "data": { "number": number.to_string() } })).await?;
    }
    // After the controller has seen all changes, leave it time to write.
    bellwether_testkit::eventually(super::TIMEOUT, "all of it is seen", async || {
        Ok(controller.metric("bellwether_objects_decoded_total").await? >= events + 15)
    })
    .await?;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(counted.writes(), 0, "{:#?}", counted.proxy.requests());

    // A restart without changes.
    controller.program.stop().await?;
    let controller = counted.controller().await?;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(counted.writes(), 0, "{:#?}", counted.proxy.requests());
    assert_eq!(fixture.get("application/shop").await?["status"], before);
    drop(controller);
    Ok(())
}

/// An object below a member, with an owner.
fn owned(manifest: &str, owner: (&str, &str), uid: &str) -> String {
    let (api_version, kind) = owner;
    let reference = format!(
        "ownerReferences: [{{apiVersion: {api_version}, kind: {kind}, name: web, uid: {uid}, controller: true}}]"
    );
    manifest.replace("OWNER", &reference)
}

/// Changes below members that say nothing new cause no writes: heartbeats of a Pod that is the cause of a
/// failure, the status of a ReplicaSet, updates of an EndpointSlice.
#[tokio::test]
async fn nothing_is_written_for_nothing_below_members() -> Result<()> {
    let counted = Counted::new("quiet-below").await?;
    let fixture = ControllerFixture::in_cluster(&counted.cluster, "quiet-below").await?;
    let template = "selector: {matchLabels: {run: web}}, template: {metadata: {labels: {run: web}}, spec: {containers: \
                    [{name: server, image: web}]}}";
    let revision = "annotations: {deployment.kubernetes.io/revision: '1'}";
    fixture
        .apply(&format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, labels: {{app: shop}}, {revision}}}, spec: \
             {{{template}}}}}
---
{{apiVersion: v1, kind: Service, metadata: {{name: web, labels: {{app: shop}}}}, spec: {{selector: {{run: web}}, ports: \
             [{{port: 80}}]}}}}
"
        ))
        .await?;
    let status =
        json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1});
    fixture.report("deployment/web", status).await?;
    let uid =
        async |object: &str| -> Result<String> { Ok(text(&fixture.get(object).await?["metadata"]["uid"])) };
    let set = format!(
        "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web, {revision}, OWNER}}, spec: {{{template}}}}}"
    );
    fixture.apply(&owned(&set, ("apps/v1", "Deployment"), &uid("deployment/web").await?)).await?;
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {run: web}, OWNER}, spec: {containers: [{name: \
               server, image: web}]}}";
    fixture.apply(&owned(pod, ("apps/v1", "ReplicaSet"), &uid("replicaset/web").await?)).await?;
    let slice = "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web, labels: \
                 {kubernetes.io/service-name: web}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1], conditions: \
                 {ready: true}}], ports: [{port: 80}]}";
    fixture.apply(slice).await?;
    let pod_status = |number: u32| {
        let probed = format!("2026-01-02T10:00:0{number}Z");
        let since = "2026-01-01T10:00:00Z";
        json!({
            "phase": "Running", "podIP": format!("10.0.0.{number}"),
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady",
                "lastTransitionTime": since, "lastProbeTime": probed}],
            "containerStatuses": [{"name": "server", "image": "web", "imageID": "", "ready": false, "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}],
        })
    };
    fixture.report("pod/web", pod_status(0)).await?;

    let controller = counted.controller().await?;
    let kinds = "[{group: apps, kind: Deployment}, {kind: Service}]";
    fixture.apply(&application("shop", "shop", "").replace("[{kind: ConfigMap}]", kinds)).await?;
    let has_cause = |status: &Value| {
        let objects = status["objects"].as_array();
        status["state"] == "Failed" && objects.into_iter().flatten().any(|it| it["cause"]["name"] == "web")
    };
    fixture.status("shop", "the Pod is the cause", has_cause).await?;
    // The Event of a new failure is recorded later, and noted in the status.
    fixture
        .status("shop", "its Event is recorded", |status| status["lastEvent"]["state"] == "Failed")
        .await?;
    let events = controller.metric("bellwether_objects_decoded_total").await?;
    counted.proxy.forget();

    for number in 1..5 {
        fixture.kubectl(&format!("annotate pod/web heartbeat={number} --overwrite")).await?;
        fixture.report("pod/web", pod_status(number)).await?;
        fixture.report("replicaset/web", json!({"replicas": number, "fullyLabeledReplicas": number})).await?;
        let endpoints = json!([{"addresses": [format!("10.0.0.{number}")], "conditions": {"ready": true}}]);
        fixture.patch("endpointslice/web", json!({ "endpoints": endpoints })).await?;
    }
    // After the controller has seen all changes, leave it time to write.
    bellwether_testkit::eventually(super::TIMEOUT, "all of it is seen", async || {
        Ok(controller.metric("bellwether_objects_decoded_total").await? >= events + 16)
    })
    .await?;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(counted.writes(), 0, "{:#?}", counted.proxy.requests());
    Ok(())
}

/// A thousand Applications over five kinds, with three below them, cause eight lists and eight watches.
#[tokio::test]
async fn a_thousand_applications_share_their_watches() -> Result<()> {
    let counted = Counted::new("thousand").await?;
    let fixture = ControllerFixture::in_cluster(&counted.cluster, "thousand").await?;
    let kinds = "[{kind: ConfigMap}, {kind: Service}, {kind: ServiceAccount}, {group: apps, kind: Deployment}, \
                 {group: batch, kind: Job}]";
    let mut manifests = String::new();
    for number in 0..1000 {
        let app = application(&format!("app-{number}"), &format!("app-{number}"), "");
        write!(manifests, "{}", app.replace("[{kind: ConfigMap}]", kinds))?;
    }
    write!(manifests, "{}", config("mine", "app-500", None))?;
    fixture.kubectl.ok_with_input(&["create", "-f", "-"], &manifests).await?;
    let controller = counted.controller().await?;
    fixture.ready_is("app-500", "ComponentsReady").await?;
    let last = |status: &Value| condition(status, "Ready")["reason"] == "NoComponents";
    fixture.status("app-999", "nothing belongs to it", last).await?;
    for resource in ["configmaps", "services", "serviceaccounts", "deployments.apps", "jobs.batch"] {
        assert_eq!(counted.reads(resource), (1, 1), "{resource}");
    }
    // Plus those below them, six kinds of bellwether.dev, and the Application of app.k8s.io, whose CRD may be
    // installed later.
    for resource in ["pods", "replicasets.apps", "endpointslices.discovery.k8s.io"] {
        assert_eq!(counted.reads(resource), (1, 1), "{resource}");
    }
    assert_eq!(controller.metric("bellwether_kinds_watched").await?, 15);
    Ok(())
}
