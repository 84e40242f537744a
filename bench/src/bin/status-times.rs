//! Measures the duration and the list requests of `bellwether status` on a real control plane.
//!
//! Arguments: the binary, the number of objects, the number of objects in one Application, and the number of
//! runs.

use std::{
    env,
    io::{Write as _, stderr, stdout},
    path::PathBuf,
    process::Stdio,
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};
use bellwether_bench::{Population, live::Server};
use bellwether_testkit::Cluster;
use serde_json::json;
use tokio::process::Command;

const RESOURCES: [&str; 3] = ["applications", "healthrules", "deployments"];

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let program: PathBuf = arguments.next().context("missing argument: path of bellwether")?.into();
    let numbers = arguments.map(|argument| argument.to_string_lossy().parse());
    let [objects, group, times] = *numbers.collect::<Result<Vec<usize>, _>>()? else {
        bail!("missing arguments: number of objects, number in one Application, number of runs");
    };
    let cluster = Cluster::start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let server = Server::new(cluster.admin().client().await?);
    let population = Population::new(objects, group)?;
    writeln!(stderr(), "creating {objects} objects")?;
    server.populate(&population).await?;
    // A tenth of the Applications is not ready, so that the output has causes.
    server.set_all_ready(&population, (0..objects).step_by(10 * group), false).await?;

    let kubeconfig = cluster.admin().kubeconfig_file()?;
    let mut seconds = Vec::new();
    let before = server.reads(&RESOURCES).await?.lists;
    for _ in 0..times {
        let begun = Instant::now();
        let mut command = Command::new(&program);
        command.args(["status", "-A", "--kubeconfig"]).arg(&*kubeconfig).stderr(Stdio::inherit());
        let output = command.output().await?;
        seconds.push(begun.elapsed().as_secs_f64());
        let text = String::from_utf8(output.stdout)?;
        let (all, bad) = (population.applications(), population.applications().div_ceil(10));
        let expected = format!("{bad} InProgress, {} Ready", all - bad);
        ensure!(
            output.status.code() == Some(1) && text.contains(&expected),
            "unexpected output, want {expected}: {text}"
        );
    }
    let lists = server.reads(&RESOURCES).await?.lists - before;
    seconds.sort_by(f64::total_cmp);
    figure("best_s", seconds.first().copied().unwrap_or_default())?;
    figure("half_s", seconds.get(times / 2).copied().unwrap_or_default())?;
    figure("worst_s", seconds.last().copied().unwrap_or_default())?;
    #[expect(clippy::cast_precision_loss, reason = "the number of runs is small")]
    figure("lists", lists / times.max(1) as f64)
}

fn figure(name: &str, value: f64) -> Result<()> {
    writeln!(stdout(), "{}", json!({ "figure": name, "value": value }))?;
    Ok(())
}
