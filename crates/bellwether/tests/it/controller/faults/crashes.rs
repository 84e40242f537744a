//! A controller is killed just before a write reaches the API server, or just after it was made and before it knows.

use std::time::Instant;

use anyhow::Result;
use bellwether_testkit::Fault;
use rstest::rstest;

use super::{Stage, recovered, work::Work};

/// When it is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// The write has left the process, and will never arrive.
    Before,
    /// The write is made, and the answer is on its way.
    After,
}

#[rstest]
#[case::status_before(Work::Status, When::Before, "a status")]
#[case::status_after(Work::Status, When::After, "a status")]
#[case::owners_before(Work::Owners, When::Before, "owners")]
#[case::owners_after(Work::Owners, When::After, "owners")]
#[case::pod_tried_before(Work::PodTried, When::Before, "a Pod's trial")]
#[case::pod_tried_after(Work::PodTried, When::After, "a Pod's trial")]
#[case::pod_made_before(Work::PodMade, When::Before, "a Pod's creation")]
#[case::pod_made_after(Work::PodMade, When::After, "a Pod's creation")]
#[case::pod_deleted_before(Work::PodDeleted, When::Before, "a Pod's deletion")]
#[case::pod_deleted_after(Work::PodDeleted, When::After, "a Pod's deletion")]
#[case::event_before(Work::Event, When::Before, "an Event")]
#[case::event_after(Work::Event, When::After, "an Event")]
#[case::lease_taken_before(Work::LeaseTaken, When::Before, "a Lease's creation")]
#[case::lease_taken_after(Work::LeaseTaken, When::After, "a Lease's creation")]
#[case::lease_renewed_before(Work::LeaseRenewed, When::Before, "a Lease's renewal")]
#[case::lease_renewed_after(Work::LeaseRenewed, When::After, "a Lease's renewal")]
#[tokio::test]
async fn it_is_killed(#[case] work: Work, #[case] when: When, #[case] write: &str) -> Result<()> {
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
    let word = if when == When::Before { "before" } else { "after" };
    recovered(&format!("kill -9 {word} {write}"), since, at)?;
    stage.is_done_once(work)?;
    stage.ends_well(controller, 20).await
}
