//! Measures the latency and the writes of a change to one of many components of a Rollup, on a real control
//! plane.
//!
//! Arguments: the controller's binary, the number of components, and the number of changes.

use std::{
    env,
    io::{Write as _, stderr, stdout},
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use bellwether_bench::{
    live::{Process, Server},
    umbrella::{self, name},
};
use bellwether_testkit::Cluster;
use serde_json::json;
use tokio::time::sleep;

const TIMEOUT: Duration = Duration::from_mins(2);
/// Longer than a second, because the rate limit of the outbox must not affect the latency.
const PAUSE: Duration = Duration::from_millis(1200);
const ROLLUP: &str = "/apis/bellwether.dev/v1alpha1/rollups/umbrella";

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let program: PathBuf = arguments.next().context("missing argument: path of the controller")?.into();
    let numbers = arguments.map(|argument| argument.to_string_lossy().parse());
    let [components, changes] = *numbers.collect::<Result<Vec<usize>, _>>()? else {
        bail!("missing arguments: number of components, number of changes");
    };
    let cluster = Cluster::start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let server = Server::new(cluster.admin().client().await?);
    let path = server.serve_components().await?;
    writeln!(stderr(), "creating {components} components")?;
    let set_status = async |number: usize, ready: bool| {
        server
            .merge(&format!("{path}/{}/status", name(number)), &json!({"status": umbrella::status(ready)}))
            .await
    };
    server
        .all((0..components).map(async |number| {
            server.post(&path, &umbrella::component(number)).await?;
            set_status(number, true).await
        }))
        .await?;
    server.post("/apis/bellwether.dev/v1alpha1/rollups", &umbrella::rollup()).await?;

    let controller = Process::start(&program, cluster.admin(), &[])?;
    controller.ready().await?;
    let health_is = async |health: &str| -> Result<()> {
        let begun = Instant::now();
        while server.get(ROLLUP).await?["status"]["health"] != health {
            ensure!(begun.elapsed() < TIMEOUT, "the Rollup did not become {health}");
        }
        Ok(())
    };
    health_is("Healthy").await?;
    let before = controller.metric("bellwether_writes_total").await?;
    let mut times = Vec::new();
    for change in 0..changes {
        // A prime, so that consecutive changes are far apart in the list.
        let (number, ready) = (change / 2 * 7919 % components, change % 2 == 1);
        sleep(PAUSE).await;
        set_status(number, ready).await?;
        let begun = Instant::now();
        health_is(if ready { "Healthy" } else { "Error" }).await?;
        times.push(begun.elapsed());
    }
    let writes = controller.metric("bellwether_writes_total").await? - before;
    let memory = controller.memory()?;
    controller.stop().await?;
    times.sort_unstable();
    let longest = times.last().copied().unwrap_or_default();
    let half = times.get(changes / 2).copied().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "the number of changes is small")]
    let each = writes / changes.max(1) as f64;
    let line = json!({
        "components": components, "changes": changes, "half_ms": half.as_secs_f64() * 1e3,
        "longest_ms": longest.as_secs_f64() * 1e3, "writes": each, "memory": memory,
    });
    writeln!(stdout(), "{line}")?;
    Ok(())
}
