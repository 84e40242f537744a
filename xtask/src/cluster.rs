//! `cargo xtask cluster`: the control planes of the tests, for a developer to play with.

use anyhow::{Context, Result};
use bellwether_testkit::{Binary, Cluster};
use clap::{Args, Subcommand};
use futures::future::try_join_all;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use crate::run::say;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start control planes, print how to reach them, and remove every trace of them on Ctrl-C
    ///
    /// The first is the hub: it has Bellwether's CRDs.
    Up(Up),
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// How many clusters
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    clusters: u8,
    /// How many nodes in each; without nodes there are no controllers either, only an API server
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    nodes: u8,
}

pub(crate) fn run(command: Command) -> Result<()> {
    let Command::Up(up) = command;
    Runtime::new()?.block_on(up.run())
}

impl Up {
    async fn run(self) -> Result<()> {
        // Before the signals are caught: a build of minutes must end when a developer has had enough.
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
        say("\nThe clusters and their files are gone.");
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
        let hub = clusters.first().context("no cluster was asked for")?;
        hub.install(&bellwether_api::crds()).await?;
        Ok(clusters)
    }
}

fn report(clusters: &[Cluster]) -> Result<()> {
    let mut files = Vec::new();
    for cluster in clusters {
        let file = cluster.kubeconfig().display().to_string();
        say(&format!("{:<12} https://{}  {file}", cluster.name(), cluster.address()));
        files.push(file);
    }
    say(&format!(
        "\nIn another shell:\n  export KUBECONFIG={}\n  alias kubectl={}\n  kubectl config get-contexts\n  kubectl explain \
         application.spec --api-version bellwether.dev/v1alpha1\n\nCtrl-C ends it.",
        files.join(":"),
        Binary::Kubectl.find()?.display()
    ));
    Ok(())
}
