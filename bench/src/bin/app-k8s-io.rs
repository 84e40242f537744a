//! Compares with the controller of app.k8s.io, and races it.
//!
//! `app-k8s-io OLD OURS MODULE compare|race`: the two programs, and the directory of the former's Go module.

use std::{env, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use bellwether_bench::app_k8s_io::{Subjects, compare, race};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let mut next = || arguments.next().map(PathBuf::from).context("give OLD OURS MODULE compare|race");
    let subjects = Subjects { old: next()?, ours: next()?, module: next()? };
    let told = match next()?.to_str() {
        Some("compare") => compare(&subjects).await?,
        Some("race") => race(&subjects).await?,
        _ => bail!("give compare or race"),
    };
    print(&told);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "what was found is what this program is for")]
fn print(text: &str) {
    println!("{text}");
}
