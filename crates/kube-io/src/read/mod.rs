//! Reads one cluster: API discovery, and a reflector for each kind that the engine asks for.
//!
//! A [`Reader`] runs these tasks:
//!
//! - `feed`, one for each kind: drives a [`Reflector`](bellwether_wire::Reflector) with the client and the
//!   clock, and sends its events to the engine. Objects are decoded to facts at once; the reflector has no
//!   cache.
//! - `restore_check`: lists a little from time to time, to notice that the cluster was restored from a backup.
//! - `discovery_loop`: keeps the `rest_mapper` up to date. It runs discovery when `discovery_schedule` says
//!   so, mostly after a CustomResourceDefinition has changed.
//!
//! [`ClusterSnapshot`] reads a cluster once, without watches, for the command line.

mod crd_list;
mod discovery;
mod discovery_loop;
mod discovery_schedule;
mod feed_task;
mod line_buffer;
mod reader_counters;
mod rest_mapper;
mod restore_check;
mod settings;
mod snapshot;
mod watch_stream;

pub use bellwether_wire::backoff::BackoffLimits;
pub use bellwether_wire::read_error::ReadError;
pub(crate) use reader_counters::ReaderTotals;
pub use reader_counters::{Count, ReaderCounters};
pub(crate) use rest_mapper::KindsReceiver;
pub use rest_mapper::RestMapper;
pub use settings::ReaderSettings;
pub use snapshot::{ClusterSnapshot, NoSuchKind};
pub(crate) use watch_stream::{Watch, send_and_read};

use std::{
    collections::{HashMap, hash_map::Entry},
    future::{Future, ready},
    hash::Hash,
    sync::Arc,
};

use bellwether_engine::{ClusterSource, FeedEvent, FeedId, GroupKind, Lens, ServedResource};
use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tracing::{Instrument as _, Span, warn};

use feed_task::FeedTask;
use reader_counters::FeedLiveness;

/// Reads one cluster. Dropping it closes the connections.
///
/// Its log lines are in the span of the caller of [`Reader::start`], which should name the cluster.
pub struct Reader<Id = FeedId> {
    connection: Arc<ClusterConnection>,
    events: mpsc::Sender<(Id, FeedEvent)>,
    feeds: HashMap<Id, FeedHandle>,
    span: Span,
    _background: Task,
}

/// Shared by all tasks of a reader.
struct ClusterConnection {
    client: Client,
    settings: ReaderSettings,
    rest_mapper: RestMapper,
    counters: Arc<ReaderCounters>,
    /// How many times the cluster was restored from a backup.
    restored: watch::Sender<u64>,
    /// How many times the client has got other credentials.
    reconnected: watch::Sender<u64>,
}

impl ClusterConnection {
    /// All feeds relist, and accept any resourceVersion.
    fn restored(&self) {
        warn!("resourceVersions went back: the cluster was restored from a backup. Listing all kinds again");
        self.relist();
    }

    fn relist(&self) {
        self.restored.send_modify(|times| *times += 1);
    }
}

/// What the task of a cluster needs of its reader.
pub(crate) struct ReaderHandle(Arc<ClusterConnection>);

impl ReaderHandle {
    pub(crate) fn counters(&self) -> &ReaderCounters {
        &self.0.counters
    }

    pub(crate) fn has_discovered(&self) -> bool {
        self.0.rest_mapper.kinds().borrow().is_some()
    }

    /// Relists all kinds, and accepts any resourceVersion: this may be another cluster.
    pub(crate) fn relist(&self) {
        self.0.relist();
    }

    /// Opens all watches again, each from its last resourceVersion: the client has other credentials.
    pub(crate) fn reconnect(&self) {
        self.0.reconnected.send_modify(|times| *times += 1);
    }
}

/// The task of one kind.
struct FeedHandle {
    lens: watch::Sender<Arc<Lens>>,
    _task: Task,
}

/// Aborts the task when dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<Id: Copy + Eq + Hash + Send + Sync + 'static> Reader<Id> {
    /// Must be called within a tokio runtime. A full `events` channel blocks the watches.
    ///
    /// The client must not retry by itself: the reader honours `Retry-After`.
    pub fn start(client: Client, settings: ReaderSettings, events: mpsc::Sender<(Id, FeedEvent)>) -> Self {
        Self::start_after(ready(()), client, settings, events)
    }

    /// Sends no request before `permitted` completes.
    pub fn start_after(
        permitted: impl Future<Output = ()> + Send + 'static,
        client: Client,
        settings: ReaderSettings,
        events: mpsc::Sender<(Id, FeedEvent)>,
    ) -> Self {
        let counters = Arc::new(ReaderCounters::default());
        let (rest_mapper, restored, reconnected) =
            (RestMapper::new(), watch::Sender::new(0), watch::Sender::new(0));
        let connection = ClusterConnection { client, settings, rest_mapper, counters, restored, reconnected };
        let (connection, span) = (Arc::new(connection), Span::current());
        let background = {
            let connection = Arc::clone(&connection);
            async move {
                // Feeds wait for the first discovery.
                permitted.await;
                tokio::select! {
                    never = discovery_loop::discovery_loop(&connection) => match never {},
                    never = restore_check::restore_check(&connection) => match never {},
                }
            }
        };
        let background = Task(tokio::spawn(background.instrument(span.clone())));
        Self { connection, events, feeds: HashMap::new(), span, _background: background }
    }

    /// Relists all kinds, and accepts any resourceVersion: the cluster was restored from a backup.
    pub fn restored(&self) {
        self.connection.restored();
    }

    pub(crate) fn handle(&self) -> ReaderHandle {
        ReaderHandle(Arc::clone(&self.connection))
    }

    /// Lists and watches a kind. If `feed` exists, it relists with the new lens.
    pub fn follow(&mut self, feed: Id, kind: GroupKind, lens: Arc<Lens>) {
        match self.feeds.entry(feed) {
            Entry::Occupied(followed) => drop(followed.get().lens.send_replace(lens)),
            Entry::Vacant(vacant) => {
                let liveness = Arc::new(FeedLiveness::default());
                self.connection.counters.track(Arc::downgrade(&liveness));
                let (sender, lenses) = watch::channel(Arc::clone(&lens));
                let connection = Arc::clone(&self.connection);
                let task =
                    FeedTask::new(feed, kind, lens, connection, self.events.clone(), liveness).run(lenses);
                let task = Task(tokio::spawn(task.instrument(self.span.clone())));
                vacant.insert(FeedHandle { lens: sender, _task: task });
            }
        }
    }

    /// Stops a feed. Events that are already in the channel still arrive.
    pub fn leave(&mut self, feed: Id) {
        self.feeds.remove(&feed);
    }

    /// `None` if the kind is not served, or discovery has not completed yet.
    pub fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.connection.rest_mapper.served(kind)
    }

    pub fn rest_mapper(&self) -> &RestMapper {
        &self.connection.rest_mapper
    }

    /// The served kinds; `None` until discovery has completed.
    pub(crate) fn kinds(&self) -> KindsReceiver {
        self.connection.rest_mapper.kinds()
    }

    pub fn counters(&self) -> &Arc<ReaderCounters> {
        &self.connection.counters
    }
}

impl ClusterSource for Reader {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        Reader::follow(self, feed, kind.clone(), lens);
    }

    fn leave(&mut self, feed: FeedId) {
        Reader::leave(self, feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        Reader::served(self, kind)
    }
}
