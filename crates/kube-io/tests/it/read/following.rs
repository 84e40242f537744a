//! What becomes of objects when nothing goes wrong.

use anyhow::{Context as _, Result};
use bellwether_kube_io::read::Count;
use bellwether_testkit::{Access, eventually};
use http::Request;

use super::{MAPS, SOON, Stage, lists, short_watches};

#[tokio::test]
async fn all_objects_are_told_and_then_what_becomes_of_them() -> Result<()> {
    let mut stage = Stage::set("following").await?;
    stage.create("a").await?;
    stage.create("b").await?;
    assert_eq!(stage.reader.tally().heard_least_recently(), None);
    stage.follow_maps(&["a", "b"]).await?;

    stage.create("c").await?;
    stage.tells_of("c", "old").await?;
    stage.change("a").await?;
    stage.tells_of("a", "new").await?;
    stage.delete("b").await?;
    stage.tells_of("b", "gone").await?;

    assert_eq!((stage.lists(), stage.watches()), (1, 1));
    assert!(stage.reader.tally().heard_least_recently().is_some());
    let tally = stage.reader.tally();
    let counts = [&tally.lists, &tally.relists, &tally.watches, &tally.open_watches, &tally.read];
    assert_eq!(counts.map(Count::get), [1, 0, 1, 1, 5]);
    Ok(())
}

#[tokio::test]
async fn a_list_is_of_now() -> Result<()> {
    let mut stage = Stage::set("following").await?;
    stage.follow_maps(&[]).await?;
    let asked = stage.proxy.requests().into_iter().find(|asked| asked.uri.contains("limit=500"));
    let uri = asked.context("the list is on record")?.uri;
    assert!(!uri.contains("resourceVersion"), "not of the past that a cache may have: {uri}");
    Ok(())
}

#[tokio::test]
async fn a_long_list_comes_in_pages() -> Result<()> {
    let mut stage = Stage::set_with("following", |settings| settings.page_size = 2).await?;
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        stage.create(name).await?;
    }
    stage.follow_maps(&names).await?;
    assert_eq!(stage.lists(), 3);
    assert_eq!(stage.reader.tally().lists.get(), 1, "it is one list all the same");
    stage.create("f").await?;
    stage.tells_of("f", "old").await
}

#[tokio::test]
async fn watches_that_end_in_time_go_on_where_they_were() -> Result<()> {
    let mut stage = Stage::set_with("following", short_watches).await?;
    stage.follow_maps(&[]).await?;
    for (round, name) in [(2, "a"), (4, "b")] {
        eventually(SOON, "another watch has begun", async || Ok(stage.watches() >= round)).await?;
        stage.create(name).await?;
        stage.tells_of(name, "old").await?;
    }
    assert_eq!(stage.lists(), 1);
    Ok(())
}

#[tokio::test]
async fn another_lens_means_another_list() -> Result<()> {
    let mut stage = Stage::set("following").await?;
    stage.create("a").await?;
    stage.follow_maps(&["a"]).await?;
    stage.follow(MAPS, "", "ConfigMap");
    stage.tells_list(&["a"]).await?;
    stage.create("b").await?;
    stage.tells_of("b", "old").await?;
    assert_eq!(stage.lists(), 2);
    assert_eq!(stage.reader.tally().relists.get(), 1);
    Ok(())
}

#[tokio::test]
async fn several_kinds_are_followed_side_by_side() -> Result<()> {
    let mut stage = Stage::set("following").await?;
    stage.follow_maps(&[]).await?;
    stage.follow("namespaces", "", "Namespace");
    stage.tells(&["namespaces: served as v1/namespaces", "namespaces: listing"]).await?;
    let own = format!("namespaces: {} as it is", stage.namespace);
    let mut found = false;
    loop {
        let told = stage.told().await?;
        found |= told == own;
        if told == "namespaces: listed" {
            break;
        }
    }
    assert!(found, "what has no namespace is read in any case");
    Ok(())
}

#[tokio::test]
async fn where_no_namespace_is_named_all_are_read() -> Result<()> {
    let mut stage = Stage::set_with("following", |settings| settings.namespace = None).await?;
    stage.create("a").await?;
    stage.follow(MAPS, "", "ConfigMap");
    stage.tells(&["maps: served as v1/configmaps", "maps: listing"]).await?;
    let expected = format!("maps: {}/a old", stage.namespace);
    while stage.told().await? != expected {}
    assert_eq!(stage.proxy.count(&lists().namespace(&stage.namespace)), 0);
    Ok(())
}

/// How many watches of a resource the API server serves, by its own count. Nothing else may watch that resource.
async fn watches_served(access: &Access, resource: &str, expected: usize) -> Result<()> {
    let client = access.client().await?;
    let resource = format!("resource=\"{resource}\"");
    eventually(SOON, &format!("{expected} watches with {resource} are served"), async || {
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
async fn who_leaves_asks_no_more() -> Result<()> {
    let mut stage = Stage::set("following").await?;
    for feed in ["first", "second"] {
        stage.follow(feed, "", "PodTemplate");
        for news in ["served as v1/podtemplates", "listing", "listed"] {
            stage.tells(&[&format!("{feed}: {news}")]).await?;
        }
    }
    watches_served(stage.cluster.admin(), "podtemplates", 2).await?;
    stage.reader.leave("first");
    watches_served(stage.cluster.admin(), "podtemplates", 1).await?;
    assert_eq!(stage.reader.tally().open_watches.get(), 1);

    let tally = stage.reader.tally().clone();
    drop(stage.reader);
    watches_served(stage.cluster.admin(), "podtemplates", 0).await?;
    assert_eq!(tally.open_watches.get(), 0);
    Ok(())
}

#[tokio::test]
async fn nobody_reads_on_when_nobody_listens() -> Result<()> {
    let mut stage = Stage::set_with("following", |settings| settings.page_size = 1).await?;
    stage.follow_maps(&[]).await?;
    stage.news.close();
    stage.create("a").await?;
    let tally = stage.reader.tally();
    eventually(SOON, "no watch is open", async || Ok(tally.open_watches.get() == 0)).await
}
