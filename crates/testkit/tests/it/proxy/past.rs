//! Reads from a stale API server.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use bellwether_testkit::{Fault, Injected, Requests, StatusCode, eventually, rule};
use futures::StreamExt;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Error, ResourceExt,
    api::{DeleteParams, GetParams, ListParams, WatchParams},
    client::Body,
    core::response::Status,
};
use serde_json::{Value, json};

use super::{Fixture, SOON, arrived, names, next, nothing_comes, soon, watch};

/// Through the proxy there are two ConfigMaps, at resourceVersion `then`. Since then one was changed, one
/// deleted, and a third created.
struct StaleServer {
    fixture: Fixture,
    then: u64,
    /// The resourceVersion of the third ConfigMap.
    newer: u64,
    fault: Injected,
}

const SINCE_THEN: [&str; 3] = ["added new", "modified kept", "deleted lost"];

impl StaleServer {
    async fn new() -> Result<Self> {
        let fixture = Fixture::new("past").await?;
        fixture.create("kept").await?;
        let then = fixture.create("lost").await?.parse()?;
        let newer = fixture.create("new").await?.parse()?;
        fixture.change("kept").await?;
        fixture.direct.delete("lost", &DeleteParams::default()).await?;
        let fault = fixture.proxy.inject(Requests::all(), Fault::Past { resource_version: then });
        Ok(Self { fixture, then, newer, fault })
    }
}

fn refusal<T>(answer: kube::Result<T>) -> Result<Status> {
    match answer {
        Err(Error::Api(status)) => Ok(*status),
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!("expected an error"),
    }
}

#[tokio::test]
async fn a_list_is_stale() -> Result<()> {
    let StaleServer { fixture, then, fault, .. } = StaleServer::new().await?;
    let list = soon(fixture.through.list(&ListParams::default())).await??;
    assert_eq!(list.metadata.resource_version, Some(then.to_string()));
    let state: Vec<_> =
        list.iter().map(|map| (map.name_any(), map.data.clone().unwrap_or_default())).collect();
    assert_eq!(state.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["kept", "lost"]);
    assert!(state.iter().all(|(_, data)| data["key"] == "old"));

    for from_cache in [ListParams::default().match_any(), ListParams::default().at(&then.to_string())] {
        let list = soon(fixture.through.list(&from_cache)).await??;
        assert_eq!(list.metadata.resource_version, Some(then.to_string()));
    }
    fault.lift();
    assert_eq!(names(&fixture.through).await?, ["kept", "new"]);
    Ok(())
}

#[tokio::test]
async fn a_list_in_pages_is_stale() -> Result<()> {
    let StaleServer { fixture, then, fault, .. } = StaleServer::new().await?;
    let mut page = ListParams::default().limit(1);
    for name in ["kept", "lost"] {
        let list = soon(fixture.through.list(&page)).await??;
        assert_eq!(list.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), [name]);
        assert_eq!(list.metadata.resource_version, Some(then.to_string()));
        page.continue_token = list.metadata.continue_;
    }
    assert_eq!(page.continue_token, None);
    assert_eq!(fault.strikes(), 2);
    Ok(())
}

#[tokio::test]
async fn a_get_is_stale() -> Result<()> {
    let StaleServer { fixture, fault, .. } = StaleServer::new().await?;
    let kept = soon(fixture.through.get("kept")).await??;
    assert_eq!(kept.data.context("the ConfigMap has no data")?["key"], "old");
    assert_eq!(soon(fixture.through.get_metadata("lost")).await??.name_any(), "lost");

    let (text, _) = arrived(&fixture.client, &fixture.path("").replace('?', "/lost")).await?;
    let lost: Value = serde_json::from_str(&text)?;
    assert_eq!((&lost["apiVersion"], &lost["kind"]), (&json!("v1"), &json!("ConfigMap")));

    let not_yet = refusal(soon(fixture.through.get("new")).await?)?;
    let real = refusal(soon(fixture.direct.get("lost")).await?)?;
    assert_eq!(format!("{not_yet:?}"), format!("{real:?}").replace("lost", "new"));

    fault.lift();
    assert_eq!(soon(fixture.through.get("new")).await??.name_any(), "new");
    Ok(())
}

#[tokio::test]
async fn a_stale_get_requires_only_the_right_to_get() -> Result<()> {
    let StaleServer { fixture, fault, .. } = StaleServer::new().await?;
    let alice = fixture.cluster.user("alice-in-the-past")?;
    let maps: Api<ConfigMap> =
        Api::namespaced(alice.via(fixture.proxy.address()).client().await?, &fixture.namespace);
    assert_eq!(refusal(soon(maps.get("lost")).await?)?.code, 403);
    fixture
        .cluster
        .grant(&alice, Some(&fixture.namespace), vec![rule(&["get"], "", &["configmaps"])])
        .await?;
    eventually(SOON, "alice may get", async || Ok(maps.get("lost").await.is_ok())).await?;
    assert_eq!(refusal(soon(maps.list(&ListParams::default())).await?)?.code, 403);
    drop(fault);
    Ok(())
}

#[tokio::test]
async fn a_watch_starts_stale_and_catches_up() -> Result<()> {
    let StaleServer { fixture, then, fault, .. } = StaleServer::new().await?;
    let mut events = watch(&fixture.through, &then.to_string()).await?;
    for event in SINCE_THEN {
        assert_eq!(next(&mut events).await?, event);
    }
    for anywhere in ["", "0"] {
        let mut events = watch(&fixture.through, anywhere).await?;
        for event in ["added kept", "added lost"].iter().chain(&SINCE_THEN) {
            assert_eq!(&next(&mut events).await?, event);
        }
    }
    fixture.create("live").await?;
    assert_eq!(next(&mut events).await?, "added live");
    assert_eq!(fault.strikes(), 3);
    Ok(())
}

#[tokio::test]
async fn a_streaming_list_starts_stale_and_catches_up() -> Result<()> {
    let StaleServer { fixture, then, fault, .. } = StaleServer::new().await?;
    let streaming = WatchParams::streaming_lists();
    let mut events = soon(fixture.through.watch(&streaming, "0")).await??.boxed();
    let end = format!("bookmark {then} {{\"k8s.io/initial-events-end\": \"true\"}}");
    for event in ["added kept", "added lost", &end].iter().chain(&SINCE_THEN) {
        assert_eq!(&next(&mut events).await?, event);
    }
    let mut metadata = soon(fixture.through.watch_metadata(&streaming, "0")).await??.boxed();
    let first = soon(metadata.next()).await?.context("the watch ended")??;
    assert!(matches!(first, kube::api::WatchEvent::Added(map) if map.name_any() == "kept"));
    drop(fault);
    Ok(())
}

/// A resourceVersion that the real API server has not reached yet.
async fn future(fixture: &Fixture) -> Result<u64> {
    Ok(fixture.now().await?.parse::<u64>()? + 1_000_000)
}

#[tokio::test]
async fn a_read_at_a_newer_resource_version_fails() -> Result<()> {
    let StaleServer { fixture, then, newer, fault } = StaleServer::new().await?;
    let newer = newer.to_string();
    let listed = soon(fixture.through.list(&ListParams::default().at(&newer))).await?;
    let got = soon(fixture.through.get_with("kept", &GetParams::at(&newer))).await?;
    let refusals = [refusal(listed)?, refusal(got)?];
    assert_eq!(fault.strikes(), refusals.len());

    let future = future(&fixture).await?.to_string();
    let real = refusal(soon(fixture.direct.list(&ListParams::default().at(&future))).await?)?;
    let expected = format!("Timeout: Too large resource version: {newer}, current: {then}");
    for refusal in refusals {
        assert_eq!(refusal.message, expected);
        assert_eq!(format!("{refusal:?}").replace(&expected, &real.message), format!("{real:?}"));
    }
    Ok(())
}

#[tokio::test]
async fn a_streaming_list_at_a_newer_resource_version_gets_an_error_event() -> Result<()> {
    let StaleServer { fixture, then, newer, fault } = StaleServer::new().await?;
    let direct = fixture.cluster.admin().client().await?;
    let ask = async |client, version: u64| -> Result<Value> {
        let query = format!(
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
             &resourceVersion={version}"
        );
        let (status, _) = begun(client, &fixture.path(&query)).await?;
        assert_eq!(status, StatusCode::OK);
        let (text, whole) = arrived(client, &fixture.path(&query)).await?;
        assert!(whole, "the body ends in order");
        // Two events would not be valid JSON.
        Ok(serde_json::from_str(&text)?)
    };
    let mut stale = ask(&fixture.client, newer).await?;
    let mut real = ask(&direct, future(&fixture).await?).await?;
    let message = stale["object"]["message"].take();
    assert_eq!(message, format!("Timeout: Too large resource version: {newer}, current: {then}"));
    assert!(real["object"]["message"].take().is_string());
    assert_eq!(stale, real);
    assert_eq!(fault.strikes(), 2);
    Ok(())
}

#[tokio::test]
async fn a_watch_from_a_newer_resource_version_is_silent_until_the_fault_is_lifted() -> Result<()> {
    let StaleServer { fixture, newer, fault, .. } = StaleServer::new().await?;
    let direct = fixture.cluster.admin().client().await?;
    let uri = |version: u64| fixture.path(&format!("watch=true&resourceVersion={version}"));
    let stale = begun(&fixture.client, &uri(newer)).await?;
    let real = begun(&direct, &uri(future(&fixture).await?)).await?;
    assert_eq!(stale, real);

    let mut behind = watch(&fixture.through, &newer.to_string()).await?;
    let mut real = watch(&fixture.direct, &future(&fixture).await?.to_string()).await?;
    nothing_comes(async {
        tokio::select! { it = behind.next() => it, it = real.next() => it }
    })
    .await?;
    assert_eq!(fault.strikes(), 2);

    fault.lift();
    for event in &SINCE_THEN[1..] {
        assert_eq!(&next(&mut behind).await?, event);
    }
    fixture.create("live").await?;
    assert_eq!(next(&mut behind).await?, "added live");
    Ok(())
}

#[tokio::test]
async fn a_watch_from_a_newer_resource_version_requires_the_right_to_watch() -> Result<()> {
    let StaleServer { fixture, newer, .. } = StaleServer::new().await?;
    let stranger = fixture.cluster.user("stranger-in-the-past")?.via(fixture.proxy.address());
    let maps: Api<ConfigMap> = Api::namespaced(stranger.client().await?, &fixture.namespace);
    let refused = soon(maps.watch(&WatchParams::default(), &newer.to_string())).await?;
    assert_eq!(refusal(refused)?.code, 403);
    Ok(())
}

/// The status and the header names of a response.
async fn begun(client: &Client, uri: &str) -> Result<(StatusCode, BTreeSet<String>)> {
    let request = Request::get(uri).body(Body::empty())?;
    let response = soon(client.send(request)).await??;
    Ok((response.status(), response.headers().keys().map(ToString::to_string).collect()))
}
