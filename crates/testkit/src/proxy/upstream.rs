//! The way on to the API server.

use std::{
    net::SocketAddr,
    pin::Pin,
    task::{Context as Task, Poll},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::{net::TcpStream, task::JoinSet};
use tokio_rustls::TlsConnector;

use super::{Body, headers, tls};
use crate::pki::{Authority, Identity};

/// The API server, as one user reaches it.
pub(super) struct Upstream {
    address: SocketAddr,
    tls: TlsConnector,
}

impl Upstream {
    pub(super) fn new(
        address: SocketAddr,
        authority: &Authority,
        identity: Option<&Identity>,
    ) -> Result<Self> {
        Ok(Self { address, tls: tls::connector(authority, identity)? })
    }

    /// Passes a request on and gives back what the API server says, as it says it.
    ///
    /// Every request has a connection of its own, which ends with the answer's body: when a client goes, its request
    /// ends upstream as well, and no fault reaches another request.
    pub(super) async fn ask(&self, mut request: Request<Bytes>) -> Result<Response<Body>> {
        headers::for_upstream(request.headers_mut(), HeaderValue::try_from(self.address.to_string())?);
        *request.uri_mut() = origin_form(request.uri())?;
        *request.version_mut() = http::Version::HTTP_11;

        let socket = TcpStream::connect(self.address).await.context("cannot reach the API server")?;
        socket.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let socket = self.tls.connect(name, socket).await.context("the API server refuses TLS")?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        let mut task = JoinSet::new();
        task.spawn(async {
            // An error here is the answer's error as well, and is met there.
            let _ = connection.await;
        });

        let mut response = sender.send_request(request.map(Full::new)).await?;
        headers::strip_connection(response.headers_mut());
        Ok(response.map(|body| Answer { body, _connection: task }.boxed_unsync()))
    }
}

/// HTTP/2 carries the host in the address, HTTP/1.1 must not.
fn origin_form(uri: &Uri) -> Result<Uri> {
    uri.path_and_query().map_or("/", |it| it.as_str()).parse().context("cannot pass on a request's address")
}

/// An answer's body together with its connection, which dropping ends.
struct Answer {
    body: Incoming,
    _connection: JoinSet<()>,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = anyhow::Error;

    fn poll_frame(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        Pin::new(&mut self.body).poll_frame(task).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
