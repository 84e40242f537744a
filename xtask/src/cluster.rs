//! `cargo xtask cluster`: the control planes of the tests, for interactive use.

use anyhow::{Context, Result};
use bellwether_testkit::{Binary, Cluster};
use clap::{Args, Subcommand};
use futures::future::try_join_all;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use crate::run::log;

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Start control planes and remove them on Ctrl-C
    ///
    /// Prints their kubeconfigs. The first cluster is the hub: Bellwether's CRDs are installed there.
    Up(Up),
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Number of clusters
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    clusters: u8,
    /// Number of nodes in each cluster; without nodes there is only an API server, no controllers
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    nodes: u8,
}

pub(crate) fn run(command: ClusterCommand) -> Result<()> {
    let ClusterCommand::Up(up) = command;
    Runtime::new()?.block_on(up.run())
}

impl Up {
    async fn run(self) -> Result<()> {
        // Before signal handlers are installed: Ctrl-C must end a build, which takes minutes.
        for binary in Binary::ALL {
            binary.find()?;
        }
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        let clusters = tokio::select! {
            clusters = self.start() => clusters?,
            _ = interrupted.recv() => return Ok(()),
            _ = terminated.recv() => return Ok(()),
        };
        report(&clusters)?;
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        drop(clusters);
        log("\nclusters and their files removed");
        Ok(())
    }

    async fn start(&self) -> Result<Vec<Cluster>> {
        let names = (0..self.clusters).map(|number| match number {
            0 => "hub".to_owned(),
            number => format!("cluster-{number}"),
        });
        let clusters =
            try_join_all(names.map(|name| Cluster::builder().name(&name).nodes(self.nodes.into()).start()))
                .await?;
        let hub = clusters.first().context("the number of clusters is 0")?;
        hub.install(&bellwether_api::crds()).await?;
        Ok(clusters)
    }
}

fn report(clusters: &[Cluster]) -> Result<()> {
    let mut files = Vec::new();
    for cluster in clusters {
        let file = cluster.kubeconfig().display().to_string();
        log(&format!("{:<12} https://{}  {file}", cluster.name(), cluster.address()));
        files.push(file);
    }
    log(&format!(
        "\nIn another shell:\n  export KUBECONFIG={}\n  alias kubectl={}\n  kubectl config get-contexts\n  kubectl explain \
         bwapp.spec\n\nPress Ctrl-C to remove the clusters.",
        files.join(":"),
        Binary::Kubectl.find()?.display()
    ));
    Ok(())
}
