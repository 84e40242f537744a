//! One controller: the real engine, reflectors and election, with a simulated network and clock.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use bellwether_engine::{
    Dialect, Driver, Engine, FeedEvent, FeedId, GroupKind, Lens, OwnKind, ServedResource,
};
use bellwether_wire::{
    Discovered, Reflector, backoff::BackoffLimits, election::Election, restore_detector::RestoreDetector,
};
use jiff::Timestamp;

use crate::{
    combined_checks::Published,
    feed::{Feed, View},
    inventory::ConnectedCluster,
    known::Known,
    object::Object,
    plan::{Moment, Plan, Point},
    query_checks::Answers,
    site::Site,
    store::Store,
    violation::Violation,
};

/// Maximum number of writes in flight.
const MAX_WRITES: usize = 4;

/// `leaseDurationSeconds` of the Lease. The three durations are the defaults of client-go.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// A leader that cannot renew for this long stops writing.
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Pause between two attempts to acquire or renew, in milliseconds.
pub(crate) const RETRY: Moment = 2_000;

#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Process {
    pub(crate) name: usize,
    /// Whether it observes the second cluster.
    elsewhere: bool,
    pub(crate) alive: bool,
    /// Incremented at every start and end. Events for another epoch are dropped.
    pub(crate) epoch: u64,
    pub(crate) driver: Driver,
    pub(crate) feeds: BTreeMap<FeedId, Feed>,
    /// Events for the engine. The number is the store's revision up to which the engine knows the kind after
    /// that event, where the event changes it.
    pub(crate) inbox: VecDeque<(FeedId, FeedEvent, Option<u64>)>,
    /// The result of discovery for each cluster.
    pub(crate) kinds: BTreeMap<Site, Rc<BTreeMap<GroupKind, ServedResource>>>,
    /// Whether it follows the inventory.
    inventory: bool,
    /// Whether it has read the inventory once.
    pub(crate) has_inventory: bool,
    /// The clusters of the inventory.
    pub(crate) connected: BTreeMap<Site, ConnectedCluster>,
    /// Whether a report of the clusters that were heard from is scheduled.
    pub(crate) checks_liveness: bool,
    /// The CombinedStatuses that it has written.
    pub(crate) published: Published,
    /// The kinds of the hub that were searched for singletons.
    pub(crate) searched: BTreeSet<GroupKind>,
    /// None if there is only one controller.
    pub(crate) election: Option<Election>,
    /// Time of its start, by its clock.
    pub(crate) began: Timestamp,
    pub(crate) answers: Answers,
    /// Of the second cluster.
    pub(crate) restores: RestoreDetector,
    /// Whether answers to queries may differ from the last ones: the engine took an event or emitted
    /// `Effect::Changed`.
    pub(crate) has_events: bool,
    /// Seconds that its clock is ahead.
    pub(crate) skew: i64,
    /// Whether its clock was set back. Verdicts that depend on time are then wrong for a while.
    pub(crate) put_back: bool,
    /// Until then it may not have noticed that its clock was set.
    pub(crate) unaware: Moment,
    pub(crate) frozen_until: Moment,
    /// A planned crash: where, and milliseconds until the restart.
    pub(crate) planned_crash: Option<(Point, Moment)>,
    /// The next scheduled wake-up.
    pub(crate) wakes: Option<Moment>,
    /// Whether an engine step is scheduled.
    pub(crate) steps: bool,
    /// UIDs of objects whose deletion by this controller succeeded and was confirmed.
    pub(crate) deleted: BTreeSet<Box<str>>,
}

impl Process {
    pub(crate) fn new(name: usize, plan: &Plan) -> Self {
        Self {
            name,
            elsewhere: plan.goes_elsewhere(),
            inventory: plan.has_inventory(),
            has_inventory: false,
            connected: BTreeMap::new(),
            checks_liveness: false,
            published: Published::default(),
            searched: BTreeSet::new(),
            alive: false,
            epoch: 0,
            driver: Driver::new(Engine::new(), MAX_WRITES),
            feeds: BTreeMap::new(),
            inbox: VecDeque::new(),
            kinds: BTreeMap::new(),
            election: (plan.processes > 1).then(|| Election::new("", LEASE, RENEW_DEADLINE)),
            began: Timestamp::UNIX_EPOCH,
            answers: Answers::default(),
            restores: RestoreDetector::default(),
            has_events: true,
            skew: 0,
            put_back: false,
            unaware: 0,
            frozen_until: 0,
            planned_crash: None,
            wakes: None,
            steps: false,
            deleted: BTreeSet::new(),
        }
    }

    /// Starts with an empty state.
    pub(crate) fn start(&mut self, now: Timestamp) {
        self.alive = true;
        self.began = now;
        self.answers = Answers::default();
        self.restores = RestoreDetector::default();
        self.has_events = true;
        self.epoch += 1;
        let engine = Engine::new().with_kind(OwnKind::Application(Dialect::AppK8sIo));
        let engine = if self.elsewhere {
            engine.with_feeds_in(&Site::East.cluster(), Site::East.observed())
        } else {
            engine
        };
        let engine = if self.inventory { engine.with_combined_statuses() } else { engine };
        self.driver = Driver::new(engine, MAX_WRITES);
        self.feeds.clear();
        self.connected.clear();
        self.searched.clear();
        self.published = Published::default();
        (self.has_inventory, self.checks_liveness) = (false, false);
        self.inbox.clear();
        self.kinds.clear();
        self.deleted.clear();
        (self.put_back, self.unaware) = (false, 0);
        let identity = format!("{}-{}", self.name, self.epoch);
        self.election = self.election.take().map(|_| Election::new(&identity, LEASE, RENEW_DEADLINE));
        self.frozen_until = 0;
        self.planned_crash = None;
        self.wakes = None;
        self.steps = false;
    }

    pub(crate) fn end(&mut self) {
        self.alive = false;
        self.epoch += 1;
        self.feeds.clear();
        self.inbox.clear();
    }

    /// Follows a kind, or relists it with another lens.
    pub(crate) fn follow(
        &mut self,
        id: FeedId,
        (site, kind): (Site, &GroupKind),
        lens: &Arc<Lens>,
        (seed, now): (u64, Moment),
    ) {
        if let Some(feed) = self.feeds.get_mut(&id) {
            // By other rules: what is known is outdated until it is listed again.
            feed.view.telling |= feed.view.listed && !feed.reflector.lens().has_same_rules(lens);
            feed.reflector.set_lens(Arc::clone(lens));
            feed.ticket += 1;
            feed.busy = false;
            feed.view.refocused = true;
            return;
        }
        let reflector = Reflector::new(kind.clone(), None, Arc::clone(lens), BackoffLimits::default(), seed);
        self.feeds.insert(
            id,
            Feed {
                site,
                reflector,
                ticket: 0,
                busy: false,
                followed: now,
                completed: None,
                failing: None,
                is_reported: false,
                view: View::default(),
            },
        );
    }

    /// Whether it reads a cluster.
    pub(crate) fn reads(&self, site: Site) -> bool {
        site == Site::Hub || !self.inventory || self.connected.contains_key(&site)
    }

    pub(crate) fn feeds_of(&self, site: Site) -> impl Iterator<Item = &Feed> {
        self.feeds.values().filter(move |feed| feed.site == site)
    }

    /// Looks a kind up in the last discovery of a cluster.
    pub(crate) fn find(&self, site: Site, kind: &GroupKind) -> Discovered {
        match self.kinds.get(&site).map(|kinds| kinds.get(kind)) {
            Some(Some(served)) => Discovered::Served(served.clone()),
            Some(None) => Discovered::NotServed,
            None => Discovered::Unknown,
        }
    }

    /// Takes at most `most` events from the inbox.
    pub(crate) fn take(&mut self, most: usize, now: Moment) -> Vec<(FeedId, FeedEvent)> {
        let count = most.min(self.inbox.len());
        self.has_events |= count > 0;
        let mut taken = Vec::with_capacity(count);
        for (id, event, revision) in self.inbox.drain(..count) {
            if let Some(feed) = self.feeds.get_mut(&id) {
                if matches!(event, FeedEvent::ListCompleted) {
                    feed.completed = Some(now);
                }
                feed.view.deliver(&event, revision);
            }
            taken.push((id, event));
        }
        taken
    }

    /// The revision up to which the engine knows each kind of the hub.
    pub(crate) fn knew(&self) -> Vec<(GroupKind, u64)> {
        self.feeds_of(Site::Hub).map(|feed| (feed.reflector.kind().clone(), feed.view.revision)).collect()
    }

    /// Whether a kind of the hub changed between readable and unreadable.
    pub(crate) fn is_fickle(&self, kind: &GroupKind) -> bool {
        self.feeds_of(Site::Hub).any(|feed| feed.reflector.kind() == kind && feed.view.fickle)
    }

    /// Queries the status of every group and checks the answers, if they may have changed.
    pub(crate) fn ask(&mut self, store: &Store, now: Timestamp) -> Result<(), Violation> {
        if !mem::take(&mut self.has_events) {
            return Ok(());
        }
        self.answers.follow(&self.driver, now);
        let knew = self.knew();
        let feeds: Vec<_> = self.feeds.values().filter(|feed| feed.site == Site::Hub).collect();
        self.answers.ask(&self.driver, &feeds, &knew, store, now)
    }

    /// What the engine must know of the kinds of the hub.
    pub(crate) fn views(&self, store: &Store) -> BTreeMap<GroupKind, Known> {
        let known = |feed: &Feed| {
            let (kind, view) = (feed.reflector.kind(), &feed.view);
            let mut objects = if view.empty { BTreeMap::new() } else { store.at(kind, view.revision) };
            for object in objects.values_mut().filter(|object| self.deleted.contains(object.uid())) {
                let mut value = object.value.clone();
                value["metadata"]["deletionTimestamp"] = "2026-11-14T10:00:00Z".into();
                *object = Rc::new(Object::new(value));
            }
            let (served, unreadable) = (view.served.clone(), view.unreadable.clone());
            let (listed, listing) = (view.listed, view.telling);
            (kind.clone(), Known { served, unreadable, listed, listing, objects })
        };
        self.feeds_of(Site::Hub).map(known).collect()
    }
}
