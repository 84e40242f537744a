//! The fault proxy in front of a real API server: each fault breaks what it should and nothing else.

mod answers;
mod choice;
mod connections;
mod holding;
mod http2;
mod passing;
mod past;
mod streams;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bellwether_testkit::{Access, Cluster, FaultProxy, eventually, shared};
use futures::{Stream, StreamExt, stream::BoxStream};
use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    client::Body,
};
use serde_json::json;
use tokio::time::timeout;

/// Longer than any step of a passing test.
const SOON: Duration = bellwether_testkit::TIMEOUT;

/// How long a test waits to be sure that nothing arrives.
const SILENCE: Duration = Duration::from_secs(2);

async fn soon<T>(what: impl Future<Output = T>) -> Result<T> {
    timeout(SOON, what).await.context("timed out")
}

/// A namespace with ConfigMaps, read through a proxy and directly.
struct Fixture {
    cluster: &'static Cluster,
    namespace: String,
    proxy: FaultProxy,
    client: Client,
    through: Api<ConfigMap>,
    direct: Api<ConfigMap>,
}

impl Fixture {
    async fn new(purpose: &str) -> Result<Self> {
        let cluster = shared::cluster().await?;
        let namespace = cluster.namespace(purpose).await?;
        let proxy = FaultProxy::before(cluster).await?;
        let client = cluster.admin().via(proxy.address()).client().await?;
        Ok(Self {
            through: Api::namespaced(client.clone(), &namespace),
            direct: Api::namespaced(cluster.admin().client().await?, &namespace),
            cluster,
            namespace,
            proxy,
            client,
        })
    }

    /// Creates a ConfigMap directly, and returns its resourceVersion.
    async fn create(&self, name: &str) -> Result<String> {
        let created = self.direct.create(&PostParams::default(), &config_map(name)?).await?;
        created.resource_version().context("the object has no resourceVersion")
    }

    /// Changes a ConfigMap directly.
    async fn change(&self, name: &str) -> Result<()> {
        let change = Patch::Merge(json!({ "data": { "key": "new" } }));
        self.direct.patch(name, &PatchParams::default(), &change).await?;
        Ok(())
    }

    /// The current resourceVersion.
    async fn now(&self) -> Result<String> {
        let list = self.direct.list(&ListParams::default()).await?;
        list.metadata.resource_version.context("the list has no resourceVersion")
    }

    /// The path of an exact list at the current resourceVersion: it always returns the same bytes. Other
    /// lists carry the resourceVersion of the cluster, to which other tests write.
    async fn path_of_now(&self) -> Result<String> {
        Ok(self.path(&format!("resourceVersion={}&resourceVersionMatch=Exact", self.now().await?)))
    }

    /// The path of the ConfigMaps in the namespace, with a query.
    fn path(&self, query: &str) -> String {
        format!("/api/v1/namespaces/{}/configmaps?{query}", self.namespace)
    }
}

fn config_map(name: &str) -> Result<ConfigMap> {
    Ok(serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "key": "old" } }))?)
}

type Events = BoxStream<'static, kube::Result<WatchEvent<ConfigMap>>>;

/// Watches without bookmarks, which would arrive at unpredictable times.
async fn watch(maps: &Api<ConfigMap>, since: &str) -> Result<Events> {
    let parameters = WatchParams::default().disable_bookmarks();
    Ok(soon(maps.watch(&parameters, since)).await??.boxed())
}

/// The next event as text, such as `added NAME`.
async fn next(
    events: &mut (impl Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin),
) -> Result<String> {
    let event = soon(events.next()).await?.context("the watch ended")??;
    Ok(match event {
        WatchEvent::Added(map) => format!("added {}", map.name_any()),
        WatchEvent::Modified(map) => format!("modified {}", map.name_any()),
        WatchEvent::Deleted(map) => format!("deleted {}", map.name_any()),
        WatchEvent::Bookmark(bookmark) => {
            format!("bookmark {} {:?}", bookmark.metadata.resource_version, bookmark.metadata.annotations)
        }
        WatchEvent::Error(status) => format!("error {} {}", status.code, status.reason),
    })
}

/// Checks that the future does not complete.
async fn nothing_comes<T>(of: impl Future<Output = T>) -> Result<()> {
    ensure!(timeout(SILENCE, of).await.is_err(), "expected a timeout");
    Ok(())
}

/// The text of a response, and whether it ends in order.
async fn arrived(client: &Client, uri: &str) -> Result<(String, bool)> {
    let request = Request::get(uri).body(Body::empty())?;
    let mut body = soon(client.send(request)).await??.into_body();
    let mut bytes = Vec::new();
    let whole = loop {
        match soon(body.frame()).await? {
            Some(Ok(frame)) => bytes.extend(frame.into_data().unwrap_or_default()),
            Some(Err(_)) => break false,
            None => break true,
        }
    };
    Ok((String::from_utf8(bytes)?, whole))
}

async fn names(maps: &Api<ConfigMap>) -> Result<Vec<String>> {
    let list = soon(maps.list(&ListParams::default())).await??;
    Ok(list.iter().map(ResourceExt::name_any).collect())
}

/// Waits until the API server's metrics count this many watches of a resource. Nothing else in the shared
/// cluster may watch the resource.
async fn watches_served(access: &Access, resource: &str, expected: usize) -> Result<()> {
    let client = access.client().await?;
    let resource = format!("resource=\"{resource}\"");
    let what = format!("{expected} watches with {resource} are served");
    eventually(SOON, &what, async || {
        let request = Request::get("/metrics").body(Vec::new())?;
        let metrics = soon(client.request_text(request)).await??;
        let served: usize = metrics
            .lines()
            .filter(|line| line.starts_with("apiserver_longrunning_requests{") && line.contains(&resource))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
            .sum();
        Ok(served == expected)
    })
    .await
}
