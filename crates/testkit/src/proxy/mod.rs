//! A proxy before an API server which passes everything on as it is, until it is told to break something.

mod call;
mod fault;
mod headers;
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
pub use fault::{Fault, Injected};
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
    sync::Notify,
    task::JoinSet,
    time::sleep,
};

use crate::pki::Authority;
use fault::Faults;
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
/// # use std::{net::SocketAddr, sync::Arc};
/// # use bellwether_testkit::{Access, Authority, Fault, FaultProxy, Requests, StatusCode, Verb};
/// # async fn example(admin: Access, authority: Arc<Authority>, api_server: SocketAddr) -> anyhow::Result<()> {
/// let proxy = FaultProxy::start(authority, api_server).await?;
/// let client = admin.via(proxy.address()).client().await?;
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
    cut: Arc<Notify>,
    /// The one task that owns all others, which end with it.
    _server: JoinSet<()>,
}

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
        let cut = Arc::new(Notify::new());

        let mut server = JoinSet::new();
        let (sessions, cuts) = (shared.clone(), cut.clone());
        server.spawn(async move {
            let serve = |socket| {
                let session = session::serve(socket, tls.clone(), sessions.clone());
                async {
                    // How a connection ends is the client's to tell; a broken one is what proxies are here for.
                    let _ = session.await;
                }
            };
            accept(listener, &cuts, serve).await;
        });
        Ok(Self { address, shared, cut, _server: server })
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

    /// What has been asked so far, in the order in which it came.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.log.requests()
    }

    /// How many such requests have come so far.
    pub fn count(&self, which: &Requests) -> usize {
        self.shared.log.count(which)
    }

    /// Empties the record of requests.
    pub fn forget(&self) {
        self.shared.log.forget();
    }

    /// Cuts every open connection, in the middle of whatever goes over it. New ones are welcome.
    pub fn cut_all(&self) {
        self.cut.notify_one();
    }
}

/// Takes connections in for ever.
async fn accept<S>(listener: TcpListener, cuts: &Notify, serve: impl Fn(TcpStream) -> S)
where
    S: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // A cut comes first, so that who connects after it is not cut as well.
            biased;
            () = cuts.notified() => connections.shutdown().await,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => drop(connections.spawn(serve(socket))),
                // The process has too many files open: some will be closed.
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
        }
    }
}
