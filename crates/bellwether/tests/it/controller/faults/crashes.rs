//! Crashes: kill -9 just before a write reaches the API server, or after the write and before its response.

use std::time::Instant;

use anyhow::{Context as _, Result};
use bellwether_testkit::Fault;
use futures::future::try_join_all;
use rstest::rstest;

use super::{FaultFixture, recovered, write_kinds::WriteKind};

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// The request has left the process and never arrives.
    Before,
    /// The API server has made the write, and the controller has no response yet.
    After,
}

/// The next controller completes the kind, and does nothing twice. Each kind of write has a controller of its
/// own, all in parallel, because some wait for a Lease to expire.
#[rstest]
#[case::before(When::Before)]
#[case::after(When::After)]
#[tokio::test]
async fn every_write(#[case] when: When) -> Result<()> {
    let killed =
        |kind| async move { is_killed(kind, when).await.with_context(|| format!("{when:?} {kind}")) };
    try_join_all(WriteKind::ALL.map(killed)).await.map(drop)
}

async fn is_killed(kind: WriteKind, when: When) -> Result<()> {
    let fixture = FaultFixture::new("killed").await?;
    let fault = match when {
        When::Before => Fault::HalfOpen { after_lines: 0 },
        When::After => Fault::HoldResponse,
    };
    let struck = fixture.struck(kind, fault).await?;
    if when == When::After {
        struck.fault.done(1).await;
    }
    struck.controller.program.kill();
    struck.fault.lift();

    let since = Instant::now();
    let controller = fixture.launch(kind.arguments())?;
    let at = fixture.is_done(kind).await?;
    let moment = if when == When::Before { "before" } else { "after" };
    recovered(&format!("kill -9 {moment} {kind}"), since, at)?;
    fixture.check_invariants(controller, 20).await?;
    fixture.is_done_once(kind)
}
