//! Connections and what becomes of them: none is left behind, none pays for another.

use std::{net::TcpListener, sync::Arc};

use anyhow::Result;
use bellwether_testkit::{Fault, FaultProxy, Requests, Verb, eventually, shared};
use futures::StreamExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PodTemplate};
use kube::{Api, api::WatchParams};
use tokio::net::TcpStream;

use super::{SOON, Stage, http2::Connection, next, soon, watch, watches_served};

#[tokio::test]
async fn a_watch_ends_upstream_when_its_client_goes() -> Result<()> {
    let stage = Stage::set("connections").await?;
    let (admin, kind) = (stage.cluster.admin(), "podtemplates");
    let faults = [
        None,
        Some(Fault::DelayEvents(SOON)),
        Some(Fault::CutMidLine { after_lines: 1 }),
        Some(Fault::HalfOpen { after_lines: 1 }),
    ];
    let parameters = WatchParams::default().disable_bookmarks();
    for fault in faults {
        let _fault = fault.map(|fault| stage.proxy.inject(Requests::all(), fault));
        let client = admin.via(stage.proxy.address()).client().await?;
        let templates: Api<PodTemplate> = Api::namespaced(client, &stage.namespace);
        let events = soon(templates.watch(&parameters, "0")).await??.boxed();
        watches_served(admin, kind, 1).await?;
        drop((events, templates));
        watches_served(admin, kind, 0).await?;
    }
    Ok(())
}

#[tokio::test]
async fn all_connections_are_cut_and_new_ones_are_welcome() -> Result<()> {
    let stage = Stage::set("connections").await?;
    let since = stage.now().await?;
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(watch(&stage.through, &since).await?);
    }
    stage.proxy.cut_all();
    for mut events in watches {
        let end = soon(events.next()).await?;
        assert!(!matches!(end, Some(Ok(_))), "an event after the cut: {end:?}");
    }
    stage.create("after").await?;
    let mut events = watch(&stage.through, &since).await?;
    assert_eq!(next(&mut events).await?, "added after");
    Ok(())
}

#[tokio::test]
async fn a_dropped_proxy_leaves_nothing_behind() -> Result<()> {
    // A runtime of its own, so that all tasks in it are the proxy's.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let stage = Stage::set("connections").await?;
    let (authority, api_server) = (Arc::clone(stage.cluster.authority()), stage.cluster.address());
    let proxy = runtime.spawn(FaultProxy::start(authority, api_server)).await??;
    let _silence = proxy.inject(Requests::all().verb(Verb::Get), Fault::HalfOpen { after_lines: 0 });
    let access = stage.cluster.admin().via(proxy.address());
    let maps: Api<ConfigMap> = Api::namespaced(access.client().await?, &stage.namespace);
    let since = stage.now().await?;
    let mut events = watch(&maps, &since).await?;
    let mut connection = Connection::open(access).await?;
    let over_http_2 = connection.ask(&stage.path(&format!("watch=true&resourceVersion={since}"))).await?;
    let unanswered = tokio::spawn(async move { maps.get("one").await });
    eventually(SOON, "all have asked", async || Ok(proxy.requests().len() == 3)).await?;

    let address = proxy.address();
    drop(proxy);
    eventually(SOON, "the port is closed", async || Ok(TcpStream::connect(address).await.is_err())).await?;
    assert!(!matches!(soon(events.next()).await?, Some(Ok(_))));
    assert!(soon(over_http_2.collect()).await?.is_err());
    assert!(soon(unanswered).await??.is_err());
    let tasks = runtime.metrics();
    eventually(SOON, "all tasks are gone", async || Ok(tasks.num_alive_tasks() == 0)).await?;
    runtime.shutdown_background();
    Ok(())
}

#[tokio::test]
async fn an_api_server_that_is_away_is_a_broken_connection() -> Result<()> {
    let cluster = shared::cluster().await?;
    let nobody = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let proxy = FaultProxy::start(Arc::clone(cluster.authority()), nobody).await?;
    let namespaces: Api<Namespace> = Api::all(cluster.admin().via(proxy.address()).client().await?);
    let error = soon(namespaces.get("default")).await?.expect_err("nobody is there to answer");
    assert!(!matches!(error, kube::Error::Api(_)), "{error:?}");
    assert_eq!(proxy.requests()[0].status, None);
    Ok(())
}
