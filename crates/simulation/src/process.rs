//! One controller: the real engine, the real followers and the real election, between a network and a clock that are not.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use bellwether_engine::{Dialect, Driver, Engine, FeedEvent, FeedId, GroupKind, Lens, OwnKind, Served};
use bellwether_wire::{Discovered, Reflector, backoff::BackoffLimits, election::Election};
use jiff::Timestamp;

use crate::{
    feed::{Feed, View},
    known::Known,
    object::Object,
    plan::{Moment, Plan, Point},
    query_checks::Answers,
    site::Site,
    store::Store,
    violation::Violation,
};

/// How many writes are under way at a time.
const WRITES_AT_A_TIME: usize = 4;

/// The times of the Lease, as most controllers have them.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(10);
pub(crate) const RETRY: Moment = 2_000;

/// A controller.
#[expect(clippy::struct_excessive_bools, reason = "each is about something else")]
pub(crate) struct Process {
    pub(crate) name: usize,
    /// Whether it looks at the other cluster, too.
    elsewhere: bool,
    pub(crate) alive: bool,
    /// How often it was started. What was meant for an earlier one is dropped.
    pub(crate) epoch: u64,
    pub(crate) driver: Driver,
    pub(crate) feeds: BTreeMap<FeedId, Feed>,
    /// What waits for the engine, and how much it knows after each.
    pub(crate) inbox: VecDeque<(FeedId, FeedEvent, Option<u64>)>,
    /// The kinds that each cluster has, as far as it knows.
    pub(crate) kinds: BTreeMap<Site, Rc<BTreeMap<GroupKind, Served>>>,
    /// None if there is no other.
    pub(crate) election: Option<Election>,
    /// When it was started, by its clock.
    pub(crate) began: Timestamp,
    /// What it has told those who asked.
    pub(crate) answers: Answers,
    /// Whether it may have another answer than when it was last asked: it has heard something, or says that a group has
    /// changed.
    pub(crate) has_events: bool,
    /// How many seconds its clock is ahead.
    pub(crate) skew: i64,
    /// Whether its clock was put back: then what time has made of objects is wrong for a while.
    pub(crate) put_back: bool,
    /// Until when it may not have noticed that its clock was set.
    pub(crate) unaware: Moment,
    pub(crate) frozen_until: Moment,
    /// Where it is to end, and how long there is none then.
    pub(crate) doom: Option<(Point, Moment)>,
    /// When it is next to be woken.
    pub(crate) wakes: Option<Moment>,
    pub(crate) steps: bool,
    /// The uids of those that it has deleted, and knows it.
    pub(crate) deleted: BTreeSet<Box<str>>,
}

impl Process {
    pub(crate) fn new(name: usize, plan: &Plan) -> Self {
        Self {
            name,
            elsewhere: plan.goes_elsewhere(),
            alive: false,
            epoch: 0,
            driver: Driver::new(Engine::new(), WRITES_AT_A_TIME),
            feeds: BTreeMap::new(),
            inbox: VecDeque::new(),
            kinds: BTreeMap::new(),
            election: (plan.processes > 1).then(|| Election::new("", LEASE, RENEW_DEADLINE)),
            began: Timestamp::UNIX_EPOCH,
            answers: Answers::default(),
            has_events: true,
            skew: 0,
            put_back: false,
            unaware: 0,
            frozen_until: 0,
            doom: None,
            wakes: None,
            steps: false,
            deleted: BTreeSet::new(),
        }
    }

    /// It begins, and knows nothing.
    pub(crate) fn start(&mut self, now: Timestamp) {
        self.alive = true;
        self.began = now;
        self.answers = Answers::default();
        self.has_events = true;
        self.epoch += 1;
        let engine = Engine::new().with_kind(OwnKind::Application(Dialect::AppK8sIo));
        let engine = if self.elsewhere {
            engine.observing(&Site::East.cluster(), Site::East.observed())
        } else {
            engine
        };
        self.driver = Driver::new(engine, WRITES_AT_A_TIME);
        self.feeds.clear();
        self.inbox.clear();
        self.kinds.clear();
        self.deleted.clear();
        (self.put_back, self.unaware) = (false, 0);
        let identity = format!("{}-{}", self.name, self.epoch);
        self.election = self.election.take().map(|_| Election::new(&identity, LEASE, RENEW_DEADLINE));
        self.frozen_until = 0;
        self.doom = None;
        self.wakes = None;
        self.steps = false;
    }

    /// It ends.
    pub(crate) fn end(&mut self) {
        self.alive = false;
        self.epoch += 1;
        self.feeds.clear();
        self.inbox.clear();
    }

    /// Follows a kind, or lists it anew through another lens.
    pub(crate) fn follow(
        &mut self,
        id: FeedId,
        (site, kind): (Site, &GroupKind),
        lens: &Arc<Lens>,
        seed: u64,
    ) {
        if let Some(feed) = self.feeds.get_mut(&id) {
            feed.follower.set_lens(Arc::clone(lens));
            feed.ticket += 1;
            feed.busy = false;
            feed.view.refocused = true;
            return;
        }
        let follower = Reflector::new(kind.clone(), None, Arc::clone(lens), BackoffLimits::default(), seed);
        self.feeds.insert(id, Feed { site, follower, ticket: 0, busy: false, view: View::default() });
    }

    /// The feeds of a cluster.
    pub(crate) fn feeds_of(&self, site: Site) -> impl Iterator<Item = &Feed> {
        self.feeds.values().filter(move |feed| feed.site == site)
    }

    /// Whether a cluster serves a kind, as far as it knows.
    pub(crate) fn find(&self, site: Site, kind: &GroupKind) -> Discovered {
        match self.kinds.get(&site).map(|kinds| kinds.get(kind)) {
            Some(Some(served)) => Discovered::Served(served.clone()),
            Some(None) => Discovered::NotServed,
            None => Discovered::Unknown,
        }
    }

    /// Takes from what waits for the engine.
    pub(crate) fn take(&mut self, most: usize) -> Vec<(FeedId, FeedEvent)> {
        let count = most.min(self.inbox.len());
        self.has_events |= count > 0;
        let mut taken = Vec::with_capacity(count);
        for (id, news, revision) in self.inbox.drain(..count) {
            if let Some(feed) = self.feeds.get_mut(&id) {
                feed.view.hear(&news, revision);
            }
            taken.push((id, news));
        }
        taken
    }

    /// Up to which change it knows each kind of the hub.
    pub(crate) fn knew(&self) -> Vec<(GroupKind, u64)> {
        self.feeds_of(Site::Hub).map(|feed| (feed.follower.kind().clone(), feed.view.revision)).collect()
    }

    /// Whether a kind of the hub could be read and then not, or the other way round.
    pub(crate) fn is_fickle(&self, kind: &GroupKind) -> bool {
        self.feeds_of(Site::Hub).any(|feed| feed.follower.kind() == kind && feed.view.fickle)
    }

    /// Somebody asks it about everything, unless it would say what it said before.
    pub(crate) fn ask(&mut self, store: &Store, now: Timestamp) -> Result<(), Violation> {
        if !mem::take(&mut self.has_events) {
            return Ok(());
        }
        self.answers.follow(&self.driver, now);
        let knew = self.knew();
        let feeds: Vec<_> = self.feeds.values().filter(|feed| feed.site == Site::Hub).collect();
        self.answers.ask(&self.driver, &feeds, &knew, store, now)
    }

    /// What it must know of all kinds of the hub by now.
    pub(crate) fn views(&self, store: &Store) -> BTreeMap<GroupKind, Known> {
        let known = |feed: &Feed| {
            let (kind, view) = (feed.follower.kind(), &feed.view);
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
