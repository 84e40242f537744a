//! The HTTP endpoints of the controller.
//!
//! | path | response |
//! |---|---|
//! | `/healthz` | 200 while the process can answer |
//! | `/readyz` | 200 when all watched kinds are listed and the leader is known; otherwise 503 and one line for each missing item. With a Rollup configured ([`Process::speaks_for`]): the health of that Rollup, as below |
//! | `/readyz/rollups/NAME` | 200 when the Rollup is healthy, otherwise 503, with JSON that says why; 404 if it does not exist |
//! | `/readyz/applications/NAMESPACE/NAME` | the same for an Application of `bellwether.dev` |
//! | `/metrics` | metrics in the OpenMetrics text format |
//! | `/api/v1/rows/RESOURCE[.GROUP][/NAMESPACE][/NAME]` | the rows of bound objects, as JSON, in pages |
//! | `/api/v1/query` | StatusCollectors over the rows of bound objects |
//!
//! Every client may read probes and metrics; the [`Guard`] decides which users may read what is below `/api`.

mod groups;
mod guard;
mod large_response;
mod limits;
mod recent;
mod rows;

pub use groups::Answer;
pub use guard::{Access, Denied, Guard, Reviewed, Reviews};
pub use limits::Permit;
pub use rows::{
    FullRow, NamedSpec, ObjectsRequest, QueryRequest, QueryResponse, Refusal, RowReader, RowsPage,
    RowsRequest, ServedKind,
};

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

pub trait Process: Send + Sync + 'static {
    /// What keeps the process from being ready, one line for each item. Empty when it is ready.
    fn waits_for(&self) -> Vec<String>;

    /// The group whose health `/readyz` reports. `None`: `/readyz` reports the readiness of the process.
    fn speaks_for(&self) -> Option<&GroupRef> {
        None
    }

    fn summary<'a>(&'a self, group: &'a GroupRef) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

    /// All metrics in the OpenMetrics text format.
    fn metrics(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>>;
}

/// What is served below `/api`.
#[derive(Clone, Default)]
pub struct Api(Router);

impl Api {
    #[must_use]
    pub fn with_rows(self, objects: Arc<dyn RowReader>, guard: Arc<Guard>) -> Self {
        Self(self.0.merge(rows::routes(objects, guard)))
    }
}

/// Serves until `stop` completes, then finishes the requests in flight.
pub async fn serve(
    listener: TcpListener,
    process: Arc<dyn Process>,
    api: Api,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, routes(process).merge(api.0)).with_graceful_shutdown(stop).await
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
        // Not 404: the path exists even where the group does not.
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
    ([(CONTENT_TYPE, OPEN_METRICS)], process.metrics().await).into_response()
}
