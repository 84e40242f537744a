//! Reading a cluster: which kinds it serves, and what becomes of the objects of those that somebody wants to know about.
//!
//! A [`Reader`] follows kinds in one cluster. For each there is a task that lists the objects once and then watches them,
//! through whatever goes wrong on the way; the bytes of the API server become facts at once, and nothing else is kept.
//! What is hard about it knows neither network nor clock: when to list, to watch and to wait, and what bytes mean, is for
//! [`bellwether_wire`] to know, and when to look for new kinds for `schedule`.
//!
//! In the words of other controllers: a feed is a reflector without a cache, `discovery_loop` the discovery loop, `schedule` its
//! schedule, and `rest_mapper` the RESTMapper.

mod answer;
mod discovery;
mod discovery_loop;
mod discovery_schedule;
mod feed;
mod lines;
mod rest_mapper;
mod settings;
mod snapshot;
mod tally;

pub use bellwether_wire::backoff::BackoffLimits;
pub use bellwether_wire::read_error::ReadError;
pub(crate) use rest_mapper::KindsReceiver;
pub use rest_mapper::RestMapper;
pub use settings::Settings;
pub use snapshot::{ClusterSnapshot, NoSuchKind};
pub use tally::{Count, Tally};

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::Arc,
};

use bellwether_engine::{FeedEvent, FeedId, GroupKind, Lens, Served, Source};
use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tracing::{Instrument as _, Span};

use feed::Feed;
use tally::FeedLiveness;

/// Reads one cluster. When it is dropped, so are its connections.
///
/// Its log lines are in the span in which it was started: let that name the cluster.
pub struct Reader<Id = FeedId> {
    connection: Arc<ClusterConnection>,
    news: mpsc::Sender<(Id, FeedEvent)>,
    feeds: HashMap<Id, Followed>,
    span: Span,
    _scout: Task,
}

/// What all that read a cluster share.
struct ClusterConnection {
    client: Client,
    settings: Settings,
    rest_mapper: RestMapper,
    tally: Arc<Tally>,
}

/// A kind that is followed.
struct Followed {
    lens: watch::Sender<Arc<Lens>>,
    _task: Task,
}

/// A task that ends when this is dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<Id: Copy + Eq + Hash + Send + Sync + 'static> Reader<Id> {
    /// Begins to read a cluster, on the runtime in which this is called. What is read is told to `news`; whoever is slow
    /// to take it makes the cluster wait.
    ///
    /// The client must not repeat calls by itself: what an API server asks for when it is busy is honoured here.
    pub fn start(client: Client, settings: Settings, news: mpsc::Sender<(Id, FeedEvent)>) -> Self {
        let tally = Arc::new(Tally::default());
        let connection =
            Arc::new(ClusterConnection { client, settings, rest_mapper: RestMapper::new(), tally });
        let span = Span::current();
        let discovery_loop = {
            let connection = Arc::clone(&connection);
            async move { match discovery_loop::discovery_loop(&connection).await {} }
        };
        let discovery_loop = Task(tokio::spawn(discovery_loop.instrument(span.clone())));
        Self { connection, news, feeds: HashMap::new(), span, _scout: discovery_loop }
    }

    /// Follows a kind. If it is followed under this id already, everything is listed once more through the new lens.
    pub fn follow(&mut self, feed: Id, kind: GroupKind, lens: Arc<Lens>) {
        match self.feeds.entry(feed) {
            Entry::Occupied(followed) => drop(followed.get().lens.send_replace(lens)),
            Entry::Vacant(vacant) => {
                let liveness = Arc::new(FeedLiveness::default());
                self.connection.tally.listen(Arc::downgrade(&liveness));
                let (sender, lenses) = watch::channel(Arc::clone(&lens));
                let connection = Arc::clone(&self.connection);
                let task = Feed::new(feed, kind, lens, connection, self.news.clone(), liveness).run(lenses);
                let task = Task(tokio::spawn(task.instrument(self.span.clone())));
                vacant.insert(Followed { lens: sender, _task: task });
            }
        }
    }

    /// Follows it no longer. News that is on its way may still arrive.
    pub fn leave(&mut self, feed: Id) {
        self.feeds.remove(&feed);
    }

    /// How the cluster serves a kind, as far as discovery has told.
    pub fn served(&self, kind: &GroupKind) -> Option<Served> {
        self.connection.rest_mapper.served(kind)
    }

    /// What the cluster serves.
    pub fn rest_mapper(&self) -> &RestMapper {
        &self.connection.rest_mapper
    }

    /// The kinds that the cluster serves, whenever they change; none until they are known.
    pub(crate) fn kinds(&self) -> KindsReceiver {
        self.connection.rest_mapper.kinds()
    }

    /// What was done so far.
    pub fn tally(&self) -> &Arc<Tally> {
        &self.connection.tally
    }
}

impl Source for Reader {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        Reader::follow(self, feed, kind.clone(), lens);
    }

    fn leave(&mut self, feed: FeedId) {
        Reader::leave(self, feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<Served> {
        Reader::served(self, kind)
    }
}
