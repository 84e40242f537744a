//! Rights that come and go.

use anyhow::Result;
use bellwether_testkit::{Requests, Verb, eventually, rule, shared};

use super::{MAPS, SOON, Stage, short_watches};

#[tokio::test]
async fn what_is_forbidden_is_told_and_what_is_allowed_is_listed() -> Result<()> {
    let cluster = shared::cluster().await?;
    let user = cluster.user("reader-of-maps")?;
    let mut stage = Stage::set_for(cluster, &user, "rights", short_watches).await?;
    stage.create("a").await?;
    let rules = || vec![rule(&["get", "list", "watch"], "", &["configmaps"])];

    stage.follow(MAPS, "", "ConfigMap");
    stage.tells(&["maps: served as v1/configmaps", "maps: forbidden: configmaps"]).await?;
    let grant = cluster.grant(&user, Some(&stage.namespace), rules()).await?;
    stage.tells(&["maps: served as v1/configmaps"]).await?;
    stage.tells_list(&["a"]).await?;

    grant.revoke().await?;
    stage.tells(&["maps: forbidden: configmaps"]).await?;
    stage.delete("a").await?;
    stage.create("b").await?;
    let before = stage.lists();
    cluster.grant(&user, Some(&stage.namespace), rules()).await?;
    stage.tells(&["maps: served as v1/configmaps"]).await?;
    stage.tells_list(&["b"]).await?;
    assert_eq!(stage.lists(), before + 1, "whether it is allowed again, watches have shown");
    Ok(())
}

#[tokio::test]
async fn what_may_be_listed_but_not_watched_is_listed_once() -> Result<()> {
    let cluster = shared::cluster().await?;
    let user = cluster.user("lister-of-maps")?;
    let mut stage = Stage::set_for(cluster, &user, "rights", |_| {}).await?;
    cluster.grant(&user, Some(&stage.namespace), vec![rule(&["list"], "", &["configmaps"])]).await?;
    stage.follow_maps(&[]).await?;
    stage.tells(&["maps: forbidden: configmaps"]).await?;
    eventually(SOON, "it was tried for a while", async || Ok(stage.watches() >= 10)).await?;
    assert_eq!(stage.lists(), 1);
    Ok(())
}

#[tokio::test]
async fn one_kind_that_is_forbidden_does_not_concern_another() -> Result<()> {
    let cluster = shared::cluster().await?;
    let user = cluster.user("reader-of-one")?;
    let mut stage = Stage::set_for(cluster, &user, "rights", |_| {}).await?;
    let rules = vec![rule(&["list", "watch"], "", &["configmaps"])];
    cluster.grant(&user, Some(&stage.namespace), rules).await?;
    stage.follow("secrets", "", "Secret");
    stage.tells(&["secrets: served as v1/secrets", "secrets: forbidden: secrets"]).await?;
    stage.follow_maps(&[]).await?;
    stage.create("a").await?;
    stage.tells_of("a", "old").await?;
    assert_eq!(stage.proxy.count(&Requests::of(Verb::Watch, "secrets")), 0);
    Ok(())
}
