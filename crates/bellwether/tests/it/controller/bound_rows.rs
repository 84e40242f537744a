//! The rows of bound objects over HTTP, and `query --controller`: who may read what, and from where.

use bellwether_testkit::{Login, Part, rule};

use super::{
    combined_status::{Fleet, collector, deployment, policy, spokes},
    *,
};
use crate::bellwether;

/// A user of the hub, by the token.
struct Reader {
    access: Access,
    token: String,
}

impl Reader {
    async fn new(hub: &Cluster, namespace: &str, name: &str) -> Result<Self> {
        let access = hub.service_account(namespace, name).await?;
        let Login::Token { token, .. } = &access.login else { return Err(anyhow!("no token")) };
        Ok(Self { token: token.clone(), access })
    }

    async fn get(&self, controller: &Controller, path: &str) -> Result<(u16, Value)> {
        let (code, body) = controller.get_as(&self.token, path).await?;
        Ok((code, serde_json::from_str(&body).with_context(|| format!("{path}: {code} {body}"))?))
    }

    /// Waits for this response.
    async fn gets(
        &self,
        controller: &Controller,
        path: &str,
        is_so: impl Fn(u16, &Value) -> bool,
    ) -> Result<Value> {
        let mut last = (0, Value::Null);
        eventually(TIMEOUT, path, async || {
            last = self.get(controller, path).await?;
            Ok(is_so(last.0, &last.1))
        })
        .await
        .with_context(|| format!("the last response was {last:#?}\n{}", controller.log_since_start()))?;
        Ok(last.1)
    }

    /// The output of `query --controller`: exit code, stdout and stderr.
    fn query(&self, controller: &Controller, arguments: &[&str]) -> Result<(Option<i32>, String, String)> {
        let address = format!("http://{}", controller.address()?);
        let mut command = bellwether(&["query", "--controller", &address]);
        run(command.args(arguments).env("BELLWETHER_TOKEN", &self.token))
    }
}

fn run(command: &mut std::process::Command) -> Result<(Option<i32>, String, String)> {
    let output = command.output()?;
    Ok((output.status.code(), String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?))
}

/// As `c1 Ready`.
fn rows(body: &Value) -> Vec<String> {
    let rows = body["rows"].as_array().into_iter().flatten();
    rows.map(|row| format!("{} {}", text(&row["cluster"]), text(&row["state"]))).collect()
}

const READ: &[&str] = &["get", "list"];

#[tokio::test]
async fn users_read_rows_of_what_they_may_read() -> Result<()> {
    let [first, ..] = spokes().await?;
    let (fickle, hub) = tokio::try_join!(Cluster::start(), Cluster::start())?;
    let fleet = Fleet::new(&hub, "rows", &[first, &fickle]).await?;
    let namespace = &fleet.hub.namespace;
    fleet.apply_everywhere(&deployment("web")).await?;
    fleet.hub.apply(&deployment("unbound")).await?;
    for (spoke, available) in [3, 1].into_iter().enumerate() {
        fleet.available(spoke, "web", available).await?;
    }
    let available = json!({"select": [
        {"name": "cluster", "def": "inventory.name"}, {"name": "available", "def": "returned.status.availableReplicas"},
    ]});
    fleet.hub.apply(&collector("available", &available)).await?;
    let clause = json!({
        "apiGroup": "apps", "resources": ["deployments"], "objectNames": ["web"], "statusCollectors": ["available"],
    });
    fleet.hub.apply(&policy("web", namespace, clause)).await?;
    let viewer = Reader::new(&hub, namespace, "viewer").await?;
    let right =
        hub.grant(&viewer.access, Some(namespace), vec![rule(READ, "apps", &["deployments"])]).await?;

    rows_are_paged_and_filtered(&fleet, &viewer).await.context("rows")?;
    others_see_nothing(&fleet, &hub, &viewer).await.context("rights")?;
    a_controller_answers_as_the_clusters_do(&fleet, &viewer, [&hub, first, &fickle]).context("query")?;
    a_frozen_cluster_delays_no_other(&fleet, &viewer, &fickle).await.context("a frozen cluster")?;

    right.revoke().await?;
    let web = format!("/api/v1/rows/deployments.apps/{namespace}/web");
    viewer.gets(&fleet.controller, &web, |code, _| code == 404).await.context("revoked")?;

    // Now every client may read.
    fleet.controller.0.program.kill();
    let open = ["--leader-elect=false", "--anonymous-read", "--namespace", namespace];
    let open = Controller::start(hub.admin(), &open).await?;
    let body = open.probed(&web, 200, |body| rows(body).first().is_some_and(|row| row == "c1 Ready")).await?;
    assert_eq!(body["kind"], "Deployment");
    Ok(())
}

async fn rows_are_paged_and_filtered(fleet: &Fleet, viewer: &Reader) -> Result<()> {
    let Fleet { hub, controller, .. } = fleet;
    let place = format!("/api/v1/rows/deployments.apps/{}", hub.namespace);
    let web = format!("{place}/web");
    let body = viewer.gets(controller, &web, |_, body| rows(body) == ["c1 Ready", "c2 InProgress"]).await?;
    let row = &body["rows"][1];
    assert_eq!(
        (&row["found"], &row["stale"], &row["policies"]),
        (&json!(true), &json!(false), &json!(["web"]))
    );
    assert_eq!((&row["clusterLabels"]["tier"], &row["object"]), (&json!("edge"), &Value::Null));
    let get = async |parameters: &str| {
        Ok::<_, anyhow::Error>(viewer.get(controller, &format!("{place}?{parameters}")).await?.1)
    };
    let page = get("limit=1").await?;
    assert_eq!(rows(&page), ["c1 Ready"]);
    let page = get(&format!("limit=1&continue={}", text(&page["continue"]))).await?;
    assert_eq!(rows(&page), ["c2 InProgress"]);
    assert_eq!(rows(&get("state=InProgress,Failed").await?), ["c2 InProgress"]);
    assert_eq!(rows(&get("clusterSelector=bellwether.dev/cluster%3Dc1").await?), ["c1 Ready"]);
    assert!(rows(&get("stale=true").await?).is_empty());
    let full = get("full=true&cluster=c2").await?;
    let object = &full["rows"][0]["object"];
    assert_eq!((&object["kind"], &object["status"]["availableReplicas"]), (&json!("Deployment"), &json!(1)));
    assert_eq!(object["metadata"]["managedFields"], Value::Null);
    let annotations = object["metadata"]["annotations"].as_object();
    assert!(
        annotations.is_none_or(|it| it.keys().all(|key| !key.starts_with("kubectl."))),
        "{annotations:?}"
    );
    let (code, body) = viewer.get(controller, &format!("{place}?clusterSelector=%21%21")).await?;
    assert_eq!(code, 400, "{body}");
    let (code, body) = viewer.get(controller, &format!("{place}/unbound")).await?;
    assert_eq!(code, 404);
    let why = format!("no BindingPolicy binds Deployment {}/unbound: ", hub.namespace);
    assert!(text(&body["message"]).starts_with(&why), "{body}");
    Ok(())
}

async fn others_see_nothing(fleet: &Fleet, hub: &Cluster, viewer: &Reader) -> Result<()> {
    let Fleet { hub: ControllerFixture { namespace, .. }, controller, .. } = fleet;
    let web = format!("/api/v1/rows/deployments.apps/{namespace}/web");
    let (code, body) = controller.get(&web).await?;
    assert!(code == 401 && body.contains("kubectl create token"), "{body}");
    assert_eq!(controller.get_as("no-token", &web).await?.0, 401);
    for elsewhere in ["", "/kube-system", "/kube-system/web"] {
        let (code, _) = viewer.get(controller, &format!("/api/v1/rows/deployments.apps{elsewhere}")).await?;
        assert_eq!(code, 404, "{elsewhere}");
    }
    // Another user of the namespace, and an object that is not there: the same answer.
    let stranger = Reader::new(hub, namespace, "stranger").await?;
    let gone = format!("/api/v1/rows/deployments.apps/{namespace}/gone");
    let (denied, absent) = (stranger.get(controller, &gone).await?, viewer.get(controller, &gone).await?);
    assert_eq!(denied.0, 404);
    assert_eq!(denied, absent);
    assert_eq!(stranger.get(controller, &web).await?.0, 404);
    let (code, _, stderr) =
        stranger.query(controller, &["-n", namespace, "SELECT COUNT(*) FROM deployments"])?;
    assert!(code != Some(0) && stderr.contains("not found"), "{stderr}");
    Ok(())
}

fn a_controller_answers_as_the_clusters_do(
    fleet: &Fleet,
    viewer: &Reader,
    [hub, first, second]: [&Cluster; 3],
) -> Result<()> {
    let Fleet { hub: ControllerFixture { namespace, .. }, controller, .. } = fleet;
    let files = [hub, first, second].map(|cluster| cluster.admin().kubeconfig_file());
    let [hub, first, second] = files;
    let (hub, first, second) = (hub?, first?, second?);
    let [first, second] =
        [("c1", &first), ("c2", &second)].map(|(name, file)| format!("--cluster={name}={}", file.display()));
    let library = format!("{}/../../deploy/collectors/sad-ones.yaml", env!("CARGO_MANIFEST_DIR"));
    let queries: [&[&str]; 5] = [
        // From memory.
        &["SELECT inventory.name, returned.status.availableReplicas FROM deployments/web"],
        &["SELECT propagation.health, COUNT(*) FROM deploy/web GROUP BY 1"],
        // Fields that no collector of the policy reads.
        &["SELECT inventory.name, status.readyReplicas, spec.replicas, $.metadata.name FROM deployments/web"],
        &[
            "SELECT inventory.name, returned.spec.template, propagation.observedGeneration FROM deployments/web",
        ],
        &[&library, "deployments/web"],
    ];
    for query in queries {
        for format in ["table", "wide", "json", "yaml", "csv", "name"] {
            let arguments = [&["-n", namespace, "-o", format][..], query].concat();
            let by_controller = viewer.query(controller, &arguments)?;
            let mut command = bellwether(&["query", "--kubeconfig"]);
            let by_clusters = run(command.arg(&*hub).args([&first, &second]).args(&arguments))?;
            assert_eq!(by_controller, by_clusters, "{arguments:?}");
            assert_eq!(by_controller.0, Some(0), "{arguments:?}");
        }
    }
    let (code, _, stderr) =
        viewer.query(controller, &["-n", namespace, "SELECT COUNT(*) FROM deployments/unbound"])?;
    assert_eq!(code, Some(3));
    assert!(stderr.contains(&format!("no BindingPolicy binds Deployment {namespace}/unbound: ")), "{stderr}");
    Ok(())
}

async fn a_frozen_cluster_delays_no_other(fleet: &Fleet, viewer: &Reader, frozen: &Cluster) -> Result<()> {
    let Fleet { hub: ControllerFixture { namespace, .. }, controller, .. } = fleet;
    frozen.pause_part(Part::ApiServer)?;
    let web = format!("/api/v1/rows/deployments.apps/{namespace}/web");
    let (code, body) = viewer.get(controller, &format!("{web}?full=true")).await?;
    assert_eq!(code, 200);
    assert_eq!(body["rows"][0]["object"]["metadata"]["name"], "web", "{body:#}");
    assert!(text(&body["rows"][1]["error"]).contains("no response"), "{body:#}");
    let stale =
        viewer.gets(controller, &format!("{web}?stale=true"), |_, body| rows(body) == ["c2 Unknown"]).await?;
    let row = &stale["rows"][0];
    assert_eq!(row["reason"], "ClusterUnreachable");
    assert!(text(&row["message"]).contains("; it last reported InProgress: "), "{stale:#}");
    let statement = "SELECT inventory.name, returned.spec.replicas, propagation.stale FROM deployments/web";
    let (code, stdout, stderr) = viewer.query(controller, &["-n", namespace, "-o", "csv", statement])?;
    assert_eq!((code, stdout.lines().nth(1)), (Some(3), Some("c1,3,false")), "{stderr}");
    assert!(stderr.contains("cluster c2: no response"), "{stderr}");
    frozen.resume_part(Part::ApiServer)?;
    viewer.gets(controller, &web, |_, body| rows(body) == ["c1 Ready", "c2 InProgress"]).await.map(drop)
}
