//! The connection to one cluster: its client, its reader, and the events about the cluster itself.

use std::{sync::Arc, time::Duration};

use bellwether_engine::{
    Cluster, ClusterEvent, ClusterSource, FeedEvent, FeedId, GroupKind, Lens, ServedResource,
};
use bellwether_wire::{ErrorClass, Verb};
use kube::Client;
use serde_json::Value;
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::sleep,
};
use tracing::{debug, warn};

use crate::{
    clock::time_of,
    read::{Reader, ReaderSettings},
    write::{CallError, REQUEST_TIMEOUT, call},
};

/// The pause before the identity of the cluster is requested again.
const IDENTITY_RETRY: Duration = Duration::from_secs(5);

/// Dropping it closes the connections.
pub(crate) struct ConnectedCluster {
    pub(crate) client: Client,
    pub(crate) reader: Reader,
    /// The last [`ClusterEvent::Heard`] sent to the engine, by the monotonic clock.
    heard: Option<Duration>,
    /// The last [`ClusterEvent::Connected`] or [`ClusterEvent::Disconnected`] sent to the engine.
    connection: Option<ClusterEvent>,
    /// Notified when a lost connection is back.
    reconnected: Arc<Notify>,
    reporter: JoinHandle<()>,
}

impl ConnectedCluster {
    /// Events of objects go to `feed_events`, events about the cluster itself to `cluster_events`.
    pub(crate) fn new(
        cluster: Cluster,
        client: Client,
        settings: ReaderSettings,
        feed_events: mpsc::Sender<(FeedId, FeedEvent)>,
        cluster_events: mpsc::Sender<(Cluster, ClusterEvent)>,
    ) -> Self {
        let reader = Reader::start(client.clone(), settings, feed_events);
        let reconnected = Arc::new(Notify::new());
        let reporter = tokio::spawn(report_cluster(
            cluster,
            client.clone(),
            reader.kinds(),
            Arc::clone(&reconnected),
            cluster_events,
        ));
        Self { client, reader, heard: None, connection: None, reconnected, reporter }
    }

    /// The changes since the last call: when the API server last responded, and whether all watches are open.
    pub(crate) fn liveness_events(&mut self) -> Vec<ClusterEvent> {
        let counters = self.reader.counters();
        let heard = counters.last_activity().filter(|heard| self.heard.replace(*heard) != Some(*heard));
        let before = self.connection.clone();
        let connection =
            counters.connection().filter(|is| self.connection.replace(is.clone()).as_ref() != Some(is));
        if before == Some(ClusterEvent::Disconnected) && connection == Some(ClusterEvent::Connected) {
            self.reconnected.notify_one();
        }
        heard.map(|heard| ClusterEvent::Heard(time_of(heard))).into_iter().chain(connection).collect()
    }
}

impl Drop for ConnectedCluster {
    fn drop(&mut self) {
        self.reporter.abort();
    }
}

impl ClusterSource for ConnectedCluster {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        debug!(%kind, "watching kind");
        self.reader.follow(feed, kind.clone(), lens);
    }

    fn leave(&mut self, feed: FeedId) {
        self.reader.leave(feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.reader.served(kind)
    }
}

/// Reports the identity of the cluster at the start and after each reconnect, and the served kinds whenever
/// they change.
async fn report_cluster(
    cluster: Cluster,
    client: Client,
    mut kinds: crate::read::KindsReceiver,
    reconnected: Arc<Notify>,
    events: mpsc::Sender<(Cluster, ClusterEvent)>,
) {
    let identify = async {
        while let Some(uid) = identity(&client).await {
            let _ = events.send((cluster.clone(), ClusterEvent::Identified(uid))).await;
            reconnected.notified().await;
        }
    };
    let follow_kinds = async {
        while kinds.changed().await.is_ok() {
            let served = kinds.borrow_and_update().clone();
            if let Some(served) = served {
                let _ = events.send((cluster.clone(), ClusterEvent::Kinds(served))).await;
            }
        }
    };
    tokio::join!(identify, follow_kinds);
}

/// The uid of the namespace `kube-system`; `None` if reading it is forbidden.
async fn identity(client: &Client) -> Option<Box<str>> {
    loop {
        let request = Verb::GetMetadata.request("/api/v1/namespaces/kube-system", Vec::new());
        match call(client, request, REQUEST_TIMEOUT).await {
            Ok(namespace) => {
                let namespace: Value = serde_json::from_slice(&namespace).ok()?;
                return namespace["metadata"]["uid"].as_str().map(Into::into);
            }
            Err(CallError::Api(error)) if error.class == ErrorClass::Forbidden => {
                warn!(
                    %error,
                    "cannot get namespace kube-system: forbidden. A replaced cluster is not detected. Grant Bellwether \
                     the verb get on namespaces"
                );
                return None;
            }
            // A new cluster does not have this namespace yet.
            Err(error) => {
                debug!(%error, after = ?IDENTITY_RETRY, "cannot get namespace kube-system: retrying");
                sleep(IDENTITY_RETRY).await;
            }
        }
    }
}
