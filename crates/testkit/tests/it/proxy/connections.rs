//! Connections and what becomes of them: none is left behind, none pays for another.

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

use super::{SOON, Stage, http2::Connection, next, soon, watch, watches_served};

#[tokio::test]
async fn a_watch_ends_upstream_when_its_client_goes() -> Result<()> {
    let stage = Stage::set("connections").await?;
    let (admin, kind) = (stage.cluster.admin(), "podtemplates");
    let faults = [
        None,
        Some(Fault::DelayEvents(SOON)),
        Some(Fault::HoldEvents),
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
    soon(stage.proxy.cut_all()).await?;
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
async fn a_cut_is_over_when_it_says_so() -> Result<()> {
    let (apart, cluster) = (Apart::new()?, shared::cluster().await?);
    let proxy = apart.start_proxy(cluster).await?;
    for _ in 0..3 {
        // Connections over which nothing goes, so that each is one task.
        let connect = || TcpStream::connect(proxy.address());
        let connections = [connect().await?, connect().await?];
        eventually(SOON, "both are taken in", async || Ok(apart.tasks() == 3)).await?;
        soon(proxy.cut_all()).await?;
        assert_eq!(apart.tasks(), 1, "only the server is left");
        for mut connection in connections {
            let end = soon(connection.read(&mut [0])).await?;
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        }
    }
    Ok(())
}

/// A runtime for a proxy alone, so that all tasks in it are the proxy's. It has a single worker, which counts no task
/// that has ended when it goes on to the next.
struct Apart(Option<Runtime>);

impl Apart {
    fn new() -> Result<Self> {
        Ok(Self(Some(runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?)))
    }

    async fn start_proxy(&self, cluster: &'static Cluster) -> Result<FaultProxy> {
        self.0.as_ref().context("it runs")?.spawn(FaultProxy::before(cluster)).await?
    }

    fn tasks(&self) -> usize {
        self.0.as_ref().map_or(0, |runtime| runtime.metrics().num_alive_tasks())
    }
}

/// A runtime must not wait for its own end within another.
impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[tokio::test]
async fn a_dropped_proxy_leaves_nothing_behind() -> Result<()> {
    let (apart, stage) = (Apart::new()?, Stage::set("connections").await?);
    let proxy = apart.start_proxy(stage.cluster).await?;
    let _silence = proxy.inject(Requests::all().verb(Verb::Get), Fault::HalfOpen { after_lines: 0 });
    let access = stage.cluster.admin().via(proxy.address());
    let maps: Api<ConfigMap> = Api::namespaced(access.client().await?, &stage.namespace);
    let since = stage.now().await?;
    let mut events = watch(&maps, &since).await?;
    let mut connection = Connection::open(access.clone()).await?;
    let over_http_2 = connection.ask(&stage.path(&format!("watch=true&resourceVersion={since}"))).await?;
    let unanswered = tokio::spawn(async move { maps.get("one").await });
    eventually(SOON, "all have asked", async || Ok(proxy.requests().len() == 3)).await?;

    drop(proxy);
    eventually(SOON, "the port is closed", async || {
        // Another server may have got the port meanwhile.
        let found = Box::pin(Connection::open(access.clone())).await;
        Ok(found.map_or(true, |found| found.certificate != connection.certificate))
    })
    .await?;
    assert!(!matches!(soon(events.next()).await?, Some(Ok(_))));
    assert!(soon(over_http_2.collect()).await?.is_err());
    assert!(soon(unanswered).await??.is_err());
    eventually(SOON, "all tasks are gone", async || Ok(apart.tasks() == 0)).await
}

#[tokio::test]
async fn an_api_server_that_is_away_is_a_broken_connection() -> Result<()> {
    let cluster = shared::cluster().await?;
    // A port that is taken, and where nobody listens.
    let nobody = TcpSocket::new_v4()?;
    nobody.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let proxy = FaultProxy::start(cluster.authority().clone(), nobody.local_addr()?).await?;
    let namespaces: Api<Namespace> = Api::all(cluster.admin().via(proxy.address()).client().await?);
    let error = soon(namespaces.get("default")).await?.expect_err("nobody is there to answer");
    assert!(!matches!(error, kube::Error::Api(_)), "{error:?}");
    assert_eq!(proxy.requests()[0].status, None);
    Ok(())
}
