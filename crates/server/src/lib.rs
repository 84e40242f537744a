//! What is served over HTTP: whether the process lives, whether it is ready, how groups are, and what it counts.
//!
//! | path | answer |
//! |---|---|
//! | `/healthz` | 200 as long as the process can answer |
//! | `/readyz` | 200 when it knows all that it follows and who leads; otherwise 503, and what it waits for. Where it speaks for a Rollup instead: 200 when that is healthy, otherwise 503, and JSON as below |
//! | `/readyz/rollups/NAME` | 200 when the Rollup is healthy, otherwise 503, and JSON that says why; 404 if there is none |
//! | `/readyz/applications/NAMESPACE/NAME` | the same of an Application of `bellwether.dev` |
//! | `/metrics` | its counters, as OpenMetrics text |

mod groups;

pub use groups::Answer;

use std::{future::Future, io, pin::Pin, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::get,
};
use bellwether_engine::GroupRef;
use tokio::net::TcpListener;

/// What there is to tell about a process.
pub trait Process: Send + Sync + 'static {
    /// What it still waits for, a line each; nothing when it is ready.
    fn waits_for(&self) -> Vec<String>;

    /// The group that it speaks for when it is asked whether it is ready; by default it speaks for itself.
    fn speaks_for(&self) -> Option<&GroupRef> {
        None
    }

    /// How a group is.
    fn summary<'a>(&'a self, group: &'a GroupRef) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

    /// Its counters, as OpenMetrics text.
    fn metrics(&self) -> String;
}

/// Serves until `stop` is there.
pub async fn serve(
    listener: TcpListener,
    process: Arc<dyn Process>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, routes(process)).with_graceful_shutdown(stop).await
}

fn routes(process: Arc<dyn Process>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/readyz/rollups/{name}", get(groups::rollup))
        .route("/readyz/applications/{namespace}/{name}", get(groups::application))
        .route("/metrics", get(metrics))
        .with_state(process)
}

async fn readyz(State(process): State<Arc<dyn Process>>) -> Response {
    if let Some(group) = process.speaks_for() {
        let answer = process.summary(group).await;
        // This path is there, whatever becomes of the group.
        let code = if answer.is_healthy() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        return (code, groups::body(group, &answer)).into_response();
    }
    match process.waits_for() {
        none if none.is_empty() => "ok\n".into_response(),
        some => (StatusCode::SERVICE_UNAVAILABLE, some.join("\n") + "\n").into_response(),
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

async fn metrics(State(process): State<Arc<dyn Process>>) -> Response {
    ([(CONTENT_TYPE, OPEN_METRICS)], process.metrics()).into_response()
}
