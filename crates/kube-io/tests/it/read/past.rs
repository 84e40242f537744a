//! An API server that is behind what is known already.

use anyhow::Result;
use bellwether_testkit::{Fault, Injected, StatusCode};

use super::{Stage, lists, watches};

/// A config map is deleted, and that is known. Then everything must be listed again, by a server that has not heard of it.
async fn behind() -> Result<(Stage, Injected)> {
    let mut stage = Stage::set("past").await?;
    let resource_version = stage.create("lost").await?;
    stage.follow_maps(&["lost"]).await?;
    stage.delete("lost").await?;
    stage.tells_of("lost", "gone").await?;
    let past = stage.proxy.inject(lists(), Fault::Past { resource_version });
    let expired = stage.proxy.inject(watches().times(1), Fault::ErrorEvent(StatusCode::GONE));
    stage.proxy.cut_all().await;
    expired.struck(1).await;
    Ok((stage, past))
}

#[tokio::test]
async fn what_is_gone_does_not_come_back() -> Result<()> {
    let (mut stage, past) = behind().await?;
    past.done(2).await;
    past.lift();
    stage.tells_list(&[]).await?;
    stage.create("new").await?;
    stage.tells_of("new", "old").await
}

/// Five lists in a row are not enough to believe it: an API server may be behind for a while.
#[tokio::test]
async fn a_past_that_stays_for_a_while_is_not_believed() -> Result<()> {
    let (mut stage, past) = behind().await?;
    past.done(7).await;
    past.lift();
    stage.tells_list(&[]).await
}
