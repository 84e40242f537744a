//! A cluster, followed: what changes in it is seen as it changes.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
    time::Duration,
};

use bellwether_engine::{
    Cluster, ClusterEvent, Event, Facts, FeedEvent, FeedId, Group, GroupKind, GroupRef, Lens, NamespacedName,
    Served, Source,
};
use bellwether_kube_io::read::{Reader, Settings};
use jiff::Timestamp;
use kube::Client;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    ListedObject,
    evaluator::{EvaluationScope, Evaluator},
    undated,
};

/// So much news may wait.
const NEWS_WAITING: usize = 4096;

/// So much news is taken in at a time.
const NEWS_AT_A_TIME: usize = 1024;

/// So long is waited for more before anybody looks: changes come in swarms.
const SWARM: Duration = Duration::from_millis(100);

/// So often somebody looks even if nothing changes: clocks go on.
const SECOND: Duration = Duration::from_secs(1);

/// Who wants to see a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FeedUser {
    /// The engine of that number.
    Engine(usize, FeedId),
    Listed(usize),
}

/// An engine and what reads for it.
struct Watcher {
    evaluator: Evaluator,
    reader: Reader<FeedUser>,
    /// The groups as they are.
    groups: BTreeMap<(NamespacedName, GroupKind), Group>,
}

impl Watcher {
    /// Evaluates the groups of which something else may be said than before. What was so when the first look began is not
    /// said to have begun then.
    fn look_again(&mut self, now: Timestamp, begun: Timestamp, known: Timestamp) {
        let changed = self.evaluator.take_changed();
        let mut found = Vec::new();
        if changed.iter().any(|(_, name)| name.is_none()) {
            self.groups.clear();
            found = self.evaluator.groups(now);
        } else {
            for (kind, name) in changed.into_iter().filter_map(|(kind, name)| Some((kind, name?))) {
                self.groups.remove(&(name.clone(), kind.kind()));
                found.extend(self.evaluator.group(now, &GroupRef::new(kind, name)));
            }
        }
        undated(&mut found, begun, known);
        self.groups.extend(found.into_iter().map(|group| ((group.name.clone(), group.kind.clone()), group)));
    }
}

/// The feeds of one engine, among all that a reader follows.
struct EngineFeeds<'l> {
    index: usize,
    reader: &'l mut Reader<FeedUser>,
}

impl Source for EngineFeeds<'_> {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        self.reader.follow(FeedUser::Engine(self.index, feed), kind.clone(), lens);
    }

    fn leave(&mut self, feed: FeedId) {
        self.reader.leave(FeedUser::Engine(self.index, feed));
    }

    fn served(&self, kind: &GroupKind) -> Option<Served> {
        self.reader.served(kind)
    }
}

/// A kind that is seen beside those of the engine.
struct ListedKind {
    kind: GroupKind,
    lens: Arc<Lens>,
    objects: HashMap<NamespacedName, Facts>,
    /// What a list that is not complete has named so far.
    listing: Option<HashMap<NamespacedName, Facts>>,
}

/// A cluster that is followed.
pub struct LiveObservation {
    /// One for each view.
    watchers: Vec<Watcher>,
    news: mpsc::Receiver<(FeedUser, FeedEvent)>,
    /// In the order in which they were asked for.
    kept: Vec<ListedKind>,
    begun: Timestamp,
    /// When all was known for the first time.
    known: Option<Timestamp>,
}

impl LiveObservation {
    /// Begins to follow what the groups of these views speak of. It must be called on a runtime.
    pub fn start(client: &Client, views: Vec<EvaluationScope>) -> Self {
        let (sender, news) = mpsc::channel(NEWS_WAITING);
        let watcher = |view: EvaluationScope| {
            let settings = Settings { namespace: view.namespace.clone(), ..Settings::default() };
            let reader = Reader::start(client.clone(), settings, sender.clone());
            Watcher { evaluator: Evaluator::new(view), reader, groups: BTreeMap::new() }
        };
        let mut live = Self {
            watchers: views.into_iter().map(watcher).collect(),
            news,
            kept: Vec::new(),
            begun: Timestamp::now(),
            known: None,
        };
        for index in 0..live.watchers.len() {
            live.act(index, |evaluator, feeds| evaluator.open(Timestamp::now(), feeds));
        }
        live
    }

    /// Waits until something has changed, or a second has passed. Only the groups that have changed are evaluated.
    pub async fn changed(&mut self) {
        let mut batch = Vec::new();
        if timeout(SECOND, self.news.recv_many(&mut batch, NEWS_AT_A_TIME)).await.is_ok() {
            sleep(SWARM).await;
            while batch.len() < NEWS_WAITING
                && let Ok(news) = self.news.try_recv()
            {
                batch.push(news);
            }
        }
        self.step(batch);
        self.look_at_watches();
        let (now, begun, known) = (Timestamp::now(), self.begun, self.known.unwrap_or(Timestamp::MAX));
        for watcher in &mut self.watchers {
            watcher.look_again(now, begun, known);
        }
    }

    fn step(&mut self, news: Vec<(FeedUser, FeedEvent)>) {
        let mut told: Vec<_> = self.watchers.iter().map(|_| Vec::new()).collect();
        for (wanted, news) in news {
            match wanted {
                FeedUser::Engine(index, feed) => {
                    if let Some(told) = told.get_mut(index) {
                        told.push((feed, news));
                    }
                }
                FeedUser::Listed(index) => {
                    if let Some(kept) = self.kept.get_mut(index) {
                        kept.hear(news);
                    }
                }
            }
        }
        let now = Timestamp::now();
        for (index, told) in told.into_iter().enumerate() {
            self.act(index, |evaluator, feeds| evaluator.see(now, told, feeds));
        }
        self.set_lens();
        if self.known.is_none() && self.is_known() {
            self.known = Some(now);
        }
    }

    /// Lets one engine do something. Its reader follows what it asks for.
    fn act(&mut self, index: usize, act: impl FnOnce(&mut Evaluator, &mut EngineFeeds<'_>)) {
        let Some(Watcher { evaluator, reader, .. }) = self.watchers.get_mut(index) else { return };
        act(evaluator, &mut EngineFeeds { index, reader });
    }

    /// Judges what is seen besides by the rules that are in force now.
    fn set_lens(&mut self) {
        let Some(Watcher { evaluator, reader, .. }) = self.watchers.first_mut() else { return };
        for (index, kept) in self.kept.iter_mut().enumerate() {
            let lens = evaluator.engine.lens(&kept.kind);
            if *kept.lens != lens {
                kept.lens = Arc::new(lens);
                reader.follow(FeedUser::Listed(index), kept.kind.clone(), Arc::clone(&kept.lens));
            }
        }
    }

    /// Tells the engines whether the cluster is connected, and when it was last heard from.
    fn look_at_watches(&mut self) {
        for index in 0..self.watchers.len() {
            self.act(index, |evaluator, feeds| {
                let tally = feeds.reader.tally();
                let heard = tally.heard_last().map(ClusterEvent::Heard);
                let events = heard.into_iter().chain(tally.connection());
                let events = events.map(|event| Event::Cluster(Cluster::hub(), event)).collect();
                evaluator.step(Timestamp::now(), events, feeds);
            });
        }
    }

    /// Since when the cluster has not been heard from, if it is out of touch.
    pub fn silent_since(&self) -> Option<Timestamp> {
        let hubs =
            self.watchers.iter().filter_map(|watcher| watcher.evaluator.engine.cluster(&Cluster::hub()));
        hubs.filter_map(|hub| hub.out_of_touch_since(Timestamp::now())).min()
    }

    /// Whether all that is needed is known, and of one time.
    pub fn is_known(&self) -> bool {
        self.watchers.iter().all(|watcher| watcher.evaluator.engine.is_whole())
    }

    /// The groups, by their names, those of each view together.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.watchers.iter().flat_map(|watcher| watcher.groups.values())
    }

    /// One of them.
    pub fn group(&self, kind: &GroupKind, name: &NamespacedName) -> Option<&Group> {
        let key = (name.clone(), kind.clone());
        self.watchers.iter().find_map(|watcher| watcher.groups.get(&key))
    }

    /// Follows these kinds, too, in the first view.
    pub fn look_beside(&mut self, kinds: Vec<GroupKind>) {
        let Some(Watcher { evaluator, reader, .. }) = self.watchers.first_mut() else { return };
        for kind in kinds {
            if !self.kept.iter().any(|kept| kept.kind == kind) {
                let lens = Arc::new(evaluator.engine.lens(&kind));
                reader.follow(FeedUser::Listed(self.kept.len()), kind.clone(), Arc::clone(&lens));
                self.kept.push(ListedKind { kind, lens, objects: HashMap::new(), listing: None });
            }
        }
    }

    /// What is to be seen of the kinds that are followed besides.
    pub fn beside(&self) -> Vec<ListedObject> {
        let of = |kept: &ListedKind| {
            let beside = |(name, facts): (&NamespacedName, &Facts)| ListedObject {
                kind: kept.kind.clone(),
                name: name.clone(),
                facts: facts.clone(),
            };
            kept.objects.iter().map(beside).collect::<Vec<_>>()
        };
        self.kept.iter().flat_map(of).collect()
    }
}

impl ListedKind {
    fn hear(&mut self, news: FeedEvent) {
        match news {
            FeedEvent::ListStarted => self.listing = Some(HashMap::new()),
            FeedEvent::Applied(name, seen) => {
                self.listing.as_mut().unwrap_or(&mut self.objects).insert(name, seen.facts);
            }
            FeedEvent::Deleted(name) => {
                self.listing.as_mut().unwrap_or(&mut self.objects).remove(&name);
            }
            // Whatever a list does not name is gone; until it is complete, what was known stays.
            FeedEvent::ListCompleted => self.objects = mem::take(&mut self.listing).unwrap_or_default(),
            FeedEvent::Unreadable(_) => (self.objects, self.listing) = (HashMap::new(), None),
            FeedEvent::Served(_) | FeedEvent::Restored => {}
        }
    }
}
