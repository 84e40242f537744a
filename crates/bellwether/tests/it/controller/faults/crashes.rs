//! Crashes: kill -9 just before a write reaches the API server, or after the write and before its response.

use std::time::Instant;

use anyhow::{Context as _, Result};
use bellwether_testkit::Fault;
use futures::future::try_join_all;
use rstest::rstest;

use super::{Stage, recovered, write_kinds::Work};

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// The request has left the process and never arrives.
    Before,
    /// The API server has made the write, and the controller has no response yet.
    After,
}

/// The next controller completes the work, and does nothing twice. Each kind of write has a controller of its
/// own, all in parallel, because some wait for a Lease to expire.
#[rstest]
#[case::before(When::Before)]
#[case::after(When::After)]
#[tokio::test]
async fn every_write(#[case] when: When) -> Result<()> {
    let killed =
        |work| async move { is_killed(work, when).await.with_context(|| format!("{when:?} {work}")) };
    try_join_all(Work::ALL.map(killed)).await.map(drop)
}

async fn is_killed(work: Work, when: When) -> Result<()> {
    let stage = Stage::set("killed").await?;
    let fault = match when {
        When::Before => Fault::HalfOpen { after_lines: 0 },
        When::After => Fault::HoldResponse,
    };
    let struck = stage.struck(work, fault).await?;
    if when == When::After {
        struck.fault.done(1).await;
    }
    struck.controller.program.kill();
    struck.fault.lift();

    let since = Instant::now();
    let controller = stage.launch(work.arguments())?;
    let at = stage.is_done(work).await?;
    let moment = if when == When::Before { "before" } else { "after" };
    recovered(&format!("kill -9 {moment} {work}"), since, at)?;
    stage.ends_well(controller, 20).await?;
    stage.is_done_once(work)
}
