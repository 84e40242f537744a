//! A proxy in front of an API server that forwards everything unchanged until a test injects a fault.

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
pub use tls::acceptor as tls_acceptor;

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

/// The body of a response to a client. An error breaks the connection.
type Body = UnsyncBoxBody<Bytes, anyhow::Error>;

/// A proxy between clients and a real API server.
///
/// It speaks HTTP/1.1 and HTTP/2, connects to the API server with the identity of the client, and records
/// every request. It rejects upgraded connections, such as those of `exec` and `port-forward`.
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
    /// The task that owns all other tasks of the proxy.
    _server: JoinSet<()>,
}

/// A request to cut all connections. The channel confirms that it is done.
type Cut = oneshot::Sender<()>;

/// The state that all connections share.
struct Shared {
    authority: Arc<Authority>,
    upstream: SocketAddr,
    /// The API server, reached as a user in `system:masters`.
    admin: Upstream,
    faults: Faults,
    log: Log,
}

impl FaultProxy {
    /// Starts a proxy in front of the API server of a cluster.
    pub async fn before(cluster: &Cluster) -> Result<Self> {
        Self::start(cluster.authority().clone(), cluster.address()).await
    }

    /// Starts a proxy on a free loopback port, in front of the API server at this address.
    pub async fn start(authority: Arc<Authority>, upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot open a port for a fault proxy")?;
        let address = listener.local_addr()?;
        let tls = tls::acceptor(&authority)?;
        let admin = authority.client("bellwether-fault-proxy", Some("system:masters"))?;
        let admin = Upstream::new(upstream, &authority, Some(&admin))?;
        let shared =
            Arc::new(Shared { authority, upstream, admin, faults: Faults::default(), log: Log::default() });
        let (cuts, cut_requests) = mpsc::unbounded_channel();

        let mut server = JoinSet::new();
        let sessions = shared.clone();
        server.spawn(async move {
            let serve = |socket| {
                let session = session::serve(socket, tls.clone(), sessions.clone());
                async {
                    // Broken connections are the purpose of this proxy; the test checks the error at the
                    // client.
                    let _ = session.await;
                }
            };
            accept(listener, cut_requests, serve).await;
        });
        Ok(Self { address, shared, cuts, _server: server })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Injects a fault into matching requests until the returned value is dropped.
    ///
    /// At most one fault strikes a request: of those that match and have strikes left, the one that was
    /// injected first. Requests in flight are not affected; [`cut_all`](Self::cut_all) makes clients
    /// reconnect.
    pub fn inject(&self, requests: Requests, fault: Fault) -> Injected {
        self.shared.faults.inject(requests, fault)
    }

    /// The last 100,000 requests, in the order of their arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.log.requests()
    }

    /// Counts matching requests, including those that are no longer recorded.
    pub fn count(&self, which: &Requests) -> usize {
        self.shared.log.count(which)
    }

    /// Clears the record of requests and their count.
    pub fn forget(&self) {
        self.shared.log.forget();
    }

    /// Cuts every open connection, in the middle of whatever it carries, and returns when all are closed. New
    /// connections are accepted.
    pub async fn cut_all(&self) {
        let (cut, done) = oneshot::channel();
        // Sending fails only if the server has ended, and with it all connections.
        if self.cuts.send(cut).is_ok() {
            let _ = done.await;
        }
    }
}

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
            // Cuts have priority: many new connections must not delay one.
            biased;
            Some(cut) = cuts.recv() => {
                connections.shutdown().await;
                // The caller may have been dropped.
                let _ = cut.send(());
            }
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => drop(connections.spawn(serve(socket))),
                // Too many open files: retry after some have been closed.
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
        }
    }
}
