//! Connections end when they should, and do not affect each other.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use bellwether_testkit::{Cluster, Fault, FaultProxy, Requests, Verb, eventually, shared};
use futures::StreamExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PodTemplate};
use kube::{Api, api::WatchParams};
use tokio::{
    io::AsyncReadExt,
    net::{TcpSocket, TcpStream},
    runtime::{self, Runtime},
};

use super::{Fixture, SOON, http2::Connection, next, soon, watch, watches_served};

#[tokio::test]
async fn a_watch_ends_upstream_when_its_client_disconnects() -> Result<()> {
    let fixture = Fixture::new("connections").await?;
    let (admin, kind) = (fixture.cluster.admin(), "podtemplates");
    let faults = [
        None,
        Some(Fault::DelayEvents(SOON)),
        Some(Fault::HoldEvents),
        Some(Fault::CutMidLine { after_lines: 1 }),
        Some(Fault::HalfOpen { after_lines: 1 }),
    ];
    let parameters = WatchParams::default().disable_bookmarks();
    for fault in faults {
        let _fault = fault.map(|fault| fixture.proxy.inject(Requests::all(), fault));
        let client = admin.via(fixture.proxy.address()).client().await?;
        let templates: Api<PodTemplate> = Api::namespaced(client, &fixture.namespace);
        let events = soon(templates.watch(&parameters, "0")).await??.boxed();
        watches_served(admin, kind, 1).await?;
        drop((events, templates));
        watches_served(admin, kind, 0).await?;
    }
    Ok(())
}

#[tokio::test]
async fn all_connections_are_cut_and_new_ones_accepted() -> Result<()> {
    let fixture = Fixture::new("connections").await?;
    let since = fixture.now().await?;
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(watch(&fixture.through, &since).await?);
    }
    soon(fixture.proxy.cut_all()).await?;
    for mut events in watches {
        let end = soon(events.next()).await?;
        assert!(!matches!(end, Some(Ok(_))), "an event after the cut: {end:?}");
    }
    fixture.create("after").await?;
    let mut events = watch(&fixture.through, &since).await?;
    assert_eq!(next(&mut events).await?, "added after");
    Ok(())
}

#[tokio::test]
async fn all_connections_are_closed_when_cut_all_returns() -> Result<()> {
    let (runtime, cluster) = (ProxyRuntime::new()?, shared::cluster().await?);
    let proxy = runtime.start_proxy(cluster).await?;
    for _ in 0..3 {
        // Idle connections: each is exactly one task.
        let connect = || TcpStream::connect(proxy.address());
        let connections = [connect().await?, connect().await?];
        eventually(SOON, "both connections are accepted", async || Ok(runtime.tasks() == 3)).await?;
        soon(proxy.cut_all()).await?;
        assert_eq!(runtime.tasks(), 1, "only the server remains");
        for mut connection in connections {
            let end = soon(connection.read(&mut [0])).await?;
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        }
    }
    Ok(())
}

/// A runtime that runs only a proxy, so that all its tasks belong to the proxy. With a single worker the
/// count of tasks is exact.
struct ProxyRuntime(Option<Runtime>);

impl ProxyRuntime {
    fn new() -> Result<Self> {
        Ok(Self(Some(runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?)))
    }

    async fn start_proxy(&self, cluster: &'static Cluster) -> Result<FaultProxy> {
        self.0.as_ref().context("the runtime has ended")?.spawn(FaultProxy::before(cluster)).await?
    }

    fn tasks(&self) -> usize {
        self.0.as_ref().map_or(0, |runtime| runtime.metrics().num_alive_tasks())
    }
}

/// Dropping a runtime inside another one panics.
impl Drop for ProxyRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[tokio::test]
async fn a_dropped_proxy_leaves_nothing_behind() -> Result<()> {
    let (runtime, fixture) = (ProxyRuntime::new()?, Fixture::new("connections").await?);
    let proxy = runtime.start_proxy(fixture.cluster).await?;
    let _silence = proxy.inject(Requests::all().verb(Verb::Get), Fault::HalfOpen { after_lines: 0 });
    let access = fixture.cluster.admin().via(proxy.address());
    let maps: Api<ConfigMap> = Api::namespaced(access.client().await?, &fixture.namespace);
    let since = fixture.now().await?;
    let mut events = watch(&maps, &since).await?;
    let mut connection = Connection::open(access.clone()).await?;
    let over_http_2 = connection.ask(&fixture.path(&format!("watch=true&resourceVersion={since}"))).await?;
    let unanswered = tokio::spawn(async move { maps.get("one").await });
    eventually(SOON, "all requests have arrived", async || Ok(proxy.requests().len() == 3)).await?;

    drop(proxy);
    eventually(SOON, "the port is closed", async || {
        // Another server may have taken the port meanwhile.
        let found = Box::pin(Connection::open(access.clone())).await;
        Ok(found.map_or(true, |found| found.certificate != connection.certificate))
    })
    .await?;
    assert!(!matches!(soon(events.next()).await?, Some(Ok(_))));
    assert!(soon(over_http_2.collect()).await?.is_err());
    assert!(soon(unanswered).await??.is_err());
    eventually(SOON, "all tasks have ended", async || Ok(runtime.tasks() == 0)).await
}

#[tokio::test]
async fn an_api_server_that_is_down_breaks_the_connection() -> Result<()> {
    let cluster = shared::cluster().await?;
    // Reserves a port without listening on it.
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let proxy = FaultProxy::start(cluster.authority().clone(), socket.local_addr()?).await?;
    let namespaces: Api<Namespace> = Api::all(cluster.admin().via(proxy.address()).client().await?);
    let error = soon(namespaces.get("default")).await?.expect_err("the API server is down");
    assert!(!matches!(error, kube::Error::Api(_)), "{error:?}");
    assert_eq!(proxy.requests()[0].status, None);
    Ok(())
}
