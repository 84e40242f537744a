//! A cluster that is connected: what reads it, what writes to it, and what is told of the cluster itself.

use std::{sync::Arc, time::Duration};

use bellwether_engine::{Cluster, ClusterEvent, FeedEvent, FeedId, GroupKind, Lens, Served, Source};
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
    read::{Reader, Settings},
    write::{CallError, PATIENCE, call},
};

/// How long to wait before the identity of a cluster that did not tell it is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// A cluster that is connected. When it is dropped, so are its connections.
pub(crate) struct ConnectedCluster {
    pub(crate) client: Client,
    pub(crate) reader: Reader,
    /// What the engine was last told of it: when it was heard from, by the monotonic clock.
    heard: Option<Duration>,
    connection: Option<ClusterEvent>,
    /// It was lost, and is connected again.
    reconnected: Arc<Notify>,
    about: JoinHandle<()>,
}

impl ConnectedCluster {
    /// Connects a cluster. What is read goes to `news`, what is found out about the cluster itself to `events`.
    pub(crate) fn new(
        cluster: Cluster,
        client: Client,
        settings: Settings,
        news: mpsc::Sender<(FeedId, FeedEvent)>,
        events: mpsc::Sender<(Cluster, ClusterEvent)>,
    ) -> Self {
        let reader = Reader::start(client.clone(), settings, news);
        let reconnected = Arc::new(Notify::new());
        let about = tokio::spawn(tell_about(
            cluster,
            client.clone(),
            reader.kinds(),
            Arc::clone(&reconnected),
            events,
        ));
        Self { client, reader, heard: None, connection: None, reconnected, about }
    }

    /// What has changed since this was last asked: when the cluster was heard from, and whether any connection is open.
    pub(crate) fn pulse(&mut self) -> Vec<ClusterEvent> {
        let tally = self.reader.tally();
        let heard = tally.last_beat().filter(|heard| self.heard.replace(*heard) != Some(*heard));
        let before = self.connection.clone();
        let connection =
            tally.connection().filter(|is| self.connection.replace(is.clone()).as_ref() != Some(is));
        if before == Some(ClusterEvent::Lost) && connection == Some(ClusterEvent::Connected) {
            self.reconnected.notify_one();
        }
        heard.map(|heard| ClusterEvent::Heard(time_of(heard))).into_iter().chain(connection).collect()
    }
}

impl Drop for ConnectedCluster {
    fn drop(&mut self) {
        self.about.abort();
    }
}

impl Source for ConnectedCluster {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        debug!("follows {kind}");
        self.reader.follow(feed, kind.clone(), lens);
    }

    fn leave(&mut self, feed: FeedId) {
        self.reader.leave(feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<Served> {
        self.reader.served(kind)
    }
}

/// Tells the identity of a cluster, whenever it may have become another one, and the kinds that it serves, whenever they
/// change.
async fn tell_about(
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

/// The uid of the namespace `kube-system`; nothing where it may not be read.
async fn identity(client: &Client) -> Option<Box<str>> {
    loop {
        let request = Verb::GetMetadata.request("/api/v1/namespaces/kube-system", Vec::new());
        match call(client, request, PATIENCE).await {
            Ok(namespace) => {
                let namespace: Value = serde_json::from_slice(&namespace).ok()?;
                return namespace["metadata"]["uid"].as_str().map(Into::into);
            }
            Err(CallError::Api(error)) if error.class == ErrorClass::Forbidden => {
                warn!(
                    "Bellwether may not get the namespace kube-system, so it cannot tell whether a cluster was replaced by \
                     another of the same name: grant it the verb get on namespaces"
                );
                return None;
            }
            // A new API server has no such namespace yet.
            Err(error) => {
                debug!("cannot get the namespace kube-system: {error}");
                sleep(ASK_AGAIN).await;
            }
        }
    }
}
