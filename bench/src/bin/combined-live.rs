//! Measures CombinedStatuses in a hub with real or simulated clusters: latency, writes, CPU and memory of a
//! controller.
//!
//! Arguments: the controller's binary, `real` or `simulated`, the number of clusters, the number of Deployments,
//! the number of single changes, and the number of changes in a burst.

use std::{
    env,
    io::{Write as _, stderr, stdout},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use bellwether_bench::{
    live::{CombinedStatuses, Process, Server, SimulatedClusters},
    workload::{NAMESPACE, Workload},
};
use bellwether_testkit::Cluster;
use serde_json::{Value as Json, json};
use tokio::time::sleep;

const TIMEOUT: Duration = Duration::from_mins(3);

/// Discovery is repeated for some seconds after a cluster is connected.
const SETTLED: Duration = Duration::from_secs(20);

/// The time after which all effects of a burst are visible.
const QUIET: Duration = Duration::from_secs(3);

/// The CPU time of a change is measured for this long, and before it that of a controller without changes. Both
/// together are longer than a second, because the rate limit of the outbox must not affect the latency.
const WINDOW: Duration = Duration::from_millis(600);

/// The duration of the idle measurement.
const IDLE: Duration = Duration::from_secs(20);

/// The namespace of the Secrets with the kubeconfigs of the clusters.
const SYSTEM: &str = "bellwether-system";

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let (Some(program), Some(kind)) = (arguments.next(), arguments.next()) else {
        bail!("missing arguments: path of the controller, real or simulated");
    };
    let numbers = arguments.map(|argument| argument.parse());
    let [clusters, deployments, changes, burst] = *numbers.collect::<Result<Vec<usize>, _>>()? else {
        bail!("missing arguments: number of clusters, of Deployments, of changes, of changes in a burst");
    };
    let workload = Workload::new(deployments, clusters)?;
    let mut benchmark = Benchmark::begin(workload, clusters, &kind).await?;
    let figures = benchmark.run(Path::new(&program), changes, burst).await?;
    writeln!(stdout(), "{figures}")?;
    Ok(())
}

struct Benchmark {
    hub: Cluster,
    server: Server,
    fleet: Fleet,
    clusters: usize,
    workload: Workload,
    statuses: CombinedStatuses,
}

/// The clusters that report.
enum Fleet {
    Real(Vec<(Cluster, Server)>),
    Simulated(SimulatedClusters),
}

impl Benchmark {
    /// Creates everything but the controller.
    async fn begin(workload: Workload, clusters: usize, kind: &str) -> Result<Self> {
        let hub = Cluster::start().await?;
        hub.install(&bellwether_api::crds()).await?;
        let server = Server::new(hub.admin().client().await?);
        writeln!(stderr(), "{clusters} {kind} clusters, {} Deployments", workload.deployments())?;
        let fleet = match kind {
            "real" => Fleet::Real(real_clusters(&workload, clusters).await?),
            "simulated" => Fleet::Simulated(SimulatedClusters::start(&workload, clusters, &server).await?),
            _ => bail!("clusters must be real or simulated, not {kind}"),
        };
        create_deployments(&server, &workload).await?;
        server.post("/api/v1/namespaces", &json!({ "metadata": { "name": SYSTEM } })).await?;
        let secrets = format!("/api/v1/namespaces/{SYSTEM}/secrets");
        let secret =
            async |number| server.post(&secrets, &registration(number, &fleet.kubeconfig(number))).await;
        server.all((0..clusters).map(secret)).await?;
        for collector in Workload::collectors() {
            server.post("/apis/bellwether.dev/v1alpha1/statuscollectors", &collector).await?;
        }
        server.post("/apis/bellwether.dev/v1alpha1/bindingpolicies", &Workload::policy()).await?;
        let statuses = CombinedStatuses::begin(&server).await?;
        Ok(Self { hub, server, fleet, clusters, workload, statuses })
    }

    async fn run(&mut self, program: &Path, changes: usize, burst: usize) -> Result<Json> {
        let controller = Process::start(program, self.hub.admin(), &[])?;
        let right = last(&self.all_right().await?, controller.begun());
        let start_cpu = controller.cpu_seconds_of_threads()?;
        sleep(SETTLED).await;
        let start_writes = self.server.combined_status_writes().await?;

        writeln!(stderr(), "idle")?;
        let (begun, before) = (Instant::now(), controller.cpu_seconds_of_threads()?);
        sleep(IDLE).await;
        let idle = (controller.cpu_seconds_of_threads()? - before) / begun.elapsed().as_secs_f64();

        let mut figures = json!({
            "start_s": right, "start_cpu_s": start_cpu, "start_writes": start_writes, "idle_ms": 1e3 * idle,
            "memory": controller.memory()?,
        });
        if changes > 0 {
            figures["single"] = self.single_changes(&controller, changes).await?;
        }
        if burst > 0 {
            figures["burst"] = self.burst(&controller, burst, idle).await?;
        }
        figures["memory_after"] = json!(controller.memory()?);
        controller.stop().await?;
        Ok(figures)
    }

    /// One change after the other.
    async fn single_changes(&mut self, controller: &Process, changes: usize) -> Result<Json> {
        writeln!(stderr(), "{changes} single changes")?;
        let before = self.server.combined_status_writes().await?;
        let (mut requests, mut times, mut cpu) = (Vec::new(), Vec::new(), 0.0);
        for number in 0..changes {
            let idle = controller.cpu_seconds_of_threads()?;
            sleep(WINDOW).await;
            let (begun, busy) = (Instant::now(), controller.cpu_seconds_of_threads()?);
            self.change(number).await?;
            requests.push(begun.elapsed().as_secs_f64());
            times.push(last(&self.all_right().await?, begun));
            sleep(WINDOW.saturating_sub(begun.elapsed())).await;
            cpu += controller.cpu_seconds_of_threads()? - busy - (busy - idle);
        }
        let writes = self.server.combined_status_writes().await? - before;
        Ok(json!({
            "changes": changes, "p50_ms": percentile(&mut times, 50), "p99_ms": percentile(&mut times, 99),
            "max_ms": percentile(&mut times, 100), "request_p50_ms": percentile(&mut requests, 50),
            "writes": writes / float(changes), "cpu_ms": 1e3 * cpu / float(changes),
        }))
    }

    /// All changes at once. `idle` is the CPU time in a second without changes.
    async fn burst(&mut self, controller: &Process, changes: usize, idle: f64) -> Result<Json> {
        writeln!(stderr(), "{changes} changes at once")?;
        sleep(QUIET).await;
        let before = self.server.combined_status_writes().await?;
        let (begun, busy) = (Instant::now(), controller.cpu_seconds_of_threads()?);
        for number in 0..changes {
            self.change(number).await?;
        }
        let sent = begun.elapsed();
        let right = self.all_right().await?;
        let first = right.iter().min().copied().unwrap_or(begun);
        sleep(QUIET).await;
        let cpu = controller.cpu_seconds_of_threads()? - busy - idle * begun.elapsed().as_secs_f64();
        Ok(json!({
            "changes": changes, "sent_s": sent.as_secs_f64(), "first_s": last(&[first], begun),
            "all_s": last(&right, begun), "writes": self.server.combined_status_writes().await? - before,
            "cpu_s": cpu,
        }))
    }

    /// Another number of available replicas of one Deployment in one cluster. Consecutive numbers have other
    /// Deployments, then other clusters.
    async fn change(&mut self, number: usize) -> Result<()> {
        let deployments = self.workload.deployments();
        // A prime, so that consecutive changes are far apart in the list.
        let (deployment, cluster) = (number % deployments, number / deployments * 7919 % self.clusters);
        let available = self.workload.change(deployment, cluster);
        match &self.fleet {
            Fleet::Simulated(clusters) => clusters.report(deployment, cluster, available),
            Fleet::Real(clusters) => {
                let (_, server) = &clusters[cluster];
                server
                    .merge(&status_path(deployment), &json!({ "status": Workload::replicas(available) }))
                    .await
            }
        }
    }

    /// Waits until all CombinedStatuses are right. Returns since when each is.
    async fn all_right(&self) -> Result<Vec<Instant>> {
        let expected = (0..self.workload.deployments())
            .map(|deployment| (Workload::deployment_name(deployment), self.workload.expected(deployment)));
        self.statuses.all_show(&expected.collect(), TIMEOUT).await
    }
}

impl Fleet {
    fn kubeconfig(&self, number: usize) -> String {
        match self {
            Self::Real(clusters) => clusters[number].0.admin().kubeconfig(),
            Self::Simulated(clusters) => clusters.kubeconfig(number),
        }
    }
}

/// Control planes with the Deployments and their statuses.
async fn real_clusters(workload: &Workload, clusters: usize) -> Result<Vec<(Cluster, Server)>> {
    let mut all = Vec::new();
    for number in 0..clusters {
        let cluster = Cluster::start().await?;
        let server = Server::new(cluster.admin().client().await?);
        create_deployments(&server, workload).await?;
        let report = async |deployment| {
            let status = json!({ "status": workload.status(deployment, number)? });
            server.merge(&status_path(deployment), &status).await
        };
        server.all((0..workload.deployments()).map(report)).await?;
        all.push((cluster, server));
    }
    Ok(all)
}

async fn create_deployments(server: &Server, workload: &Workload) -> Result<()> {
    server.post("/api/v1/namespaces", &json!({ "metadata": { "name": NAMESPACE } })).await?;
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    let create = async |deployment| server.post(&path, &workload.manifest(deployment)).await;
    server.all((0..workload.deployments()).map(create)).await
}

fn status_path(deployment: usize) -> String {
    let name = Workload::deployment_name(deployment);
    format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}/status")
}

/// A Secret for a cluster.
fn registration(number: usize, kubeconfig: &str) -> Json {
    let name = Workload::cluster_name(number);
    json!({
        "metadata": { "name": name, "labels": { "bellwether.dev/cluster": name, "tier": "edge" } },
        "stringData": { "kubeconfig": kubeconfig },
    })
}

/// The time from the beginning to the last of these, in seconds.
fn last(times: &[Instant], begun: Instant) -> f64 {
    let last = times.iter().max().copied().unwrap_or(begun);
    last.saturating_duration_since(begun).as_secs_f64()
}

/// The percentile of times in seconds, in milliseconds: of a hundred times, the 99th one at 99 percent.
fn percentile(times: &mut [f64], percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    let rank = (times.len() * percent).div_ceil(100);
    times.get(rank.saturating_sub(1)).map_or(f64::NAN, |time| 1e3 * time)
}

#[expect(clippy::cast_precision_loss, reason = "counts have fewer digits than a float")]
fn float(number: usize) -> f64 {
    number as f64
}
