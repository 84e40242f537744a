//! The connection of one client.

use std::{
    future::pending,
    sync::{Arc, Mutex, Weak},
};

use anyhow::{Context, Result, bail};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use bytes::Bytes;
use http::{
    HeaderMap, Request, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, UPGRADE, USER_AGENT},
};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, rt::Executor, service::service_fn};
use hyper_util::{rt::TokioIo, server::conn::auto};
use jiff::Timestamp;
use serde_json::Value;
use tokio::{net::TcpStream, task::JoinSet, time::sleep};
use tokio_rustls::TlsAcceptor;

use super::{
    Body, Shared,
    call::{Call, Verb},
    fault::Fault,
    injected::Strike,
    lines,
    log::Recorded,
    past::StaleRead,
    requests::RequestAttributes,
    status,
    upstream::Upstream,
};
use crate::lock;

/// Serves a client until it disconnects.
pub(super) async fn serve(socket: TcpStream, tls: TlsAcceptor, shared: Arc<Shared>) -> Result<()> {
    socket.set_nodelay(true)?;
    let socket = tls.accept(socket).await?;
    let certificate = socket.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let session = Arc::new(Session::of(certificate.map(AsRef::as_ref), shared)?);
    let streams = Arc::default();
    auto::Builder::new(Streams(Arc::downgrade(&streams)))
        .serve_connection(
            TokioIo::new(socket),
            service_fn(move |request| {
                let session = session.clone();
                async move { session.answer(request).await }
            }),
        )
        .await
        .map_err(anyhow::Error::from_boxed)
}

/// Runs the concurrent requests of an HTTP/2 connection. The task of the connection owns them, so they end
/// with it. The reference is weak because hyper keeps a clone of the executor in every request.
#[derive(Clone)]
struct Streams(Weak<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        if let Some(streams) = self.0.upgrade() {
            let mut streams = lock(&streams);
            while streams.try_join_next().is_some() {}
            streams.spawn(stream);
        }
    }
}

struct Session {
    shared: Arc<Shared>,
    /// The user of the client certificate.
    user: Option<String>,
    upstream: Upstream,
}

impl Session {
    fn of(certificate: Option<&[u8]>, shared: Arc<Shared>) -> Result<Self> {
        let known = |der| shared.authority.client_with_certificate(der);
        let identity = certificate
            .map(|der| known(der).context("this authority has not issued the client certificate"))
            .transpose()?;
        let upstream = Upstream::new(shared.upstream, &shared.authority, identity.as_ref())?;
        Ok(Self { shared, user: identity.map(|identity| identity.user), upstream })
    }

    /// Answers a request. An error breaks the connection, or in HTTP/2 the stream. If the API server is down,
    /// the connection breaks too: a 502 of the proxy would be a response that clients of an API server never
    /// get.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>> {
        let attributes = RequestAttributes {
            call: Call::of(request.method(), request.uri()),
            user: self.user.clone().unwrap_or_else(|| user_of(request.headers())),
            user_agent: header(request.headers(), &USER_AGENT).map(str::to_owned),
        };
        let call = attributes.call.clone();
        let strike = self.shared.faults.strike(&attributes);
        let record = Recorded {
            at: Timestamp::now(),
            call: call.clone(),
            user: attributes.user.clone(),
            user_agent: attributes.user_agent.clone(),
            accept: header(request.headers(), &ACCEPT).map(str::to_owned),
            uri: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            version: request.version(),
            status: None,
            struck: strike.is_some(),
        };
        let entry = self.shared.log.open(attributes, record);
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head, body.collect().await?.to_bytes());
        let response = match strike {
            None => self.forward(&call, request).await?,
            Some(strike) => self.apply(&strike, &call, request).await?,
        };
        self.shared.log.answered(entry, response.status());
        Ok(response)
    }

    async fn apply(&self, strike: &Strike, call: &Call, request: Request<Bytes>) -> Result<Response<Body>> {
        let response = match strike.fault() {
            Fault::Delay(time) => {
                sleep(time).await;
                self.forward(call, request).await?
            }
            Fault::DelayEvents(time) => {
                lines::of_events(self.forward(call, request).await?, |events| lines::delay(events, time))
            }
            Fault::HoldEvents => lines::of_events(self.forward(call, request).await?, |events| {
                lines::hold(events, strike.lifted())
            }),
            Fault::CutMidLine { after_lines } => {
                self.forward(call, request).await?.map(|body| lines::cut_mid_line(body, after_lines))
            }
            Fault::HalfOpen { after_lines: 0 } if call.verb != Verb::Watch => pending().await,
            Fault::HalfOpen { after_lines } => {
                self.forward(call, request).await?.map(|body| lines::fall_silent(body, after_lines))
            }
            Fault::Answer { status: code, retry_after } => {
                let failure = status::failure(code, call, injected(code));
                status::answer(&match retry_after {
                    Some(wait) => status::retry_after(failure, wait),
                    None => failure,
                })?
            }
            Fault::ErrorEvent(code) => status::event(&status::failure(code, call, injected(code)))?,
            Fault::LoseResponse | Fault::HoldResponse => whole(self.forward(call, request).await?).await?,
            Fault::Past { resource_version } => {
                let (client, admin) = (&self.upstream, &self.shared.admin);
                StaleRead { resource_version, call, strike, client, admin }.answer(request).await?
            }
        };
        strike.done();
        match strike.fault() {
            Fault::LoseResponse => bail!("fault proxy: response lost"),
            Fault::HoldResponse => strike.lifted().await,
            _ => {}
        }
        Ok(response)
    }

    async fn forward(&self, call: &Call, request: Request<Bytes>) -> Result<Response<Body>> {
        if request.headers().contains_key(UPGRADE) {
            let message = "The fault proxy does not support upgraded connections, such as those of exec and port-forward.";
            return status::answer(&status::failure(StatusCode::NOT_IMPLEMENTED, call, message.to_owned()));
        }
        self.upstream.send(request).await
    }
}

/// Reads the whole body of a response.
async fn whole(response: Response<Body>) -> Result<Response<Body>> {
    let (head, body) = response.into_parts();
    let body = Full::new(body.collect().await?.to_bytes()).map_err(|never| match never {});
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

fn injected(code: StatusCode) -> String {
    format!("fault proxy: {code}")
}

/// The user of a client without a certificate, from its token. Only for the record: the API server checks the
/// token.
fn user_of(headers: &HeaderMap) -> String {
    let Some(authorization) = header(headers, &AUTHORIZATION) else {
        return "system:anonymous".to_owned();
    };
    let subject = || {
        let payload = BASE64.decode(authorization.strip_prefix("Bearer ")?.split('.').nth(1)?).ok()?;
        let claims: Value = serde_json::from_slice(&payload).ok()?;
        claims["sub"].as_str().map(str::to_owned)
    };
    subject().unwrap_or_else(|| "unknown".to_owned())
}

fn header<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
