//! Measures nested Rollups, each the only component of the next, on a real control plane: how long the outermost
//! one takes from the start of the controller, and to follow a change of the innermost component.
//!
//! Arguments: the controller's binary, and the number of Rollups.

use std::{
    env,
    io::{Write as _, stdout},
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_bench::{
    live::{Process, Server},
    umbrella::{self, NAMESPACE, name},
};
use bellwether_testkit::Cluster;
use serde_json::{Value as Json, json};
use tokio::time::sleep;

const TIMEOUT: Duration = Duration::from_mins(5);
/// Between two requests for the outermost Rollup.
const PAUSE: Duration = Duration::from_millis(20);
const ROLLUPS: &str = "/apis/bellwether.dev/v1alpha1/rollups";

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let program: PathBuf = arguments.next().context("missing argument: path of the controller")?.into();
    let depth = arguments.next().context("missing argument: number of Rollups")?;
    let depth: usize = depth.to_string_lossy().parse()?;
    let cluster = Cluster::start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let server = Server::new(cluster.admin().client().await?);
    let path = server.serve_components().await?;
    server.post(&path, &umbrella::component(0)).await?;
    let set_ready = async |ready: bool| {
        let status = json!({"status": umbrella::status(ready)});
        server.merge(&format!("{path}/{}/status", name(0)), &status).await
    };
    set_ready(true).await?;
    server.all((0..depth).map(async |number| server.post(ROLLUPS, &nested(number)).await)).await?;

    let controller = Process::start(&program, cluster.admin(), &[])?;
    let top = format!("{ROLLUPS}/level-{}", depth.saturating_sub(1));
    let after = async |health: &str| -> Result<f64> {
        let begun = Instant::now();
        while server.get(&top).await?["status"]["health"] != health {
            ensure!(begun.elapsed() < TIMEOUT, "the outermost Rollup did not become {health}");
            sleep(PAUSE).await;
        }
        Ok(begun.elapsed().as_secs_f64())
    };
    let writes = async || controller.metric("bellwether_writes_total").await;
    let start_s = after("Healthy").await?;
    // Messages may follow.
    sleep(Duration::from_secs(3)).await;
    let start_writes = writes().await?;
    set_ready(false).await?;
    let change_s = after("Error").await?;
    sleep(Duration::from_secs(3)).await;
    let change_writes = writes().await? - start_writes;
    controller.stop().await?;
    let line = json!({
        "depth": depth, "start_s": start_s, "start_writes": start_writes, "change_s": change_s,
        "change_writes": change_writes,
    });
    writeln!(stdout(), "{line}")?;
    Ok(())
}

/// A Rollup of the Rollup before it, the first one of the component.
fn nested(number: usize) -> Json {
    let component = match number.checked_sub(1) {
        Some(before) => {
            json!({"group": "bellwether.dev", "kind": "Rollup", "name": format!("level-{before}")})
        }
        None => json!({"group": "ops.example", "kind": "Engine", "namespace": NAMESPACE, "name": name(0)}),
    };
    json!({
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "Rollup",
        "metadata": {"name": format!("level-{number}")},
        "spec": {"components": [component]},
    })
}
