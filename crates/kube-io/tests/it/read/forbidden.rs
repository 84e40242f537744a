//! RBAC: 403 Forbidden on list and watch, permissions granted and revoked, relist after a grant.

use anyhow::Result;
use bellwether_testkit::{Requests, Verb, eventually, rule, shared};

use super::{MAPS, ReaderFixture, SOON, short_watches};

#[tokio::test]
async fn a_403_is_reported_and_a_grant_leads_to_a_relist() -> Result<()> {
    let cluster = shared::cluster().await?;
    let user = cluster.user("reader-of-maps")?;
    let mut fixture = ReaderFixture::for_user(cluster, &user, "forbidden", short_watches).await?;
    fixture.create("a").await?;
    let rules = || vec![rule(&["get", "list", "watch"], "", &["configmaps"])];

    fixture.watch(MAPS, "", "ConfigMap");
    fixture.expect_events(&["maps: served as v1/configmaps", "maps: forbidden: configmaps"]).await?;
    let grant = cluster.grant(&user, Some(&fixture.namespace), rules()).await?;
    fixture.expect_events(&["maps: served as v1/configmaps"]).await?;
    fixture.expect_list(&["a"]).await?;

    grant.revoke().await?;
    fixture.expect_events(&["maps: forbidden: configmaps"]).await?;
    fixture.delete("a").await?;
    fixture.create("b").await?;
    let before = fixture.list_count();
    cluster.grant(&user, Some(&fixture.namespace), rules()).await?;
    fixture.expect_events(&["maps: served as v1/configmaps"]).await?;
    fixture.expect_list(&["b"]).await?;
    assert_eq!(fixture.list_count(), before + 1, "only a permitted watch leads to a list");
    Ok(())
}

#[tokio::test]
async fn a_kind_without_permission_to_watch_is_listed_once() -> Result<()> {
    let cluster = shared::cluster().await?;
    let user = cluster.user("lister-of-maps")?;
    let mut fixture = ReaderFixture::for_user(cluster, &user, "forbidden", |_| {}).await?;
    cluster.grant(&user, Some(&fixture.namespace), vec![rule(&["list"], "", &["configmaps"])]).await?;
    fixture.watch_maps(&[]).await?;
    fixture.expect_events(&["maps: forbidden: configmaps"]).await?;
    eventually(SOON, "the watch is retried", async || Ok(fixture.watch_count() >= 10)).await?;
    assert_eq!(fixture.list_count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_403_on_one_kind_does_not_affect_another() -> Result<()> {
    let cluster = shared::cluster().await?;
    let user = cluster.user("reader-of-one")?;
    let mut fixture = ReaderFixture::for_user(cluster, &user, "forbidden", |_| {}).await?;
    let rules = vec![rule(&["list", "watch"], "", &["configmaps"])];
    cluster.grant(&user, Some(&fixture.namespace), rules).await?;
    fixture.watch("secrets", "", "Secret");
    fixture.expect_events(&["secrets: served as v1/secrets", "secrets: forbidden: secrets"]).await?;
    let counters = fixture.reader.counters();
    assert_eq!(
        (counters.forbidden.get() > 0, counters.errors.get()),
        (true, 0),
        "a missing right is not an error"
    );
    fixture.watch_maps(&[]).await?;
    fixture.create("a").await?;
    fixture.expect_object("a", "old").await?;
    assert_eq!(fixture.proxy.count(&Requests::of(Verb::Watch, "secrets")), 0);
    Ok(())
}
