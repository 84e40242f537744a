//! A cluster, followed: what changes in it is seen as it changes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bellwether_engine::{Effect, Engine, Event, Facts, FeedId, Group, Kind, Name, News};
use bellwether_kube_io::read::{Reader, Settings};
use jiff::Timestamp;
use kube::Client;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::Beside;

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
enum Wanted {
    Engine(FeedId),
    Beside(usize),
}

/// A cluster that is followed.
pub(crate) struct Live {
    engine: Engine,
    reader: Reader<Wanted>,
    news: mpsc::Receiver<(Wanted, News)>,
    /// The kinds that are seen beside those of the engine, in the order in which they were asked for.
    kinds: Vec<(Kind, HashMap<Name, Facts>)>,
}

impl Live {
    /// Begins to follow what Applications speak of, in one namespace or in all. It must be called on a runtime.
    pub(crate) fn start(client: Client, namespace: Option<String>) -> Self {
        let (sender, news) = mpsc::channel(NEWS_WAITING);
        let reader = Reader::start(client, Settings { namespace, ..Settings::default() }, sender);
        let mut live = Self { engine: Engine::new().with_app_k8s_io(), reader, news, kinds: Vec::new() };
        live.step(Vec::new());
        live
    }

    /// Waits until something has changed, or a second has passed.
    pub(crate) async fn changed(&mut self) {
        let mut batch = Vec::new();
        if timeout(SECOND, self.news.recv_many(&mut batch, NEWS_AT_A_TIME)).await.is_err() {
            return self.step(Vec::new());
        }
        self.step(batch);
        sleep(SWARM).await;
        let mut batch = Vec::new();
        while let Ok(news) = self.news.try_recv() {
            batch.push(news);
        }
        self.step(batch);
    }

    fn step(&mut self, news: Vec<(Wanted, News)>) {
        let mut events = Vec::new();
        for (wanted, news) in news {
            match wanted {
                Wanted::Engine(feed) => events.push(Event::Feed(feed, news)),
                Wanted::Beside(index) => self.beside_news(index, news),
            }
        }
        events.push(Event::Tick);
        for effect in self.engine.step(Timestamp::now(), events) {
            match effect {
                Effect::Follow { feed, kind, lens, .. } => {
                    self.reader.follow(Wanted::Engine(feed), kind, lens);
                }
                Effect::Leave { feed } => self.reader.leave(Wanted::Engine(feed)),
                Effect::Want(..) | Effect::Record(_) | Effect::Warn(_) | Effect::Wake(_) => {}
            }
        }
    }

    fn beside_news(&mut self, index: usize, news: News) {
        let Some((_, objects)) = self.kinds.get_mut(index) else { return };
        match news {
            // Whatever a second list does not name is gone; it names the rest at once.
            News::Listing | News::Unreadable(_) => objects.clear(),
            News::Seen(name, seen) => drop(objects.insert(name, seen.facts)),
            News::Gone(name) => drop(objects.remove(&name)),
            News::Served(_) | News::PutBack | News::Listed => {}
        }
    }

    /// Whether all that is needed is known.
    pub(crate) fn is_known(&self) -> bool {
        let census = self.engine.census();
        census.open && census.unknown.is_empty()
    }

    pub(crate) fn groups(&self) -> Vec<Group> {
        self.engine.groups()
    }

    /// Follows these kinds, too.
    pub(crate) fn look_beside(&mut self, kinds: Vec<Kind>) {
        for kind in kinds {
            if !self.kinds.iter().any(|(known, _)| *known == kind) {
                let lens = Arc::new(self.engine.lens(&kind));
                self.reader.follow(Wanted::Beside(self.kinds.len()), kind.clone(), lens);
                self.kinds.push((kind, HashMap::new()));
            }
        }
    }

    /// What is to be seen of the kinds that are followed besides.
    pub(crate) fn beside(&self) -> Vec<Beside> {
        let all =
            self.kinds.iter().flat_map(|(kind, objects)| objects.iter().map(move |object| (kind, object)));
        all.map(|(kind, (name, facts))| Beside {
            kind: kind.clone(),
            name: name.clone(),
            facts: facts.clone(),
        })
        .collect()
    }

    /// When the cluster was last heard of, as far as the least recent of its watches goes.
    pub(crate) fn heard(&self) -> Option<Timestamp> {
        self.reader.tally().heard_least_recently()
    }
}
