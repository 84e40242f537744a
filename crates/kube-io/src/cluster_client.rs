//! Clients of the clusters of the inventory: all requests to a cluster share a connection.
//!
//! kube's own client speaks HTTP/1.1, so that each watch has a TCP connection and a TLS session. With HTTP/2, a
//! cluster has one connection for up to [`STREAMS`] requests. A server without HTTP/2 is spoken to as usual.

use std::{
    error::Error,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _, DynBody},
};
use tower::{ServiceBuilder, service_fn};

use crate::client::with_settings;

/// API servers accept 100 requests at once on a connection by default, and hyper never opens a second one: a
/// further request would wait for the end of a watch.
const STREAMS: usize = 64;

/// In bytes, for each request and for each connection: what a cluster may send before it is read. Together they
/// bound the memory of a cluster that sends faster than the engine takes events.
const STREAM_WINDOW: u32 = 512 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// A connection on which nothing has arrived for this time is pinged.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// Without an answer to a ping within this time, the connection is closed, with all its watches.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

type BoxError = Box<dyn Error + Send + Sync>;
type Connector = TimeoutConnector<HttpsConnector<HttpConnector>>;

/// Sends no request. Must be called within a tokio runtime.
pub(crate) fn cluster_client(config: Config) -> Result<Client, BoxError> {
    let config = with_settings(config);
    let connections = Arc::new(Connections { connector: connector(&config)?, open: Mutex::default() });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(service_fn(move |request| {
            let connections = Arc::clone(&connections);
            async move { connections.send(request).await }
        }));
    Ok(ClientBuilder::new(service, &config.default_namespace).build())
}

fn connector(config: &Config) -> Result<Connector, BoxError> {
    let tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    let tls = match &config.tls_server_name {
        Some(name) => tls.with_server_name_resolver(FixedServerNameResolver::new(name.clone().try_into()?)),
        None => tls,
    };
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let mut connector = TimeoutConnector::new(tls.enable_all_versions().wrap_connector(connector));
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_write_timeout(config.write_timeout);
    Ok(connector)
}

struct Connections {
    connector: Connector,
    open: Mutex<Vec<Connection>>,
}

struct Connection {
    client: HttpClient<Connector, Body>,
    /// Requests whose response has not been read to its end.
    streams: Arc<AtomicUsize>,
}

impl Connections {
    async fn send(&self, request: Request<Body>) -> Result<Response<Box<DynBody>>, BoxError> {
        let (client, stream) = self.stream();
        let response = client.request(request).await?;
        Ok(response.map(|body| {
            let body = body.map_err(BoxError::from).map_frame(move |frame| {
                let _ = &stream;
                frame
            });
            Box::new(body) as Box<DynBody>
        }))
    }

    /// The first connection with a free stream.
    fn stream(&self) -> (HttpClient<Connector, Body>, Stream) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let free = open.iter().find(|connection| connection.streams.load(Ordering::Relaxed) < STREAMS);
        let (client, streams) = if let Some(Connection { client, streams }) = free {
            (client.clone(), Arc::clone(streams))
        } else {
            let (client, streams) = (http_client(self.connector.clone()), Arc::default());
            open.push(Connection { client: client.clone(), streams: Arc::clone(&streams) });
            (client, streams)
        };
        streams.fetch_add(1, Ordering::Relaxed);
        (client, Stream(streams))
    }
}

/// Counts as open until it is dropped.
struct Stream(Arc<AtomicUsize>);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn http_client(connector: Connector) -> HttpClient<Connector, Body> {
    HttpClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(connector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_shared_until_it_is_full() {
        let config = Config::new("https://10.0.0.1".parse().unwrap());
        let connections = Connections { connector: connector(&config).unwrap(), open: Mutex::default() };
        let open = |count| (0..count).map(|_| connections.stream().1).collect::<Vec<_>>();
        let streams = || -> Vec<usize> {
            let open = connections.open.lock().unwrap();
            open.iter().map(|connection| connection.streams.load(Ordering::Relaxed)).collect()
        };
        let mut first = open(STREAMS);
        assert_eq!(streams(), [STREAMS]);
        let second = open(2);
        assert_eq!(streams(), [STREAMS, 2]);
        first.truncate(STREAMS - 1);
        let third = open(1);
        assert_eq!(streams(), [STREAMS, 2], "a free stream is used first");
        drop((first, second, third));
        assert_eq!(streams(), [0, 0]);
    }
}
