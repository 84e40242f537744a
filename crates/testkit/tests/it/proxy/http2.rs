//! HTTP/2: many requests share a connection.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bellwether_testkit::{Access, Fault, Login, Requests, Verb};
use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::{net::TcpStream, task::JoinSet};
use tokio_rustls::TlsConnector;

use super::{Fixture, soon, watches_served};

/// A connection for concurrent requests. Clones share it.
#[derive(Clone)]
pub(super) struct Connection {
    access: Access,
    /// Identifies the server: each proxy has its own certificate.
    pub(super) certificate: Option<CertificateDer<'static>>,
    sender: http2::SendRequest<Empty<Bytes>>,
    _task: Arc<JoinSet<()>>,
}

impl Connection {
    pub(super) async fn open(access: Access) -> Result<Self> {
        let Login::Certificate(identity) = &access.login else { bail!("a client certificate is required") };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(access.authority.certificate().as_bytes())?)?;
        let certificate = CertificateDer::from_pem_slice(identity.credentials.certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(identity.credentials.key.as_bytes())?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::IpAddress(access.address.ip().into());
        let socket = soon(TcpStream::connect(access.address)).await??;
        let socket = soon(TlsConnector::from(Arc::new(config)).connect(name, socket)).await??;
        let of_server = socket.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned();
        let (sender, connection) =
            soon(http2::handshake(TokioExecutor::new(), TokioIo::new(socket))).await??;
        let mut task = JoinSet::new();
        task.spawn(async { drop(connection.await) });
        Ok(Self { access, certificate: of_server, sender, _task: Arc::new(task) })
    }

    pub(super) async fn ask(&mut self, path: &str) -> Result<Incoming> {
        let uri = format!("https://{}{path}", self.access.address);
        let request = Request::get(uri).version(Version::HTTP_2).body(Empty::new())?;
        Ok(soon(self.sender.send_request(request)).await??.into_body())
    }
}

#[tokio::test]
async fn a_fault_breaks_only_its_stream() -> Result<()> {
    let fixture = Fixture::new("http2").await?;
    let mut connection = Connection::open(fixture.cluster.admin().via(fixture.proxy.address())).await?;
    let since = fixture.now().await?;
    let mut events = connection.ask(&fixture.path(&format!("watch=true&resourceVersion={since}"))).await?;
    let lists = Requests::of(Verb::List, "configmaps");

    let lost = fixture.proxy.inject(lists.clone(), Fault::LoseResponse);
    assert!(connection.ask(&fixture.path("")).await.is_err());
    lost.lift();

    let path = fixture.path_of_now().await?;
    let whole = soon(connection.ask(&path).await?.collect()).await??.to_bytes();
    let cut = fixture.proxy.inject(lists, Fault::CutMidLine { after_lines: 0 });
    let mut half = connection.ask(&path).await?;
    let first = soon(half.frame()).await?.context("the first half is missing")??;
    assert_eq!(first.into_data().ok(), Some(whole.slice(..whole.len() / 2)));
    assert!(soon(half.frame()).await?.context("the body ended in order")?.is_err());
    cut.lift();

    fixture.create("one").await?;
    let event = soon(events.frame()).await?.context("the watch ended")??;
    let line = event.into_data().ok().context("the frame is not data")?;
    assert!(line.starts_with(br#"{"type":"ADDED""#));
    Ok(())
}

#[tokio::test]
async fn a_watch_ends_upstream_when_its_stream_is_dropped() -> Result<()> {
    let fixture = Fixture::new("http2").await?;
    let (admin, kind) = (fixture.cluster.admin(), "controllerrevisions");
    let mut connection = Connection::open(admin.via(fixture.proxy.address())).await?;
    let uri = format!("/apis/apps/v1/namespaces/{}/{kind}?watch=true&resourceVersion=0", fixture.namespace);
    let events = connection.ask(&uri).await?;
    watches_served(admin, kind, 1).await?;
    drop(events);
    watches_served(admin, kind, 0).await?;
    soon(connection.ask(&fixture.path("")).await?.collect()).await??;
    Ok(())
}
