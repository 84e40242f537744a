//! An API server that is behind the others.

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

use super::{SOON, Stage, arrived, names, next, nothing_comes, soon, watch};

/// Two config maps as they were, seen through the proxy; since then one was changed, one deleted, and a third came.
struct Behind {
    stage: Stage,
    then: u64,
    /// When the third came.
    newer: u64,
    fault: Injected,
}

const SINCE_THEN: [&str; 3] = ["added new", "modified kept", "deleted lost"];

impl Behind {
    async fn set() -> Result<Self> {
        let stage = Stage::set("past").await?;
        stage.create("kept").await?;
        let then = stage.create("lost").await?.parse()?;
        let newer = stage.create("new").await?.parse()?;
        stage.change("kept").await?;
        stage.direct.delete("lost", &DeleteParams::default()).await?;
        let fault = stage.proxy.inject(Requests::all(), Fault::Past { resource_version: then });
        Ok(Self { stage, then, newer, fault })
    }
}

fn refusal<T>(answer: kube::Result<T>) -> Result<Status> {
    match answer {
        Err(Error::Api(status)) => Ok(*status),
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!("it was not refused"),
    }
}

#[tokio::test]
async fn a_list_is_of_then() -> Result<()> {
    let Behind { stage, then, fault, .. } = Behind::set().await?;
    let list = soon(stage.through.list(&ListParams::default())).await??;
    assert_eq!(list.metadata.resource_version, Some(then.to_string()));
    let state: Vec<_> =
        list.iter().map(|map| (map.name_any(), map.data.clone().unwrap_or_default())).collect();
    assert_eq!(state.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["kept", "lost"]);
    assert!(state.iter().all(|(_, data)| data["key"] == "old"));

    for from_cache in [ListParams::default().match_any(), ListParams::default().at(&then.to_string())] {
        let list = soon(stage.through.list(&from_cache)).await??;
        assert_eq!(list.metadata.resource_version, Some(then.to_string()));
    }
    fault.lift();
    assert_eq!(names(&stage.through).await?, ["kept", "new"]);
    Ok(())
}

#[tokio::test]
async fn a_list_in_pages_is_of_then() -> Result<()> {
    let Behind { stage, then, fault, .. } = Behind::set().await?;
    let mut page = ListParams::default().limit(1);
    for name in ["kept", "lost"] {
        let list = soon(stage.through.list(&page)).await??;
        assert_eq!(list.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), [name]);
        assert_eq!(list.metadata.resource_version, Some(then.to_string()));
        page.continue_token = list.metadata.continue_;
    }
    assert_eq!(page.continue_token, None);
    assert_eq!(fault.strikes(), 2);
    Ok(())
}

#[tokio::test]
async fn an_object_is_the_one_of_then() -> Result<()> {
    let Behind { stage, fault, .. } = Behind::set().await?;
    let kept = soon(stage.through.get("kept")).await??;
    assert_eq!(kept.data.context("it has data")?["key"], "old");
    assert_eq!(soon(stage.through.get_metadata("lost")).await??.name_any(), "lost");

    let (text, _) = arrived(&stage.client, &stage.path("").replace('?', "/lost")).await?;
    let lost: Value = serde_json::from_str(&text)?;
    assert_eq!((&lost["apiVersion"], &lost["kind"]), (&json!("v1"), &json!("ConfigMap")));

    let not_yet = refusal(soon(stage.through.get("new")).await?)?;
    let real = refusal(soon(stage.direct.get("lost")).await?)?;
    assert_eq!(format!("{not_yet:?}"), format!("{real:?}").replace("lost", "new"));

    fault.lift();
    assert_eq!(soon(stage.through.get("new")).await??.name_any(), "new");
    Ok(())
}

#[tokio::test]
async fn to_get_an_object_of_then_needs_the_right_to_get_it() -> Result<()> {
    let Behind { stage, fault, .. } = Behind::set().await?;
    let alice = stage.cluster.user("alice-in-the-past")?;
    let maps: Api<ConfigMap> =
        Api::namespaced(alice.via(stage.proxy.address()).client().await?, &stage.namespace);
    assert_eq!(refusal(soon(maps.get("lost")).await?)?.code, 403);
    stage.cluster.grant(&alice, Some(&stage.namespace), vec![rule(&["get"], "", &["configmaps"])]).await?;
    eventually(SOON, "alice may get", async || Ok(maps.get("lost").await.is_ok())).await?;
    assert_eq!(refusal(soon(maps.list(&ListParams::default())).await?)?.code, 403);
    drop(fault);
    Ok(())
}

#[tokio::test]
async fn a_watch_starts_then_and_catches_up() -> Result<()> {
    let Behind { stage, then, fault, .. } = Behind::set().await?;
    let mut events = watch(&stage.through, &then.to_string()).await?;
    for event in SINCE_THEN {
        assert_eq!(next(&mut events).await?, event);
    }
    for anywhere in ["", "0"] {
        let mut events = watch(&stage.through, anywhere).await?;
        for event in ["added kept", "added lost"].iter().chain(&SINCE_THEN) {
            assert_eq!(&next(&mut events).await?, event);
        }
    }
    stage.create("live").await?;
    assert_eq!(next(&mut events).await?, "added live");
    assert_eq!(fault.strikes(), 3);
    Ok(())
}

#[tokio::test]
async fn a_streaming_list_is_of_then_and_catches_up() -> Result<()> {
    let Behind { stage, then, fault, .. } = Behind::set().await?;
    let streaming = WatchParams::streaming_lists();
    let mut events = soon(stage.through.watch(&streaming, "0")).await??.boxed();
    let end = format!("bookmark {then} {{\"k8s.io/initial-events-end\": \"true\"}}");
    for event in ["added kept", "added lost", &end].iter().chain(&SINCE_THEN) {
        assert_eq!(&next(&mut events).await?, event);
    }
    let mut metadata = soon(stage.through.watch_metadata(&streaming, "0")).await??.boxed();
    let first = soon(metadata.next()).await?.context("the watch ended")??;
    assert!(matches!(first, kube::api::WatchEvent::Added(map) if map.name_any() == "kept"));
    drop(fault);
    Ok(())
}

/// A resource version that a real API server is yet to come to.
async fn future(stage: &Stage) -> Result<u64> {
    Ok(stage.now().await?.parse::<u64>()? + 1_000_000)
}

#[tokio::test]
async fn who_has_seen_more_is_told_to_come_back() -> Result<()> {
    let Behind { stage, then, newer, fault } = Behind::set().await?;
    let newer = newer.to_string();
    let listed = soon(stage.through.list(&ListParams::default().at(&newer))).await?;
    let got = soon(stage.through.get_with("kept", &GetParams::at(&newer))).await?;
    let refusals = [refusal(listed)?, refusal(got)?];
    assert_eq!(fault.strikes(), refusals.len());

    let future = future(&stage).await?.to_string();
    let real = refusal(soon(stage.direct.list(&ListParams::default().at(&future))).await?)?;
    let told = format!("Timeout: Too large resource version: {newer}, current: {then}");
    for refusal in refusals {
        assert_eq!(refusal.message, told);
        assert_eq!(format!("{refusal:?}").replace(&told, &real.message), format!("{real:?}"));
    }
    Ok(())
}

#[tokio::test]
async fn a_streaming_list_is_told_by_an_event() -> Result<()> {
    let Behind { stage, then, newer, fault } = Behind::set().await?;
    let direct = stage.cluster.admin().client().await?;
    let ask = async |client, version: u64| -> Result<Value> {
        let query = format!(
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
             &resourceVersion={version}"
        );
        let (status, _) = begun(client, &stage.path(&query)).await?;
        assert_eq!(status, StatusCode::OK);
        let (text, whole) = arrived(client, &stage.path(&query)).await?;
        assert!(whole, "it ends in order");
        // One event, or this would not be JSON.
        Ok(serde_json::from_str(&text)?)
    };
    let mut told = ask(&stage.client, newer).await?;
    let mut real = ask(&direct, future(&stage).await?).await?;
    let message = told["object"]["message"].take();
    assert_eq!(message, format!("Timeout: Too large resource version: {newer}, current: {then}"));
    assert!(real["object"]["message"].take().is_string());
    assert_eq!(told, real);
    assert_eq!(fault.strikes(), 2);
    Ok(())
}

#[tokio::test]
async fn a_watch_from_what_is_yet_to_come_is_silent_until_it_has_come() -> Result<()> {
    let Behind { stage, newer, fault, .. } = Behind::set().await?;
    let direct = stage.cluster.admin().client().await?;
    let uri = |version: u64| stage.path(&format!("watch=true&resourceVersion={version}"));
    let told = begun(&stage.client, &uri(newer)).await?;
    let real = begun(&direct, &uri(future(&stage).await?)).await?;
    assert_eq!(told, real);

    let mut behind = watch(&stage.through, &newer.to_string()).await?;
    let mut real = watch(&stage.direct, &future(&stage).await?.to_string()).await?;
    nothing_comes(async {
        tokio::select! { it = behind.next() => it, it = real.next() => it }
    })
    .await?;
    assert_eq!(fault.strikes(), 2);

    fault.lift();
    for event in &SINCE_THEN[1..] {
        assert_eq!(&next(&mut behind).await?, event);
    }
    stage.create("live").await?;
    assert_eq!(next(&mut behind).await?, "added live");
    Ok(())
}

#[tokio::test]
async fn a_watch_from_what_is_yet_to_come_needs_the_right_to_watch() -> Result<()> {
    let Behind { stage, newer, .. } = Behind::set().await?;
    let stranger = stage.cluster.user("stranger-in-the-past")?.via(stage.proxy.address());
    let maps: Api<ConfigMap> = Api::namespaced(stranger.client().await?, &stage.namespace);
    let refused = soon(maps.watch(&WatchParams::default(), &newer.to_string())).await?;
    assert_eq!(refusal(refused)?.code, 403);
    Ok(())
}

/// How an answer begins: its status, and the names of its headers.
async fn begun(client: &Client, uri: &str) -> Result<(StatusCode, BTreeSet<String>)> {
    let request = Request::get(uri).body(Body::empty())?;
    let response = soon(client.send(request)).await??;
    Ok((response.status(), response.headers().keys().map(ToString::to_string).collect()))
}
