//! How long a person waits for `bellwether status` on a real control plane, and what it asks of it.
//!
//! The command line has the program, how many objects there are, how many of them belong to one Application, and how often
//! to ask.

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

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let program: PathBuf = arguments.next().context("where is the program?")?.into();
    let numbers = arguments.map(|argument| argument.to_string_lossy().parse());
    let [objects, group, times] = *numbers.collect::<Result<Vec<usize>, _>>()? else {
        bail!("how many objects, how many to an Application, how often?");
    };
    let cluster = Cluster::start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let server = Server::new(cluster.admin().client().await?);
    let population = Population::new(objects, group)?;
    writeln!(stderr(), "creating {objects} objects")?;
    server.populate(&population).await?;
    // A tenth of them is not ready, so that there is something to say.
    server.turn_all(&population, (0..objects).step_by(10 * group), false).await?;

    let kubeconfig = cluster.admin().kubeconfig_file()?;
    let mut seconds = Vec::new();
    let before = server.lists().await?;
    for _ in 0..times {
        let begun = Instant::now();
        let mut command = Command::new(&program);
        command.args(["status", "-A", "--kubeconfig"]).arg(&*kubeconfig).stderr(Stdio::inherit());
        let output = command.output().await?;
        seconds.push(begun.elapsed().as_secs_f64());
        let text = String::from_utf8(output.stdout)?;
        let (all, bad) = (population.applications(), population.applications().div_ceil(10));
        let expected = format!("{bad} in progress, {} ready", all - bad);
        ensure!(
            output.status.code() == Some(1) && text.contains(&expected),
            "it does not say {expected}: {text}"
        );
    }
    let lists = server.lists().await? - before;
    seconds.sort_by(f64::total_cmp);
    tell("best_s", seconds.first().copied().unwrap_or_default())?;
    tell("half_s", seconds.get(times / 2).copied().unwrap_or_default())?;
    tell("worst_s", seconds.last().copied().unwrap_or_default())?;
    #[expect(clippy::cast_precision_loss, reason = "nobody asks so often")]
    tell("lists", lists / times.max(1) as f64)
}

fn tell(figure: &str, value: f64) -> Result<()> {
    writeln!(stdout(), "{}", json!({ "figure": figure, "value": value }))?;
    Ok(())
}
