//! Stale reads: a relist by an API server whose resourceVersion is older than the last one seen.

use anyhow::Result;
use bellwether_testkit::{Fault, Injected, StatusCode};

use super::{ReaderFixture, lists, watches};

/// A ConfigMap is deleted, and the reader has seen it. Then 410 Gone leads to a relist, which still contains
/// it.
async fn stale_relist() -> Result<(ReaderFixture, Injected)> {
    let mut fixture = ReaderFixture::new("stale").await?;
    let resource_version = fixture.create("lost").await?;
    fixture.watch_maps(&["lost"]).await?;
    fixture.delete("lost").await?;
    fixture.expect_object("lost", "deleted").await?;
    let stale = fixture.proxy.inject(lists(), Fault::Past { resource_version });
    let expired = fixture.proxy.inject(watches().times(1), Fault::ErrorEvent(StatusCode::GONE));
    fixture.proxy.cut_all().await;
    expired.struck(1).await;
    Ok((fixture, stale))
}

#[tokio::test]
async fn a_deleted_object_does_not_reappear() -> Result<()> {
    let (mut fixture, stale) = stale_relist().await?;
    stale.done(2).await;
    stale.lift();
    fixture.expect_list(&[]).await?;
    fixture.create("new").await?;
    fixture.expect_object("new", "old").await
}

/// Five stale lists in a row do not mean that the cluster was restored: an API server may lag for a while.
#[tokio::test]
async fn several_stale_lists_are_not_believed() -> Result<()> {
    let (mut fixture, stale) = stale_relist().await?;
    stale.done(7).await;
    stale.lift();
    fixture.expect_list(&[]).await
}
