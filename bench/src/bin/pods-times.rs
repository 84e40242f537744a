//! Measures what it costs a controller to follow the Pods below the members of Applications.
//!
//! Arguments: the controller's binary, the number of Deployments, the number of Deployments in one Application,
//! and the number of Pods of a Deployment.

use std::{
    env,
    io::{Write as _, stderr, stdout},
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use bellwether_bench::{
    Population,
    live::{Process, Reads, Server},
};
use bellwether_testkit::Cluster;
use serde_json::{Value as Json, json};
use tokio::time::sleep;

const REPLICA_SET: &str = include_str!("../../objects/replicaset.json");
const POD: &str = include_str!("../../objects/pod-running.json");

/// The time after which all effects of a change are visible.
const QUIET: Duration = Duration::from_secs(3);

/// The duration of the idle measurement.
const IDLE: Duration = Duration::from_mins(1);

/// The number of changes of Pods that do not affect a status.
const CHANGES: usize = 5_000;

/// The resources that a controller reads here.
const RESOURCES: [&str; 6] =
    ["applications", "healthrules", "deployments", "replicasets", "pods", "endpointslices"];

struct Benchmark {
    cluster: Cluster,
    program: PathBuf,
    server: Server,
    population: Population,
    /// The number of Pods of a Deployment.
    pods: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let program = arguments.next().context("missing argument: path of the controller")?.into();
    let numbers = arguments.map(|argument| argument.to_string_lossy().parse());
    let [deployments, group, pods] = *numbers.collect::<Result<Vec<usize>, _>>()? else {
        bail!("missing arguments: number of Deployments, number in one Application, Pods of each");
    };
    let cluster = Cluster::start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let server = Server::new(cluster.admin().client().await?);
    let population = Population::new(deployments, group)?;
    let benchmark = Benchmark { cluster, program, server, population, pods };
    benchmark.populate().await?;
    for (name, look_below) in [("members", "--look-below=false"), ("pods", "--look-below=true")] {
        benchmark.measure(name, look_below).await?;
    }
    Ok(())
}

impl Benchmark {
    async fn populate(&self) -> Result<()> {
        let Self { server, population, pods, .. } = self;
        writeln!(stderr(), "creating {} Pods", population.objects() * pods)?;
        server.populate(population).await?;
        let (replica_set, pod) = (template(REPLICA_SET)?, template(POD)?);
        let create = async |number: usize| {
            let namespace = Population::namespace(population.application_of(number));
            let apps = format!("/apis/apps/v1/namespaces/{namespace}");
            let name = Population::object_name(number);
            let deployment = server.get(&format!("{apps}/deployments/{name}")).await?;
            let mut object = owned(&replica_set, &format!("{name}-bd45bbb7d"), &deployment);
            object["metadata"]["labels"] = replica_set["metadata"]["labels"].clone();
            let path = format!("{apps}/replicasets");
            let created = create_with_status(server, &path, object).await?;
            let path = format!("/api/v1/namespaces/{namespace}/pods");
            for number in 0..*pods {
                let mut object = owned(&pod, &format!("{name}-bd45bbb7d-{number}"), &created);
                object["metadata"]["labels"] = replica_set["metadata"]["labels"].clone();
                create_with_status(server, &path, object).await?;
            }
            Ok(())
        };
        server.all((0..population.objects()).map(create)).await
    }

    /// Measures a controller from its start.
    async fn measure(&self, name: &str, look_below: &str) -> Result<()> {
        writeln!(stderr(), "{look_below}")?;
        let before = self.reads().await?;
        let controller = Process::start(&self.program, self.cluster.admin(), &[look_below])?;
        let startup = controller.ready().await?;
        sleep(QUIET).await;
        let reads = self.reads().await? - before;
        let started = controller.cpu_seconds()?;
        let (memory, peak) = (controller.memory()?, controller.peak_memory()?);

        let begun = Instant::now();
        sleep(IDLE).await;
        let idle = (controller.cpu_seconds()? - started) / begun.elapsed().as_secs_f64();
        let later = self.reads().await? - before;

        let (writes, busy) = (controller.metric("bellwether_writes_total").await?, controller.cpu_seconds()?);
        self.touch_pods().await?;
        sleep(QUIET).await;
        let changes = controller.cpu_seconds()? - busy;
        let writes = controller.metric("bellwether_writes_total").await? - writes;
        let after = controller.memory()?;
        controller.stop().await?;

        let line = json!({
            "what": name, "ready_s": startup.as_secs_f64(), "start_cpu_s": started,
            "lists": reads.lists, "list_bytes": reads.bytes, "watches": reads.watches,
            "idle_percent": 100.0 * idle, "idle_lists": later.lists - reads.lists,
            "memory": memory, "peak": peak, "memory_after": after,
            "changes": CHANGES, "change_cpu_s": changes, "writes": writes,
        });
        writeln!(stdout(), "{line}")?;
        Ok(())
    }

    async fn reads(&self) -> Result<Reads> {
        self.server.reads(&RESOURCES).await
    }

    /// Sets `lastProbeTime` of a condition, as a kubelet does that finds nothing to change.
    async fn touch_pods(&self) -> Result<()> {
        let touch = async |number: usize| {
            let deployment = number % self.population.objects();
            let namespace = Population::namespace(self.population.application_of(deployment));
            let name = Population::object_name(deployment);
            let pod = number / self.population.objects() % self.pods;
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}-bd45bbb7d-{pod}/status");
            let mut conditions = template(POD)?["status"]["conditions"].take();
            conditions[0]["lastProbeTime"] = json!(jiff::Timestamp::now().to_string());
            self.server.merge(&path, &json!({ "status": { "conditions": conditions } })).await
        };
        self.server.all((0..CHANGES).map(touch)).await
    }
}

/// A recorded object without what the API server sets, and without volumes, which admission of service
/// accounts adds.
fn template(text: &str) -> Result<Json> {
    let mut object: Json = serde_json::from_str(text)?;
    if object["kind"] == "Pod"
        && let Some(spec) = object["spec"].as_object_mut()
    {
        spec.retain(|field, _| {
            !["volumes", "serviceAccount", "serviceAccountName"].contains(&field.as_str())
        });
        for container in spec.get_mut("containers").and_then(Json::as_array_mut).into_iter().flatten() {
            container["volumeMounts"] = json!([]);
        }
    }
    Ok(object)
}

/// The template under a new name, controlled by the owner.
fn owned(template: &Json, name: &str, owner: &Json) -> Json {
    let mut object = template.clone();
    object["metadata"] = json!({
        "name": name,
        "annotations": template["metadata"]["annotations"],
        "ownerReferences": [{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }],
    });
    object
}

async fn create_with_status(server: &Server, path: &str, mut object: Json) -> Result<Json> {
    let status = object["status"].take();
    server.post(path, &object).await?;
    let path = format!("{path}/{}", object["metadata"]["name"].as_str().context("the object has no name")?);
    server.merge(&format!("{path}/status"), &json!({ "status": status })).await?;
    server.get(&path).await
}
