//! Compares the statuses and the latency of the controller of app.k8s.io with Bellwether's.
//!
//! Usage: `app-k8s-io OLD OURS MODULE compare|race`, with the two binaries and the directory of the old Go
//! module.

use std::{env, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use bellwether_bench::app_k8s_io::{Subjects, compare, race};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let mut next =
        || arguments.next().map(PathBuf::from).context("usage: app-k8s-io OLD OURS MODULE compare|race");
    let subjects = Subjects { old: next()?, ours: next()?, module: next()? };
    let result = match next()?.to_str() {
        Some("compare") => compare(&subjects).await?,
        Some("race") => race(&subjects).await?,
        _ => bail!("unknown command, want compare or race"),
    };
    print(&result);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result of this program")]
fn print(text: &str) {
    println!("{text}");
}
