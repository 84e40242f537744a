//! `bellwether crds`: the CustomResourceDefinitions, applied by kubectl.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use bellwether_testkit::{Kubectl, shared};
use insta::assert_snapshot;
use rstest::rstest;

use crate::{bellwether, run};

#[test]
fn names() {
    assert_snapshot!(run(&["crds", "-o", "name"]));
}

#[rstest]
#[case::yaml("yaml")]
#[case::json("json")]
#[tokio::test]
async fn kubectl_applies_the_output(#[case] format: &str) -> anyhow::Result<()> {
    let cluster = shared::cluster().await?;
    let kubectl = Kubectl::new(cluster.admin())?;
    let printed = run(&["crds", "--output", format]);
    assert_eq!((printed.stderr.as_str(), printed.code), ("", Some(0)));
    let applied = kubectl.ok_with_input(&["apply", "--server-side", "-f", "-"], &printed.stdout).await?;
    assert_eq!(applied.lines().count(), 6, "{applied}");
    assert!(applied.lines().all(|line| line.ends_with("serverside-applied")), "{applied}");
    // The CRDs of the types and of the output are equal.
    cluster.install(&bellwether_api::crds()).await?;
    let again = kubectl.ok_with_input(&["diff", "--server-side", "-f", "-"], &printed.stdout).await?;
    assert_eq!(again, "");
    Ok(())
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let mut child =
        bellwether(&["crds"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut first = String::new();
    let mut stdout = BufReader::with_capacity(8, child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut first).expect("a line");
    drop(stdout);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((first.as_str(), output.status.code(), output.stderr.as_slice()), ("---\n", Some(0), &[][..]));
}
