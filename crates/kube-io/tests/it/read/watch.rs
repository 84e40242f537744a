//! List and watch without faults: pages, watch timeout, resourceVersion, relist with another lens,
//! namespaces.

use anyhow::{Context as _, Result};
use bellwether_kube_io::read::Count;
use bellwether_testkit::{Access, eventually};
use http::Request;

use super::{MAPS, ReaderFixture, SOON, lists, short_watches};

#[tokio::test]
async fn a_list_is_followed_by_watch_events() -> Result<()> {
    let mut fixture = ReaderFixture::new("watch").await?;
    fixture.create("a").await?;
    fixture.create("b").await?;
    assert_eq!(fixture.reader.counters().oldest_response(), None);
    fixture.watch_maps(&["a", "b"]).await?;

    fixture.create("c").await?;
    fixture.expect_object("c", "old").await?;
    fixture.change("a").await?;
    fixture.expect_object("a", "new").await?;
    fixture.delete("b").await?;
    fixture.expect_object("b", "deleted").await?;

    assert_eq!((fixture.list_count(), fixture.watch_count()), (1, 1));
    assert!(fixture.reader.counters().oldest_response().is_some());
    let counters = fixture.reader.counters();
    let counts =
        [&counters.lists, &counters.relists, &counters.watches, &counters.open_watches, &counters.decoded];
    assert_eq!(counts.map(Count::get), [1, 0, 1, 1, 5]);
    Ok(())
}

#[tokio::test]
async fn a_list_is_a_consistent_read() -> Result<()> {
    let mut fixture = ReaderFixture::new("watch").await?;
    fixture.watch_maps(&[]).await?;
    let list = fixture.proxy.requests().into_iter().find(|request| request.uri.contains("limit=500"));
    let uri = list.context("the list was recorded")?.uri;
    assert!(!uri.contains("resourceVersion"), "the watch cache may be stale: {uri}");
    Ok(())
}

#[tokio::test]
async fn a_long_list_has_several_pages() -> Result<()> {
    let mut fixture = ReaderFixture::with_settings("watch", |settings| settings.page_size = 2).await?;
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        fixture.create(name).await?;
    }
    fixture.watch_maps(&names).await?;
    assert_eq!(fixture.list_count(), 3);
    assert_eq!(fixture.reader.counters().lists.get(), 1, "all pages count as one list");
    fixture.create("f").await?;
    fixture.expect_object("f", "old").await
}

#[tokio::test]
async fn a_watch_resumes_after_its_timeout_without_a_relist() -> Result<()> {
    let mut fixture = ReaderFixture::with_settings("watch", short_watches).await?;
    fixture.watch_maps(&[]).await?;
    for (round, name) in [(2, "a"), (4, "b")] {
        eventually(SOON, "another watch has started", async || Ok(fixture.watch_count() >= round)).await?;
        fixture.create(name).await?;
        fixture.expect_object(name, "old").await?;
    }
    assert_eq!(fixture.list_count(), 1);
    Ok(())
}

#[tokio::test]
async fn another_lens_leads_to_a_relist() -> Result<()> {
    let mut fixture = ReaderFixture::new("watch").await?;
    fixture.create("a").await?;
    fixture.watch_maps(&["a"]).await?;
    fixture.watch(MAPS, "", "ConfigMap");
    fixture.expect_list(&["a"]).await?;
    fixture.create("b").await?;
    fixture.expect_object("b", "old").await?;
    assert_eq!(fixture.list_count(), 2);
    assert_eq!(fixture.reader.counters().relists.get(), 1);
    Ok(())
}

#[tokio::test]
async fn several_kinds_are_watched_at_the_same_time() -> Result<()> {
    let mut fixture = ReaderFixture::new("watch").await?;
    fixture.watch_maps(&[]).await?;
    fixture.watch("namespaces", "", "Namespace");
    fixture.expect_events(&["namespaces: served as v1/namespaces", "namespaces: listing"]).await?;
    let own = format!("namespaces: {} applied", fixture.namespace);
    let mut found = false;
    loop {
        let event = fixture.next_event().await?;
        found |= event == own;
        if event == "namespaces: listed" {
            break;
        }
    }
    assert!(found, "cluster-scoped objects are read in any case");
    Ok(())
}

#[tokio::test]
async fn without_a_namespace_all_are_read() -> Result<()> {
    let mut fixture = ReaderFixture::with_settings("watch", |settings| settings.namespace = None).await?;
    fixture.create("a").await?;
    fixture.watch(MAPS, "", "ConfigMap");
    fixture.expect_events(&["maps: served as v1/configmaps", "maps: listing"]).await?;
    let expected = format!("maps: {}/a old", fixture.namespace);
    while fixture.next_event().await? != expected {}
    assert_eq!(fixture.proxy.count(&lists().namespace(&fixture.namespace)), 0);
    Ok(())
}

/// Waits until the metrics of the API server count this many watches of a resource. No other test may watch
/// it.
async fn expect_served_watches(access: &Access, resource: &str, expected: usize) -> Result<()> {
    let client = access.client().await?;
    let resource = format!("resource=\"{resource}\"");
    eventually(SOON, &format!("{expected} watches with {resource}"), async || {
        let metrics = client.request_text(Request::get("/metrics").body(Vec::new())?).await?;
        let served = metrics
            .lines()
            .filter(|line| line.starts_with("apiserver_longrunning_requests{") && line.contains(&resource))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
        Ok(served.sum::<usize>() == expected)
    })
    .await
}

#[tokio::test]
async fn a_feed_that_is_left_closes_its_watch() -> Result<()> {
    let mut fixture = ReaderFixture::new("watch").await?;
    for feed in ["first", "second"] {
        fixture.watch(feed, "", "PodTemplate");
        for event in ["served as v1/podtemplates", "listing", "listed"] {
            fixture.expect_events(&[&format!("{feed}: {event}")]).await?;
        }
    }
    expect_served_watches(fixture.cluster.admin(), "podtemplates", 2).await?;
    fixture.reader.leave("first");
    expect_served_watches(fixture.cluster.admin(), "podtemplates", 1).await?;
    assert_eq!(fixture.reader.counters().open_watches.get(), 1);

    let counters = fixture.reader.counters().clone();
    drop(fixture.reader);
    expect_served_watches(fixture.cluster.admin(), "podtemplates", 0).await?;
    assert_eq!(counters.open_watches.get(), 0);
    Ok(())
}

#[tokio::test]
async fn a_dropped_receiver_ends_the_watches() -> Result<()> {
    let mut fixture = ReaderFixture::with_settings("watch", |settings| settings.page_size = 1).await?;
    fixture.watch_maps(&[]).await?;
    fixture.events.close();
    fixture.create("a").await?;
    let counters = fixture.reader.counters();
    eventually(SOON, "no watch is open", async || Ok(counters.open_watches.get() == 0)).await
}
