//! Responses and events that are held until the fault is lifted.

use anyhow::{Context, Result};
use bellwether_testkit::{Fault, Requests, Verb};
use futures::StreamExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Error, ResourceExt,
    api::{PostParams, WatchParams},
};

use super::{Fixture, config_map, http2::Connection, names, next, nothing_comes, soon, watch};

#[tokio::test]
async fn a_held_response_arrives_when_the_fault_is_lifted() -> Result<()> {
    let fixture = Fixture::new("holding").await?;
    let fault = fixture.proxy.inject(Requests::writes(), Fault::HoldResponse);
    let maps = fixture.through.clone();
    let map = config_map("one")?;
    let mut write = tokio::spawn(async move { maps.create(&PostParams::default(), &map).await });
    soon(fault.done(1)).await?;

    let there = soon(fixture.direct.get("one")).await??;
    nothing_comes(&mut write).await?;
    let recorded = fixture.proxy.requests().pop().context("the request is not recorded")?;
    assert_eq!((recorded.status, recorded.struck), (None, true));
    assert_eq!(names(&fixture.through).await?, ["one"], "a read is not held");

    fault.lift();
    let created = soon(write).await???;
    assert_eq!((created.uid(), created.resource_version()), (there.uid(), there.resource_version()));
    assert_eq!(fixture.proxy.requests()[0].status.map(|status| status.as_u16()), Some(201));
    Ok(())
}

#[tokio::test]
async fn a_write_takes_effect_though_its_client_ends_before_the_response() -> Result<()> {
    let fixture = Fixture::new("holding").await?;
    let fault = fixture.proxy.inject(Requests::writes().times(1), Fault::HoldResponse);
    let maps: Api<ConfigMap> = Api::namespaced(
        fixture.cluster.admin().via(fixture.proxy.address()).client().await?,
        &fixture.namespace,
    );
    let map = config_map("one")?;
    let write = tokio::spawn(async move { maps.create(&PostParams::default(), &map).await });
    soon(fault.done(1)).await?;
    write.abort();
    assert!(soon(write).await?.is_err_and(|end| end.is_cancelled()));

    // The next client creates the same object.
    let again = soon(fixture.through.create(&PostParams::default(), &config_map("one")?)).await?;
    assert!(matches!(&again, Err(Error::Api(status)) if status.is_already_exists()), "{again:?}");
    fault.lift();
    assert_eq!(names(&fixture.through).await?, ["one"]);
    Ok(())
}

#[tokio::test]
async fn errors_are_held_too_and_other_streams_continue() -> Result<()> {
    let fixture = Fixture::new("holding").await?;
    fixture.create("one").await?;
    let mut connection = Connection::open(fixture.cluster.admin().via(fixture.proxy.address())).await?;
    let mut neighbour = connection.clone();
    let fault = fixture.proxy.inject(Requests::of(Verb::Get, "configmaps"), Fault::HoldResponse);
    let path = |name| fixture.path("").replace('?', &format!("/{name}"));
    let (missing, one) = (path("missing"), path("one"));
    let mut refused = Box::pin(connection.ask(&missing));
    nothing_comes(&mut refused).await?;
    soon(fault.done(1)).await?;
    soon(neighbour.ask(&fixture.path("")).await?.collect()).await??;

    fault.lift();
    let text = soon(soon(refused).await??.collect()).await??.to_bytes();
    assert!(String::from_utf8_lossy(&text).contains(r#"configmaps \"missing\" not found"#), "{text:?}");
    soon(neighbour.ask(&one).await?.collect()).await??;
    Ok(())
}

#[tokio::test]
async fn held_events_arrive_when_the_fault_is_lifted() -> Result<()> {
    let fixture = Fixture::new("holding").await?;
    let since = fixture.now().await?;
    let fault = fixture.proxy.inject(Requests::all(), Fault::HoldEvents);
    let (mut held, mut direct) =
        (watch(&fixture.through, &since).await?, watch(&fixture.direct, &since).await?);
    soon(fault.done(1)).await?;

    fixture.create("one").await?;
    fixture.create("two").await?;
    fixture.change("one").await?;
    let events = ["added one", "added two", "modified one"];
    for event in events {
        assert_eq!(next(&mut direct).await?, event);
    }
    nothing_comes(held.next()).await?;
    assert_eq!(names(&fixture.through).await?, ["one", "two"], "a list is not held");

    fault.lift();
    for event in events {
        assert_eq!(next(&mut held).await?, event);
    }
    fixture.create("three").await?;
    assert_eq!(next(&mut held).await?, "added three");
    Ok(())
}

#[tokio::test]
async fn a_forbidden_watch_is_not_held() -> Result<()> {
    let fixture = Fixture::new("holding").await?;
    let fault = fixture.proxy.inject(Requests::all(), Fault::HoldEvents);
    let stranger = fixture.cluster.user("stranger-on-hold")?.via(fixture.proxy.address());
    let maps: Api<ConfigMap> = Api::namespaced(stranger.client().await?, &fixture.namespace);
    let refused = soon(maps.watch(&WatchParams::default(), "0")).await?.err();
    assert!(matches!(&refused, Some(Error::Api(status)) if status.is_forbidden()), "{refused:?}");
    assert_eq!(fault.strikes(), 1);
    Ok(())
}
