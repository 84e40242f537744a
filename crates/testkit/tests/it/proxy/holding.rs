//! What is held back until its fault is lifted: answers and events.

use anyhow::{Context, Result};
use bellwether_testkit::{Fault, Requests, Verb};
use futures::StreamExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Error, ResourceExt,
    api::{PostParams, WatchParams},
};

use super::{Stage, config_map, http2::Connection, names, next, nothing_comes, soon, watch};

#[tokio::test]
async fn a_held_answer_comes_when_the_fault_is_lifted() -> Result<()> {
    let stage = Stage::set("holding").await?;
    let fault = stage.proxy.inject(Requests::writes(), Fault::HoldResponse);
    let maps = stage.through.clone();
    let map = config_map("one")?;
    let mut write = tokio::spawn(async move { maps.create(&PostParams::default(), &map).await });
    soon(fault.done(1)).await?;

    let there = soon(stage.direct.get("one")).await??;
    nothing_comes(&mut write).await?;
    let recorded = stage.proxy.requests().pop().context("the request is on record")?;
    assert_eq!((recorded.status, recorded.struck), (None, true));
    assert_eq!(names(&stage.through).await?, ["one"], "a read is not held");

    fault.lift();
    let created = soon(write).await???;
    assert_eq!((created.uid(), created.resource_version()), (there.uid(), there.resource_version()));
    assert_eq!(stage.proxy.requests()[0].status.map(|status| status.as_u16()), Some(201));
    Ok(())
}

#[tokio::test]
async fn a_client_that_ends_before_its_answer_leaves_its_deed_behind() -> Result<()> {
    let stage = Stage::set("holding").await?;
    let fault = stage.proxy.inject(Requests::writes().times(1), Fault::HoldResponse);
    let maps: Api<ConfigMap> =
        Api::namespaced(stage.cluster.admin().via(stage.proxy.address()).client().await?, &stage.namespace);
    let map = config_map("one")?;
    let write = tokio::spawn(async move { maps.create(&PostParams::default(), &map).await });
    soon(fault.done(1)).await?;
    write.abort();
    assert!(soon(write).await?.is_err_and(|end| end.is_cancelled()));

    // Its successor comes to the same idea.
    let again = soon(stage.through.create(&PostParams::default(), &config_map("one")?)).await?;
    assert!(matches!(&again, Err(Error::Api(status)) if status.is_already_exists()), "{again:?}");
    fault.lift();
    assert_eq!(names(&stage.through).await?, ["one"]);
    Ok(())
}

#[tokio::test]
async fn refusals_are_held_as_well_and_other_streams_go_on() -> Result<()> {
    let stage = Stage::set("holding").await?;
    stage.create("one").await?;
    let mut connection = Connection::open(stage.cluster.admin().via(stage.proxy.address())).await?;
    let mut neighbour = connection.clone();
    let fault = stage.proxy.inject(Requests::of(Verb::Get, "configmaps"), Fault::HoldResponse);
    let path = |name| stage.path("").replace('?', &format!("/{name}"));
    let (nobody, one) = (path("nobody"), path("one"));
    let mut refused = Box::pin(connection.ask(&nobody));
    nothing_comes(&mut refused).await?;
    soon(fault.done(1)).await?;
    soon(neighbour.ask(&stage.path("")).await?.collect()).await??;

    fault.lift();
    let text = soon(soon(refused).await??.collect()).await??.to_bytes();
    assert!(String::from_utf8_lossy(&text).contains(r#"configmaps \"nobody\" not found"#), "{text:?}");
    soon(neighbour.ask(&one).await?.collect()).await??;
    Ok(())
}

#[tokio::test]
async fn held_events_come_when_the_fault_is_lifted() -> Result<()> {
    let stage = Stage::set("holding").await?;
    let since = stage.now().await?;
    let fault = stage.proxy.inject(Requests::all(), Fault::HoldEvents);
    let (mut held, mut direct) = (watch(&stage.through, &since).await?, watch(&stage.direct, &since).await?);
    soon(fault.done(1)).await?;

    stage.create("one").await?;
    stage.create("two").await?;
    stage.change("one").await?;
    let events = ["added one", "added two", "modified one"];
    for event in events {
        assert_eq!(next(&mut direct).await?, event);
    }
    nothing_comes(held.next()).await?;
    assert_eq!(names(&stage.through).await?, ["one", "two"], "a list is not held");

    fault.lift();
    for event in events {
        assert_eq!(next(&mut held).await?, event);
    }
    stage.create("three").await?;
    assert_eq!(next(&mut held).await?, "added three");
    Ok(())
}

#[tokio::test]
async fn a_watch_that_is_refused_is_not_held() -> Result<()> {
    let stage = Stage::set("holding").await?;
    let fault = stage.proxy.inject(Requests::all(), Fault::HoldEvents);
    let stranger = stage.cluster.user("stranger-on-hold")?.via(stage.proxy.address());
    let maps: Api<ConfigMap> = Api::namespaced(stranger.client().await?, &stage.namespace);
    let refused = soon(maps.watch(&WatchParams::default(), "0")).await?.err();
    assert!(matches!(&refused, Some(Error::Api(status)) if status.is_forbidden()), "{refused:?}");
    assert_eq!(fault.strikes(), 1);
    Ok(())
}
