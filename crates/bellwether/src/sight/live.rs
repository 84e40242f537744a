//! A cluster, followed: what changes in it is seen as it changes.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use bellwether_engine::{Effect, Engine, Event, Facts, FeedId, Group, Kind, Lens, Name, News};
use bellwether_kube_io::read::{Reader, Settings};
use jiff::Timestamp;
use kube::Client;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{Beside, nested::Nested, undated};

/// So much news may wait.
const NEWS_WAITING: usize = 4096;

/// So much news is taken in at a time.
const NEWS_AT_A_TIME: usize = 1024;

/// So long is waited for more before anybody looks: changes come in swarms.
const SWARM: Duration = Duration::from_millis(100);

/// So often somebody looks even if nothing changes: clocks go on.
const SECOND: Duration = Duration::from_secs(1);

/// So long a watch may be closed: each ends now and then, and is begun anew at once.
const BREATH: Duration = Duration::from_secs(3);

/// API servers speak up on every watch about once a minute: who has been silent for longer is out of touch.
const SILENCE: Duration = Duration::from_secs(90);

/// Who wants to see a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wanted {
    Engine(FeedId),
    Beside(usize),
}

/// A kind that is seen beside those of the engine.
struct Kept {
    kind: Kind,
    lens: Arc<Lens>,
    objects: HashMap<Name, Facts>,
    /// What a list that is not complete has named so far.
    listing: Option<HashMap<Name, Facts>>,
}

/// A cluster that is followed.
pub(crate) struct Live {
    engine: Engine,
    nested: Nested,
    reader: Reader<Wanted>,
    news: mpsc::Receiver<(Wanted, News)>,
    /// In the order in which they were asked for.
    kept: Vec<Kept>,
    /// The kinds that are watched, or should be.
    listed: HashSet<Wanted>,
    /// Since when not all of them are.
    lost: Option<(Instant, Timestamp)>,
    begun: Timestamp,
    /// When all was known for the first time.
    known: Option<Timestamp>,
}

impl Live {
    /// Begins to follow what Applications speak of, in one namespace or in all. It must be called on a runtime.
    pub(crate) fn start(client: Client, namespace: Option<String>) -> Self {
        let (sender, news) = mpsc::channel(NEWS_WAITING);
        let mut live = Self {
            engine: Engine::new().with_app_k8s_io(),
            nested: Nested::default(),
            reader: Reader::start(client, Settings { namespace, ..Settings::default() }, sender),
            news,
            kept: Vec::new(),
            listed: HashSet::new(),
            lost: None,
            begun: Timestamp::now(),
            known: None,
        };
        live.step(Vec::new());
        live
    }

    /// Waits until something has changed, or a second has passed.
    pub(crate) async fn changed(&mut self) {
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
    }

    fn step(&mut self, news: Vec<(Wanted, News)>) {
        let mut events = Vec::new();
        for (wanted, news) in news {
            match news {
                News::Listed => drop(self.listed.insert(wanted)),
                News::Unreadable(_) => drop(self.listed.remove(&wanted)),
                _ => {}
            }
            match wanted {
                Wanted::Engine(feed) => {
                    self.nested.hear(feed, &news);
                    events.push(Event::Feed(feed, news));
                }
                Wanted::Beside(index) => {
                    if let Some(kept) = self.kept.get_mut(index) {
                        kept.hear(news);
                    }
                }
            }
        }
        events.push(Event::Tick);
        let now = Timestamp::now();
        let effects = self.engine.step(now, events);
        self.follow_up(effects);
        let effects = self.nested.settle(&mut self.engine, now);
        self.follow_up(effects);
        self.refocus();
        if self.known.is_none() && self.is_known() {
            self.known = Some(now);
        }
    }

    fn follow_up(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Follow { feed, kind, lens, .. } => {
                    self.nested.follow(feed, &kind);
                    self.reader.follow(Wanted::Engine(feed), kind, lens);
                }
                Effect::Leave { feed } => {
                    self.listed.remove(&Wanted::Engine(feed));
                    self.reader.leave(Wanted::Engine(feed));
                }
                Effect::Want(..) | Effect::Record(_) | Effect::Warn(_) | Effect::Wake(_) => {}
            }
        }
    }

    /// Judges what is seen besides by the rules that are in force now.
    fn refocus(&mut self) {
        for (index, kept) in self.kept.iter_mut().enumerate() {
            let lens = self.engine.lens(&kept.kind);
            if *kept.lens != lens {
                kept.lens = Arc::new(lens);
                self.reader.follow(Wanted::Beside(index), kept.kind.clone(), Arc::clone(&kept.lens));
            }
        }
    }

    fn look_at_watches(&mut self) {
        let open = usize::try_from(self.reader.tally().open_watches.get()).unwrap_or(usize::MAX);
        if open >= self.listed.len() {
            self.lost = None;
        } else {
            self.lost.get_or_insert_with(|| (Instant::now(), Timestamp::now()));
        }
    }

    /// Since when the cluster has not been heard from, if it is out of touch.
    pub(crate) fn silent_since(&self) -> Option<Timestamp> {
        let lost = self.lost.filter(|(since, _)| since.elapsed() > BREATH).map(|(_, since)| since);
        let is_long_ago = |heard: &Timestamp| {
            Timestamp::now().duration_since(*heard) > SILENCE.try_into().unwrap_or_default()
        };
        lost.or_else(|| self.reader.tally().heard_least_recently().filter(is_long_ago))
    }

    /// Whether all that is needed is known, and of one time.
    pub(crate) fn is_known(&self) -> bool {
        self.engine.is_whole()
    }

    /// The groups. What was so when the first look began is not said to have begun then.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups = self.engine.groups();
        undated(&mut groups, self.begun, self.known.unwrap_or(Timestamp::MAX));
        groups
    }

    /// Follows these kinds, too.
    pub(crate) fn look_beside(&mut self, kinds: Vec<Kind>) {
        for kind in kinds {
            if !self.kept.iter().any(|kept| kept.kind == kind) {
                let lens = Arc::new(self.engine.lens(&kind));
                self.reader.follow(Wanted::Beside(self.kept.len()), kind.clone(), Arc::clone(&lens));
                self.kept.push(Kept { kind, lens, objects: HashMap::new(), listing: None });
            }
        }
    }

    /// What is to be seen of the kinds that are followed besides.
    pub(crate) fn beside(&self) -> Vec<Beside> {
        let of = |kept: &Kept| {
            let beside = |(name, facts): (&Name, &Facts)| Beside {
                kind: kept.kind.clone(),
                name: name.clone(),
                facts: facts.clone(),
            };
            kept.objects.iter().map(beside).collect::<Vec<_>>()
        };
        self.kept.iter().flat_map(of).collect()
    }
}

impl Kept {
    fn hear(&mut self, news: News) {
        match news {
            News::Listing => self.listing = Some(HashMap::new()),
            News::Seen(name, seen) => {
                self.listing.as_mut().unwrap_or(&mut self.objects).insert(name, seen.facts);
            }
            News::Gone(name) => {
                self.listing.as_mut().unwrap_or(&mut self.objects).remove(&name);
            }
            // Whatever a list does not name is gone; until it is complete, what was known stays.
            News::Listed => self.objects = mem::take(&mut self.listing).unwrap_or_default(),
            News::Unreadable(_) => (self.objects, self.listing) = (HashMap::new(), None),
            News::Served(_) | News::PutBack => {}
        }
    }
}
