//! BindingPolicies, StatusCollectors and CombinedStatuses: a hub and three clusters.

use bellwether_testkit::Part;

use super::*;

const STALENESS: &str = "10s";

/// Clusters that no test breaks.
pub(super) async fn spokes() -> Result<&'static [Cluster; 3]> {
    static SPOKES: OnceCell<Result<[Cluster; 3]>> = OnceCell::const_new();
    let start = async || {
        let (a, b, c) = tokio::try_join!(Cluster::start(), Cluster::start(), Cluster::start())?;
        Ok([a, b, c])
    };
    let spokes = SPOKES.get_or_init(start).await;
    spokes.as_ref().map_err(|error: &anyhow::Error| anyhow!("the clusters did not start: {error:#}"))
}

/// A namespace of this test in the hub and in each cluster, and a controller that knows the clusters by Secrets.
pub(super) struct Fleet {
    pub(super) hub: ControllerFixture,
    spokes: Vec<ControllerFixture>,
    pub(super) controller: Controller,
}

impl Fleet {
    /// The Secrets have the label `tier: edge`.
    pub(super) async fn new(hub: &Cluster, name: &str, clusters: &[&Cluster]) -> Result<Self> {
        hub.install(&bellwether_api::crds()).await?;
        let fixture = ControllerFixture::in_cluster(hub, name).await?;
        let mut spokes = Vec::new();
        for (number, cluster) in clusters.iter().enumerate() {
            let kubectl = Kubectl::new(cluster.admin())?;
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": fixture.namespace}});
            kubectl.ok_with_input(&["apply", "-f", "-"], &namespace.to_string()).await?;
            let kubectl = kubectl.in_namespace(&fixture.namespace);
            spokes.push(ControllerFixture { kubectl, namespace: fixture.namespace.clone() });
            fixture.apply(&registration(number, &cluster.admin().kubeconfig(), "edge")).await?;
        }
        let controller = Controller::start(
            hub.admin(),
            &["--leader-elect=false", "--namespace", &fixture.namespace, "--probe-interval=1s"],
        )
        .await?;
        Ok(Self { hub: fixture, spokes, controller })
    }

    /// In the hub and in every cluster.
    pub(super) async fn apply_everywhere(&self, manifest: &str) -> Result<()> {
        self.hub.apply(manifest).await?;
        for spoke in &self.spokes {
            spoke.apply(manifest).await?;
        }
        Ok(())
    }

    pub(super) async fn available(&self, spoke: usize, deployment: &str, available: u32) -> Result<()> {
        let status = json!({
            "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": available,
            "availableReplicas": available,
        });
        self.spokes[spoke].report(&format!("deployment/{deployment}"), status).await
    }

    /// All CombinedStatuses in the namespace.
    async fn combined(&self) -> Result<Vec<Value>> {
        let list = self.hub.get("combinedstatuses").await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Waits until the only CombinedStatus is so, and returns it.
    async fn combined_is(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Vec::new();
        eventually(TIMEOUT, what, async || {
            last = self.combined().await?;
            Ok(last.len() == 1 && is_so(&last[0]))
        })
        .await
        .with_context(|| format!("the last were {:#}\n{}", json!(last), self.controller.log_since_start()))?;
        Ok(last.remove(0))
    }

    /// Waits until a collector has these rows.
    async fn rows_are(&self, collector: &str, rows: &Value) -> Result<()> {
        self.combined_is(&format!("{collector} has {rows}"), |status| rows_of(status, collector) == *rows)
            .await
            .map(drop)
    }

    /// `bound`, `reporting`, `stale`, `missing`.
    async fn counts_are(&self, counts: [u32; 4]) -> Result<Value> {
        let fields = ["bound", "reporting", "stale", "missing"];
        let of = |status: &Value| fields.map(|field| status["clusters"][field].clone());
        self.combined_is(&format!("clusters are {counts:?}"), |status| of(status) == counts.map(Value::from))
            .await
    }

    async fn policy_is(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<()> {
        let mut status = Value::Null;
        eventually(TIMEOUT, &format!("{name}: {what}"), async || {
            status = self.hub.get(&format!("bindingpolicy/{name}")).await?["status"].take();
            Ok(is_so(&status))
        })
        .await
        .with_context(|| format!("the last status was {status:#}"))
    }
}

/// A Secret for the cluster `c1`, `c2`, ….
pub(super) fn registration(number: usize, kubeconfig: &str, tier: &str) -> String {
    let name = format!("c{}", number + 1);
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "labels": {"bellwether.dev/cluster": name, "tier": tier}},
        "stringData": {"kubeconfig": kubeconfig},
    })
    .to_string()
}

/// The rows of a result as lists of values; null if the collector has no result.
pub(super) fn rows_of(status: &Value, collector: &str) -> Value {
    let mut results = status["results"].as_array().into_iter().flatten();
    let Some(result) = results.find(|result| result["name"] == collector) else { return Value::Null };
    let cell = |cell: &Value| match text(&cell["type"]).as_str() {
        "Number" => serde_json::from_str(&text(&cell["number"])).unwrap_or_default(),
        kind => cell[kind.to_lowercase()].clone(),
    };
    let rows = result["rows"].as_array().into_iter().flatten();
    rows.map(|row| row["columns"].as_array().into_iter().flatten().map(cell).collect::<Value>()).collect()
}

pub(super) fn deployment(name: &str) -> String {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    })
    .to_string()
}

pub(super) fn collector(name: &str, spec: &Value) -> String {
    own("StatusCollector", name, spec)
}

pub(super) fn own(kind: &str, name: &str, spec: &Value) -> String {
    json!({"apiVersion": "bellwether.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
        .to_string()
}

pub(super) fn policy(name: &str, namespace: &str, clause: Value) -> String {
    let mut clause = clause;
    clause["namespaces"] = json!([namespace]);
    let spec = json!({
        "clusterSelectors": [{"matchLabels": {"tier": "edge"}}], "downsync": [clause],
        "stalenessThreshold": STALENESS,
    });
    own("BindingPolicy", name, &spec)
}

/// The examples of the proposal from which the kind comes.
fn examples() -> Vec<(&'static str, Value)> {
    let path = |path: &str| json!({"op": "Path", "path": path});
    let count = json!([{"name": "count", "type": "COUNT"}]);
    vec![
        ("num-wecs", json!({"combinedFields": count})),
        (
            "stale-ones",
            json!({
                "filter": path("$.propagation.stale"),
                "select": [{"name": "name", "def": path("$.inventory.name")}],
            }),
        ),
        (
            "pod-phase",
            json!({"groupBy": [{"name": "phase", "def": path("$.status.phase")}], "combinedFields": count}),
        ),
        (
            "available-replicas",
            json!({
                "groupBy": [{"name": "numAvailable", "def": path("$.status.availableReplicas")}],
                "combinedFields": count,
            }),
        ),
        (
            "sad-ones",
            json!({
                "filter": {"op": "Not", "args": [
                    {"op": "Equal", "args": [path("$.spec.replicas"), path("$.status.availableReplicas")]},
                ]},
                "select": [{"name": "wec", "def": path("$.inventory.name")}],
            }),
        ),
        (
            "full-status",
            json!({"select": [
                {"name": "wec", "def": path("$.inventory.name")}, {"name": "status", "def": path("$.status")},
            ]}),
        ),
    ]
}

/// One after the other, on one hub: control planes are expensive.
#[tokio::test]
async fn objects_in_three_clusters_are_combined() -> Result<()> {
    let hub = Cluster::builder().controllers().start().await?;
    let fleet = Fleet::new(&hub, "combined", &spokes().await?.each_ref()).await?;
    the_state_of_a_deployment_in_three_clusters(&fleet).await.context("a Deployment")?;
    fleet.hub.kubectl("delete deployment web").await?;
    pods_are_counted_by_phase(&fleet).await.context("Pods")?;
    fleet.hub.kubectl("delete bindingpolicy pods").await?;
    cluster_scoped_objects_are_reported_in_a_namespace_of_their_own(&fleet)
        .await
        .context("PriorityClasses")?;
    what_others_do_to_a_combined_status_is_undone(&fleet).await.context("other writers")
}

async fn the_state_of_a_deployment_in_three_clusters(fleet: &Fleet) -> Result<()> {
    fleet.apply_everywhere(&deployment("web")).await?;
    for (spoke, available) in [3, 3, 1].into_iter().enumerate() {
        fleet.available(spoke, "web", available).await?;
    }
    for (name, spec) in examples() {
        fleet.hub.apply(&collector(name, &spec)).await?;
    }
    let names: Vec<_> = examples().into_iter().map(|(name, _)| name).collect();
    let clause = json!({"apiGroup": "apps", "resources": ["deployments"], "statusCollectors": names});
    let bind = |clause: Value| policy("web", &fleet.hub.namespace, clause);
    fleet.hub.apply(&bind(clause.clone())).await?;
    let status = fleet.counts_are([3, 3, 0, 0]).await?;
    assert_eq!(rows_of(&status, "num-wecs"), json!([[3]]));
    assert_eq!(rows_of(&status, "stale-ones"), json!([]));
    assert_eq!(rows_of(&status, "pod-phase"), json!([[null, 3]]), "a Deployment has no phase");
    assert_eq!(rows_of(&status, "available-replicas"), json!([[1, 1], [3, 2]]));
    assert_eq!(rows_of(&status, "sad-ones"), json!([["c3"]]));
    let full = rows_of(&status, "full-status");
    assert_eq!((&full[0][0], &full[0][1]["availableReplicas"]), (&json!("c1"), &json!(3)));
    fleet.policy_is("web", "is complete", |status| status["objects"] == 1 && status["clusters"] == 3).await?;

    // A change in one cluster.
    fleet.available(2, "web", 3).await?;
    fleet.rows_are("sad-ones", &json!([])).await?;
    // The object in the hub.
    fleet.hub.patch("deployment/web", json!({"spec": {"replicas": 4}})).await?;
    fleet.rows_are("sad-ones", &json!([["c1"], ["c2"], ["c3"]])).await?;
    // A cluster leaves and comes back.
    let tier =
        async |tier: &str| fleet.hub.kubectl(&format!("label --overwrite secret c2 tier={tier}")).await;
    tier("core").await?;
    fleet.counts_are([2, 2, 0, 0]).await?;
    tier("edge").await?;
    fleet.counts_are([3, 3, 0, 0]).await?;
    // The policy names fewer collectors.
    let mut fewer = clause.clone();
    fewer["statusCollectors"] = json!(["sad-ones"]);
    fleet.hub.apply(&bind(fewer)).await?;
    fleet
        .combined_is("there is one result", |status| status["results"].as_array().map(Vec::len) == Some(1))
        .await?;
    // A collector reads a field that was not read before.
    let sum = json!({"combinedFields": [{"name": "ready", "type": "SUM", "subject": "returned.status.readyReplicas"}]});
    fleet.hub.kubectl("delete statuscollector sad-ones").await?;
    fleet
        .policy_is("web", "names what is missing", |status| {
            let condition = condition(status, "CollectorsAvailable");
            condition["message"] == "StatusCollector/sad-ones does not exist"
        })
        .await?;
    fleet.hub.apply(&collector("sad-ones", &sum)).await?;
    fleet.rows_are("sad-ones", &json!([[9]])).await?;
    // The reason ends.
    fleet.hub.kubectl("delete bindingpolicy web").await?;
    eventually(TIMEOUT, "the CombinedStatus is gone", async || Ok(fleet.combined().await?.is_empty())).await
}

async fn pods_are_counted_by_phase(fleet: &Fleet) -> Result<()> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    })
    .to_string();
    fleet.hub.kubectl("create serviceaccount default").await.ok();
    for spoke in &fleet.spokes {
        spoke.kubectl("create serviceaccount default").await.ok();
    }
    fleet.apply_everywhere(&pod).await?;
    fleet.spokes[0].report("pod/one", json!({"phase": "Running"})).await?;
    let phases = examples().into_iter().find(|(name, _)| *name == "pod-phase").map(|(_, spec)| spec);
    fleet.hub.apply(&collector("pod-phase", &phases.unwrap_or_default())).await?;
    let clause = json!({"resources": ["pods"], "objectNames": ["one"], "statusCollectors": ["pod-phase"]});
    fleet.hub.apply(&policy("pods", &fleet.hub.namespace, clause)).await?;
    fleet.rows_are("pod-phase", &json!([["Pending", 2], ["Running", 1]])).await
}

async fn cluster_scoped_objects_are_reported_in_a_namespace_of_their_own(fleet: &Fleet) -> Result<()> {
    let class = |name: &str| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7})
            .to_string()
    };
    fleet.apply_everywhere(&class("scoped")).await?;
    fleet
        .hub
        .apply(&collector("num-wecs", &json!({"combinedFields": [{"name": "count", "type": "COUNT"}]})))
        .await?;
    let clause = json!({"resources": ["priorityclasses"], "objectNames": ["scoped"], "statusCollectors": ["num-wecs"]});
    let spec = json!({"clusterSelectors": [{}], "downsync": [clause]});
    fleet.hub.apply(&own("BindingPolicy", "scoped", &spec)).await?;
    let mut last = Value::Null;
    eventually(TIMEOUT, "it is reported", async || {
        let reported = fleet.hub.get("combinedstatuses -n bellwether-report").await?;
        last = reported["items"].get(0).cloned().unwrap_or_default();
        Ok(last["clusters"]["reporting"] == 3)
    })
    .await
    .with_context(|| format!("{last:#}\n{}", fleet.controller.log_since_start()))?;
    assert_eq!(rows_of(&last, "num-wecs"), json!([[3]]));
    assert_eq!(last["metadata"]["ownerReferences"][0]["kind"], "PriorityClass");
    Ok(())
}

fn freshness() -> String {
    collector(
        "freshness",
        &json!({"select": [
            {"name": "cluster", "def": "inventory.name"}, {"name": "stale", "def": "propagation.stale"},
            {"name": "found", "def": "propagation.found"}, {"name": "health", "def": "propagation.health"},
        ]}),
    )
}

#[tokio::test]
async fn a_cluster_stops_returns_and_is_rebuilt() -> Result<()> {
    let [first, ..] = spokes().await?;
    let fickle = Cluster::start().await?;
    let hub = Cluster::start().await?;
    let fleet = Fleet::new(&hub, "fickle", &[first, &fickle]).await?;
    fleet.apply_everywhere(&deployment("web")).await?;
    for spoke in 0..2 {
        fleet.available(spoke, "web", 3).await?;
    }
    fleet.hub.apply(&freshness()).await?;
    let clause = json!({"apiGroup": "apps", "statusCollectors": ["freshness"], "objectNames": ["web"]});
    fleet.hub.apply(&policy("web", &fleet.hub.namespace, clause)).await?;
    let fresh = json!([["c1", false, true, "Ready"], ["c2", false, true, "Ready"]]);
    fleet.rows_are("freshness", &fresh).await?;

    fickle.pause_part(Part::ApiServer)?;
    let stale = json!([["c1", false, true, "Ready"], ["c2", true, true, "Unknown"]]);
    fleet.rows_are("freshness", &stale).await?;
    let status = fleet.counts_are([2, 1, 1, 0]).await?;
    let stale = json!([{"name": "c2", "reason": "Stale"}]);
    assert_eq!(status["clusters"]["notReporting"], stale);
    // The others go on.
    fleet.available(0, "web", 1).await?;
    fleet
        .rows_are("freshness", &json!([["c1", false, true, "InProgress"], ["c2", true, true, "Unknown"]]))
        .await?;
    fleet.available(0, "web", 3).await?;
    fickle.resume_part(Part::ApiServer)?;
    fleet.rows_are("freshness", &fresh).await?;

    // Another cluster under the same name, without the Deployment.
    let rebuilt = Cluster::start().await?;
    fleet.hub.apply(&registration(1, &rebuilt.admin().kubeconfig(), "edge")).await?;
    drop(fickle);
    fleet
        .rows_are("freshness", &json!([["c1", false, true, "Ready"], ["c2", false, false, "Missing"]]))
        .await?;
    fleet.counts_are([2, 1, 0, 1]).await?;
    fleet.hub.kubectl("delete secret c2").await?;
    fleet.counts_are([1, 1, 0, 0]).await.map(drop)
}

async fn what_others_do_to_a_combined_status_is_undone(fleet: &Fleet) -> Result<()> {
    fleet.apply_everywhere(&deployment("api")).await?;
    fleet.hub.apply(&freshness()).await?;
    let clause = json!({"apiGroup": "apps", "statusCollectors": ["freshness"], "objectNames": ["api"]});
    fleet.hub.apply(&policy("api", &fleet.hub.namespace, clause)).await?;
    let before = fleet.counts_are([3, 3, 0, 0]).await?;
    let name = text(&before["metadata"]["name"]);
    fleet
        .hub
        .patch(&format!("combinedstatus/{name}"), json!({"results": [], "clusters": {"bound": 9}}))
        .await?;
    fleet
        .combined_is("it is as before", |status| {
            status["results"] == before["results"] && status["clusters"] == before["clusters"]
        })
        .await?;
    fleet.hub.kubectl(&format!("delete combinedstatus {name}")).await?;
    fleet.combined_is("it is there again", |status| status["results"] == before["results"]).await?;
    // Someone creates one without a reason.
    let stray = json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "CombinedStatus", "metadata": {"name": "stray.x"},
    });
    fleet.hub.apply(&stray.to_string()).await?;
    fleet.hub.is_gone("combinedstatus/stray.x").await?;

    // A restart changes nothing.
    let version = |status: &Value| text(&status["metadata"]["resourceVersion"]);
    let before = fleet.counts_are([3, 3, 0, 0]).await?;
    fleet.controller.0.program.kill();
    fleet.controller.0.start()?;
    fleet.controller.is_ready().await?;
    fleet.available(1, "api", 3).await?;
    let ready = json!([
        ["c1", false, true, "InProgress"],
        ["c2", false, true, "Ready"],
        ["c3", false, true, "InProgress"]
    ]);
    fleet.rows_are("freshness", &ready).await?;
    let after = fleet.combined().await?.remove(0);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_ne!(version(&after), version(&before));

    // With the object, the garbage collector removes it, also while the controller is down.
    fleet.controller.0.program.kill();
    fleet.hub.kubectl("delete deployment api").await?;
    eventually(TIMEOUT, "the CombinedStatus is gone", async || Ok(fleet.combined().await?.is_empty())).await
}

#[tokio::test]
async fn the_status_of_the_only_cluster_is_copied() -> Result<()> {
    let spokes = spokes().await?;
    // Without controllers: they would write the status, too.
    let hub = Cluster::start().await?;
    let fleet = Fleet::new(&hub, "singleton", &[&spokes[0], &spokes[1]]).await?;
    fleet.apply_everywhere(&deployment("web")).await?;
    fleet.available(0, "web", 2).await?;
    fleet.available(1, "web", 1).await?;
    let wanted = |wanted: bool| {
        let clause = json!({
            "apiGroup": "apps", "resources": ["deployments"], "objectNames": ["web"],
            "wantSingletonReportedState": wanted,
        });
        policy("web", &fleet.hub.namespace, clause)
    };
    let web_is = async |label: bool, available: Option<u32>| {
        let mut last = Value::Null;
        eventually(TIMEOUT, &format!("web has {label}, {available:?}"), async || {
            last = fleet.hub.get("deployment/web").await?;
            let is_labelled = last["metadata"]["labels"]["bellwether.dev/singleton-status"] == "true";
            Ok(is_labelled == label
                && last["status"]["availableReplicas"].as_u64() == available.map(u64::from))
        })
        .await
        .with_context(|| format!("the last was {last:#}\n{}", fleet.controller.log_since_start()))
    };
    let tier = async |cluster: &str, tier: &str| {
        fleet.hub.kubectl(&format!("label --overwrite secret {cluster} tier={tier}")).await
    };
    tier("c2", "core").await?;
    fleet.hub.apply(&wanted(true)).await?;
    web_is(true, Some(2)).await?;
    fleet.available(0, "web", 3).await?;
    web_is(true, Some(3)).await?;
    // Two clusters.
    tier("c2", "edge").await?;
    web_is(false, None).await?;
    fleet
        .policy_is("web", "says so", |status| {
            let condition = condition(status, "SingletonsApply");
            condition["status"] == "False" && text(&condition["message"]).contains("is bound to 2 clusters")
        })
        .await?;
    // The other one, then none.
    tier("c1", "core").await?;
    web_is(true, Some(1)).await?;
    tier("c2", "core").await?;
    web_is(false, None).await?;
    tier("c1", "edge").await?;
    web_is(true, Some(3)).await?;
    fleet.hub.apply(&wanted(false)).await?;
    web_is(false, None).await?;
    fleet.hub.apply(&wanted(true)).await?;
    web_is(true, Some(3)).await?;
    // The policy is deleted while the controller is down.
    fleet.controller.0.program.kill();
    fleet.hub.kubectl("delete bindingpolicy web").await?;
    fleet.controller.0.start()?;
    web_is(false, None).await
}
