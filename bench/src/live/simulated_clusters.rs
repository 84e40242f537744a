//! Many clusters in one process: as much of an API server for each as a controller needs to follow the
//! Deployments there.
//!
//! They share a port, and a client says by its token which cluster it means. Each client has its own TLS
//! connection. Discovery is that of a real API server, and watches have bookmarks and timeouts as there.

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    future::ready,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use bellwether_testkit::{Access, Authority, Login, tls_acceptor};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{
    Request, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use serde_json::{Value as Json, json};
use tokio::{
    net::TcpListener,
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::server::Server;
use crate::{population::uid, workload::Workload};

const JSON: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const KUBE_SYSTEM: &str = "/api/v1/namespaces/kube-system";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";

/// API servers send bookmarks about once a minute.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// The resourceVersion of an empty cluster.
const FIRST_VERSION: u64 = 1;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Dropping it closes the port and all connections.
pub struct SimulatedClusters {
    address: SocketAddr,
    authority: Arc<Authority>,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

struct Shared {
    discovery: Discovery,
    /// By name, which is also the token of its client.
    clusters: HashMap<String, Mutex<SimulatedCluster>>,
}

/// Aggregated discovery.
struct Discovery {
    core: Bytes,
    named: Bytes,
}

struct SimulatedCluster {
    uid: String,
    version: u64,
    /// By number, with the resourceVersion of the last change.
    deployments: BTreeMap<usize, (u64, Json)>,
    watches: Vec<mpsc::UnboundedSender<Change>>,
}

/// A watch event and the resourceVersion after it.
struct Change {
    version: u64,
    line: Bytes,
}

impl SimulatedClusters {
    /// Starts all clusters of a workload. They serve the kinds of this API server.
    pub async fn start(workload: &Workload, clusters: usize, like: &Server) -> Result<Self> {
        let discovery = async |path| -> Result<Bytes> {
            let request = Request::get(path).header(ACCEPT, AGGREGATED).body(Vec::new())?;
            Ok(like.client().request_text(request).await?.into())
        };
        let discovery = Discovery { core: discovery("/api").await?, named: discovery("/apis").await? };
        let cluster = |number| {
            let cluster = SimulatedCluster::new(workload, number)?;
            Ok((Workload::cluster_name(number), Mutex::new(cluster)))
        };
        let clusters = (0..clusters).map(cluster).collect::<Result<_>>()?;
        let shared = Arc::new(Shared { discovery, clusters });
        let authority = Arc::new(Authority::new()?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut server = JoinSet::new();
        server.spawn(serve(listener, tls_acceptor(&authority)?, Arc::clone(&shared)));
        Ok(Self { address, authority, shared, _server: server })
    }

    pub fn kubeconfig(&self, cluster: usize) -> String {
        let name = Workload::cluster_name(cluster);
        let login = Login::Token { user: "controller".to_owned(), token: name.clone() };
        let authority = Arc::clone(&self.authority);
        Access { cluster: name, address: self.address, authority, login }.kubeconfig()
    }

    /// A cluster reports another number of available replicas.
    pub fn report(&self, deployment: usize, cluster: usize, available: u32) -> Result<()> {
        let name = Workload::cluster_name(cluster);
        let cluster = self.shared.clusters.get(&name).context("unknown cluster")?;
        lock(cluster).report(deployment, available)
    }
}

impl SimulatedCluster {
    fn new(workload: &Workload, number: usize) -> Result<Self> {
        let stored = |deployment| -> Result<_> {
            Ok((deployment, (FIRST_VERSION, workload.stored(deployment, number, FIRST_VERSION)?)))
        };
        Ok(Self {
            uid: uid(number),
            version: FIRST_VERSION,
            deployments: (0..workload.deployments()).map(stored).collect::<Result<_>>()?,
            watches: Vec::new(),
        })
    }

    fn report(&mut self, deployment: usize, available: u32) -> Result<()> {
        self.version += 1;
        let (version, stored) = self.deployments.get_mut(&deployment).context("unknown Deployment")?;
        *version = self.version;
        stored["metadata"]["resourceVersion"] = json!(version.to_string());
        if let (Some(status), Json::Object(replicas)) =
            (stored["status"].as_object_mut(), Workload::replicas(available))
        {
            status.extend(replicas);
        }
        let (version, line) = (*version, event("MODIFIED", stored));
        // A watch whose client has gone has no receiver.
        self.watches.retain(|watch| watch.send(Change { version, line: line.clone() }).is_ok());
        Ok(())
    }

    fn list(&self) -> Json {
        let items: Vec<_> = self.deployments.values().map(|(_, stored)| stored).collect();
        json!({
            "kind": "DeploymentList", "apiVersion": "apps/v1",
            "metadata": { "resourceVersion": self.version.to_string() }, "items": items,
        })
    }

    /// The changes since a resourceVersion, and all later ones. A Deployment that changed several times has one
    /// event.
    fn watch(&mut self, since: u64) -> mpsc::UnboundedReceiver<Change> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut missed: Vec<_> = self.deployments.values().filter(|(version, _)| *version > since).collect();
        missed.sort_by_key(|(version, _)| *version);
        for (version, stored) in missed {
            // The receiver is here.
            let _ = sender.send(Change { version: *version, line: event("MODIFIED", stored) });
        }
        self.watches.push(sender);
        receiver
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((socket, _)) = listener.accept().await else { return };
        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
        connections.spawn(async move {
            let answer = service_fn(move |request| ready(shared.answer(&request)));
            // A client may end its connection at any time.
            let _ = socket.set_nodelay(true);
            if let Ok(socket) = tls.accept(socket).await {
                let connection = auto::Builder::new(TokioExecutor::new());
                let _ = connection.serve_connection(TokioIo::new(socket), answer).await;
            }
        });
    }
}

impl Shared {
    fn answer(&self, request: &Request<Incoming>) -> Result<Response<Body>> {
        let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let name = token.and_then(|token| token.strip_prefix("Bearer "));
        let Some(cluster) = name.and_then(|name| self.clusters.get(name)) else {
            return failure(StatusCode::UNAUTHORIZED);
        };
        let mut cluster = lock(cluster);
        let query = request.uri().query().unwrap_or_default();
        match (request.uri().path(), parameter(query, "watch").is_some()) {
            ("/api", _) => respond(AGGREGATED, self.discovery.core.clone()),
            ("/apis", _) => respond(AGGREGATED, self.discovery.named.clone()),
            (KUBE_SYSTEM, _) => respond_json(&json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": { "name": "kube-system", "uid": cluster.uid },
            })),
            (CRDS, false) => respond_json(&json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": { "resourceVersion": cluster.version.to_string() }, "items": [],
            })),
            (CRDS, true) => respond_events(query, "PartialObjectMetadata", |_| stream::pending()),
            (DEPLOYMENTS, false) => respond_json(&cluster.list()),
            (DEPLOYMENTS, true) => respond_events(query, "Deployment", |since| {
                let mut changes = cluster.watch(since);
                stream::poll_fn(move |context| changes.poll_recv(context))
            }),
            _ => failure(StatusCode::NOT_FOUND),
        }
    }
}

/// Sends the changes since the resourceVersion of the query, and bookmarks, until its timeout.
fn respond_events<S>(
    query: &str,
    kind: &'static str,
    changes: impl FnOnce(u64) -> S,
) -> Result<Response<Body>>
where
    S: Stream<Item = Change> + Send + 'static,
{
    let number = |name| -> Result<u64> {
        let value = parameter(query, name).with_context(|| format!("a watch without {name}"))?;
        Ok(value.parse()?)
    };
    let (since, seconds) = (number("resourceVersion")?, number("timeoutSeconds")?);
    let lines =
        stream::unfold((Box::pin(changes(since)), since), async move |(mut changes, version)| match timeout(
            BOOKMARK_INTERVAL,
            changes.next(),
        )
        .await
        {
            Ok(change) => change.map(|Change { version, line }| (line, (changes, version))),
            Err(_) => Some((bookmark(kind, version), (changes, version))),
        });
    let frames = lines.take_until(sleep(Duration::from_secs(seconds))).map(|line| Ok(Frame::data(line)));
    let response = Response::builder().header(CONTENT_TYPE, JSON);
    Ok(response.body(StreamBody::new(frames).boxed_unsync())?)
}

fn respond_json(body: &Json) -> Result<Response<Body>> {
    respond(JSON, body.to_string().into())
}

fn respond(content_type: &str, body: Bytes) -> Result<Response<Body>> {
    Ok(Response::builder().header(CONTENT_TYPE, content_type).body(Full::new(body).boxed_unsync())?)
}

fn failure(code: StatusCode) -> Result<Response<Body>> {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16() });
    let mut response = respond_json(&status)?;
    *response.status_mut() = code;
    Ok(response)
}

fn event(type_: &str, object: &Json) -> Bytes {
    format!("{{\"type\":\"{type_}\",\"object\":{object}}}\n").into()
}

fn bookmark(kind: &str, version: u64) -> Bytes {
    event("BOOKMARK", &json!({ "kind": kind, "metadata": { "resourceVersion": version.to_string() } }))
}

/// The value of a parameter. Those that are read here have no escapes.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut parameters = query.split('&').filter_map(|parameter| parameter.split_once('='));
    parameters.find(|(own, _)| *own == name).map(|(_, value)| value)
}

fn lock(cluster: &Mutex<SimulatedCluster>) -> MutexGuard<'_, SimulatedCluster> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}
