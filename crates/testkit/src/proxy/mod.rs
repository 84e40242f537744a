//! A proxy before an API server which passes everything on as it is, until it is told to break something.

mod call;
mod fault;
mod headers;
mod injected;
mod lines;
mod log;
mod past;
mod query;
mod requests;
mod session;
mod status;
mod tls;
mod upstream;

pub use call::{Call, Resource, Verb};
pub use fault::Fault;
pub use injected::Injected;
pub use log::Recorded;
pub use requests::Requests;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::sleep,
};

use crate::{cluster::Cluster, pki::Authority};
use injected::Faults;
use log::Log;
use upstream::Upstream;

/// The body of an answer on its way to a client. An error breaks the connection.
type Body = UnsyncBoxBody<Bytes, anyhow::Error>;

/// A proxy between clients and a real API server.
///
/// It speaks HTTP/1.1 and HTTP/2, goes on to the API server as the very client that came, keeps a record of what was
/// asked, and breaks what it is told to break. Connections that become something else than HTTP, as those of `exec`
/// and `port-forward` do, are refused.
///
/// Dropping it closes its port and all its connections.
///
/// ```no_run
/// # use bellwether_testkit::{Cluster, Fault, FaultProxy, Requests, StatusCode, Verb};
/// # async fn example(cluster: &Cluster) -> anyhow::Result<()> {
/// let proxy = FaultProxy::before(cluster).await?;
/// let client = cluster.admin().via(proxy.address()).client().await?;
/// let expired = Fault::ErrorEvent(StatusCode::GONE);
/// let fault = proxy.inject(Requests::of(Verb::Watch, "pods").times(1), expired);
/// // … `client` watches …
/// fault.struck(1).await;
/// # Ok(())
/// # }
/// ```
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    cuts: mpsc::UnboundedSender<Cut>,
    /// The one task that owns all others, which end with it.
    _server: JoinSet<()>,
}

/// Asks for a cut; the answer comes when it is made.
type Cut = oneshot::Sender<()>;

/// What all connections share.
struct Shared {
    authority: Arc<Authority>,
    upstream: SocketAddr,
    /// The API server as the proxy itself reaches it, with every right.
    insider: Upstream,
    faults: Faults,
    log: Log,
}

impl FaultProxy {
    /// Starts a proxy before the API server of a cluster.
    pub async fn before(cluster: &Cluster) -> Result<Self> {
        Self::start(cluster.authority().clone(), cluster.address()).await
    }

    /// Starts a proxy on a free port of loopback, before the API server at this address.
    pub async fn start(authority: Arc<Authority>, upstream: SocketAddr) -> Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port for a fault proxy")?;
        let address = listener.local_addr()?;
        let tls = tls::acceptor(&authority)?;
        let itself = authority.client("bellwether-fault-proxy", Some("system:masters"))?;
        let insider = Upstream::new(upstream, &authority, Some(&itself))?;
        let shared =
            Arc::new(Shared { authority, upstream, insider, faults: Faults::default(), log: Log::default() });
        let (cuts, asked_cuts) = mpsc::unbounded_channel();

        let mut server = JoinSet::new();
        let sessions = shared.clone();
        server.spawn(async move {
            let serve = |socket| {
                let session = session::serve(socket, tls.clone(), sessions.clone());
                async {
                    // How a connection ends is the client's to tell; a broken one is what proxies are here for.
                    let _ = session.await;
                }
            };
            accept(listener, asked_cuts, serve).await;
        });
        Ok(Self { address, shared, cuts, _server: server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets a fault strike requests from now on, until what this gives back is dropped.
    ///
    /// One fault at most strikes a request when it comes: of those that mean it and have strikes left, the one that was
    /// injected first. What runs already runs on; [`cut_all`](Self::cut_all) makes clients come again.
    pub fn inject(&self, requests: Requests, fault: Fault) -> Injected {
        self.shared.faults.inject(requests, fault)
    }

    /// What has been asked so far, in the order in which it came: the last 100,000 requests.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.log.requests()
    }

    /// How many such requests have come so far, also of those that are no longer on record.
    pub fn count(&self, which: &Requests) -> usize {
        self.shared.log.count(which)
    }

    /// Empties the record of requests, and counts from nought.
    pub fn forget(&self) {
        self.shared.log.forget();
    }

    /// Cuts every connection over which anything was asked, in the middle of whatever goes over it. When this returns,
    /// all of them are cut; new ones are welcome.
    pub async fn cut_all(&self) {
        let (cut, is_made) = oneshot::channel();
        // Without a server there are no connections.
        if self.cuts.send(cut).is_ok() {
            let _ = is_made.await;
        }
    }
}

/// Takes connections in for ever.
async fn accept<S>(
    listener: TcpListener,
    mut cuts: mpsc::UnboundedReceiver<Cut>,
    serve: impl Fn(TcpStream) -> S,
) where
    S: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // A cut comes first: many who connect at once must not keep it waiting.
            biased;
            Some(cut) = cuts.recv() => {
                connections.shutdown().await;
                // Who asked may have gone.
                let _ = cut.send(());
            }
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => drop(connections.spawn(serve(socket))),
                // The process has too many files open: some will be closed.
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
        }
    }
}
