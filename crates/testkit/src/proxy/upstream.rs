//! Connections to the API server.

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

/// The API server, reached as one user.
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

    /// Forwards a request and returns the response unchanged.
    ///
    /// Every request has its own connection, which ends with the body of the response. When a client
    /// disconnects, its request ends upstream as well, and no fault affects another request.
    pub(super) async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Body>> {
        headers::for_upstream(request.headers_mut(), HeaderValue::try_from(self.address.to_string())?);
        *request.uri_mut() = origin_form(request.uri())?;
        *request.version_mut() = http::Version::HTTP_11;

        let socket = TcpStream::connect(self.address).await.context("cannot reach the API server")?;
        socket.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let socket =
            self.tls.connect(name, socket).await.context("the TLS handshake with the API server failed")?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        let mut task = JoinSet::new();
        task.spawn(async {
            // The body of the response returns the same error.
            let _ = connection.await;
        });

        let mut response = sender.send_request(request.map(Full::new)).await?;
        headers::strip_connection(response.headers_mut());
        Ok(response.map(|body| ResponseBody { body, _connection: task }.boxed_unsync()))
    }
}

/// HTTP/2 has the host in the URL, HTTP/1.1 must not.
fn origin_form(uri: &Uri) -> Result<Uri> {
    uri.path_and_query().map_or("/", |it| it.as_str()).parse().context("cannot forward the URL of a request")
}

/// The body of a response, and its connection, which ends when this is dropped.
struct ResponseBody {
    body: Incoming,
    _connection: JoinSet<()>,
}

impl hyper::body::Body for ResponseBody {
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
