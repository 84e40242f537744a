//! One client on one connection.

use std::{
    future::pending,
    sync::{Arc, Mutex, Weak},
};

use anyhow::{Context, Result, bail};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use bytes::Bytes;
use http::{
    HeaderMap, Request, Response, StatusCode,
    header::{AUTHORIZATION, UPGRADE, USER_AGENT},
};
use http_body_util::BodyExt;
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
    lines,
    log::Recorded,
    past::Past,
    status,
    upstream::Upstream,
};
use crate::lock;

/// Serves a client until it goes.
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

/// Runs the requests of an HTTP/2 connection, which come side by side. They end with the connection, whose task owns
/// them; hyper keeps its executor in every one of them, so that an owner here would own itself.
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
    /// Who the client's certificate says they are.
    user: Option<String>,
    upstream: Upstream,
}

impl Session {
    fn of(certificate: Option<&[u8]>, shared: Arc<Shared>) -> Result<Self> {
        let known = |der| shared.authority.client_with_certificate(der);
        let identity = certificate
            .map(|der| known(der).context("the certificate is none that this authority remembers"))
            .transpose()?;
        let upstream = Upstream::new(shared.upstream, &shared.authority, identity.as_ref())?;
        Ok(Self { shared, user: identity.map(|identity| identity.user), upstream })
    }

    /// Answers a request. An error breaks its connection, or in HTTP/2 its stream: so does an API server that is not
    /// there, for a proxy that said so in its own words would be something that no client ever meets.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>> {
        let call = Call::of(request.method(), request.uri());
        let user = self.user.clone().unwrap_or_else(|| user_of(request.headers()));
        let fault = self.shared.faults.strike(&call, &user);
        let entry = self.shared.log.open(Recorded {
            at: Timestamp::now(),
            call: call.clone(),
            user,
            user_agent: header(request.headers(), &USER_AGENT).map(str::to_owned),
            uri: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            version: request.version(),
            status: None,
            struck: fault.is_some(),
        });
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head, body.collect().await?.to_bytes());
        let response = self.respond(&call, fault, request).await?;
        self.shared.log.answered(entry, response.status());
        Ok(response)
    }

    async fn respond(
        &self,
        call: &Call,
        fault: Option<Fault>,
        request: Request<Bytes>,
    ) -> Result<Response<Body>> {
        match fault {
            None => self.pass_on(call, request).await,
            Some(Fault::Delay(time)) => {
                sleep(time).await;
                self.pass_on(call, request).await
            }
            Some(Fault::DelayEvents(time)) => {
                Ok(self.pass_on(call, request).await?.map(|body| lines::delay(body, time)))
            }
            Some(Fault::CutMidLine { after_lines }) => {
                Ok(self.pass_on(call, request).await?.map(|body| lines::cut_mid_line(body, after_lines)))
            }
            Some(Fault::HalfOpen { after_lines: 0 }) if call.verb != Verb::Watch => pending().await,
            Some(Fault::HalfOpen { after_lines }) => {
                Ok(self.pass_on(call, request).await?.map(|body| lines::fall_silent(body, after_lines)))
            }
            Some(Fault::Answer { status: code, retry_after }) => {
                let failure = status::failure(code, call, injected(code));
                status::answer(&match retry_after {
                    Some(wait) => status::retry_after(failure, wait),
                    None => failure,
                })
            }
            Some(Fault::ErrorEvent(code)) => status::event(&status::failure(code, call, injected(code))),
            Some(Fault::LoseResponse) => {
                self.pass_on(call, request).await?.into_body().collect().await?;
                bail!("the fault proxy loses this answer")
            }
            Some(Fault::Past { resource_version }) => {
                let past =
                    Past { resource_version, call, client: &self.upstream, insider: &self.shared.insider };
                past.answer(request).await
            }
        }
    }

    async fn pass_on(&self, call: &Call, request: Request<Bytes>) -> Result<Response<Body>> {
        if request.headers().contains_key(UPGRADE) {
            let message =
                "The fault proxy passes on no upgraded connections, such as those of exec and port-forward.";
            return status::answer(&status::failure(StatusCode::NOT_IMPLEMENTED, call, message.to_owned()));
        }
        self.upstream.ask(request).await
    }
}

fn injected(code: StatusCode) -> String {
    format!("{code}, says the fault proxy")
}

/// Who a client without a certificate says they are. The API server will check it; here it is for the record alone.
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
