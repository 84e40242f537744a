//! The connection to one cluster: its client, its reader, and the events about the cluster itself.

use std::{future::pending, sync::Arc, time::Duration};

use bellwether_engine::{
    Cluster, ClusterEvent, ClusterSource, FeedEvent, FeedId, GroupKind, Lens, ServedResource,
};
use kube::Client;
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
    time::sleep,
};
use tracing::{Instrument as _, debug, info_span, warn};

use crate::{
    client_switch::{Access, ClientSwitch},
    clock::time_of,
    identity::{Identity, identity},
    read::{KindsReceiver, Reader, ReaderHandle, ReaderSettings},
    remote_cluster::{RemoteCluster, RemoteSettings},
    write::REQUEST_TIMEOUT,
};

/// The pause before the identity of the hub is requested again.
const IDENTITY_RETRY: Duration = Duration::from_secs(5);

/// Tells the events of a connection from late ones of an earlier connection to a cluster of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(pub(crate) u64);

/// Where a connection sends its events.
#[derive(Clone)]
pub(crate) struct EventSenders {
    /// Of objects.
    pub(crate) feeds: mpsc::Sender<(FeedId, FeedEvent)>,
    /// About the cluster itself.
    pub(crate) clusters: mpsc::Sender<(Cluster, Generation, ClusterEvent)>,
}

/// Sends events about the cluster itself.
pub(crate) struct Reporter {
    pub(crate) cluster: Cluster,
    pub(crate) generation: Generation,
    pub(crate) events: mpsc::Sender<(Cluster, Generation, ClusterEvent)>,
}

impl Reporter {
    pub(crate) async fn report(&self, event: ClusterEvent) {
        let _ = self.events.send((self.cluster.clone(), self.generation, event)).await;
    }
}

/// Dropping it closes the connections.
pub(crate) struct ConnectedCluster {
    pub(crate) client: Client,
    pub(crate) reader: Reader,
    pub(crate) generation: Generation,
    /// The last [`ClusterEvent::Heard`] sent to the engine, by the monotonic clock.
    heard: Option<Duration>,
    /// The last [`ClusterEvent::Connected`] or [`ClusterEvent::Disconnected`] sent to the engine.
    connection: Option<ClusterEvent>,
    /// Notified when a lost connection is back.
    reconnected: Arc<Notify>,
    /// `None` for the hub, whose credentials do not change.
    access: Option<watch::Sender<Option<Access>>>,
    task: JoinHandle<()>,
}

impl ConnectedCluster {
    pub(crate) fn hub(client: Client, settings: ReaderSettings, events: EventSenders) -> Self {
        let reader = Reader::start(client.clone(), settings, events.feeds);
        let (generation, reconnected) = (Generation(0), Arc::new(Notify::new()));
        let reporter = Reporter { cluster: Cluster::hub(), generation, events: events.clusters };
        let task = tokio::spawn({
            let (client, kinds, reconnected) = (client.clone(), reader.kinds(), Arc::clone(&reconnected));
            let mut identified = Identified::new(reader.handle());
            async move {
                let identify = identify(&client, &reconnected, &mut identified, &reporter);
                tokio::join!(identify, report_kinds(kinds, &reporter));
            }
        });
        let (heard, connection, access) = (None, None, None);
        Self { client, reader, generation, heard, connection, reconnected, access, task }
    }

    /// A cluster of the inventory. It connects when the inventory has credentials for it, and when `settings`
    /// permit it.
    pub(crate) fn remote(
        cluster: Cluster,
        generation: Generation,
        access: Option<Access>,
        settings: &RemoteSettings,
        events: EventSenders,
    ) -> Self {
        let span = info_span!("cluster", name = cluster.name());
        let _entered = span.clone().entered();
        let (switch, client) = ClientSwitch::new();
        let (permit, mut permitted) = watch::channel(false);
        let permitted = async move {
            if permitted.wait_for(|permitted| *permitted).await.is_err() {
                // The cluster was removed.
                pending::<()>().await;
            }
        };
        let reader = Reader::start_after(permitted, client.clone(), settings.reader.clone(), events.feeds);
        let (access, accesses) = watch::channel(access);
        let reconnected = Arc::new(Notify::new());
        let reporter = Reporter { cluster, generation, events: events.clusters };
        let identified = Identified::new(reader.handle());
        let remote =
            RemoteCluster::new(switch, accesses, identified, Arc::clone(&reconnected), settings.clone());
        let kinds = reader.kinds();
        let task = async move {
            tokio::join!(remote.run(permit, &reporter), report_kinds(kinds, &reporter));
        };
        let task = tokio::spawn(task.instrument(span.clone()));
        let (heard, connection, access) = (None, None, Some(access));
        Self { client, reader, generation, heard, connection, reconnected, access, task }
    }

    /// The inventory has other credentials, or another address.
    pub(crate) fn set_access(&self, access: Access) {
        if let Some(sender) = &self.access {
            sender.send_replace(Some(access));
        }
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
        self.task.abort();
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

/// Reports the identity of a cluster when it changes.
pub(crate) struct Identified {
    pub(crate) reader: ReaderHandle,
    uid: Option<Box<str>>,
}

impl Identified {
    fn new(reader: ReaderHandle) -> Self {
        Self { reader, uid: None }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.uid.is_some()
    }

    /// Another cluster has other objects and other resourceVersions: then all kinds are listed again. Returns
    /// whether it is another one.
    pub(crate) async fn report(&mut self, uid: Box<str>, reporter: &Reporter) -> bool {
        if self.uid.as_ref() == Some(&uid) {
            return false;
        }
        let is_other = self.uid.replace(uid.clone()).is_some();
        if is_other {
            warn!(
                "another cluster has this name: namespace kube-system has another uid. Listing all kinds again"
            );
            self.reader.relist();
        }
        reporter.report(ClusterEvent::Identified(uid)).await;
        is_other
    }
}

async fn report_kinds(mut kinds: KindsReceiver, reporter: &Reporter) {
    while kinds.changed().await.is_ok() {
        let served = kinds.borrow_and_update().clone();
        if let Some(served) = served {
            reporter.report(ClusterEvent::Kinds(served)).await;
        }
    }
}

/// Reports the identity of the hub at the start and after each reconnect.
async fn identify(client: &Client, reconnected: &Notify, identified: &mut Identified, reporter: &Reporter) {
    loop {
        match identity(client, REQUEST_TIMEOUT).await {
            Ok(Identity::Uid(uid)) => {
                identified.report(uid, reporter).await;
                reconnected.notified().await;
            }
            Ok(Identity::Forbidden(error)) => {
                warn!(
                    %error,
                    "cannot get namespace kube-system: forbidden. A replaced cluster is not detected. Grant Bellwether \
                     the verb get on namespaces"
                );
                return;
            }
            Ok(Identity::Unborn) => sleep(IDENTITY_RETRY).await,
            Err(error) => {
                debug!(%error, after = ?IDENTITY_RETRY, "cannot get namespace kube-system: retrying");
                sleep(IDENTITY_RETRY).await;
            }
        }
    }
}
