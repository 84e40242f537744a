//! Where objects come from: one source for each cluster, and the one way from an effect to a cluster.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    effect::Effect,
    event::{Event, FeedEvent, Outcome, Unreadable},
    facts::Served,
    id::{Cluster, FeedId, GroupKind},
    lens::Lens,
};

/// Reads one cluster: the reflectors of an API server, files that stand for one, a store in memory. What it reads reaches
/// the engine as [`Event::Feed`], by whatever way whoever drives the engine has for that.
pub trait Source {
    /// Lists and watches a kind. A feed that is followed already is listed again, through the new lens.
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>);

    /// Ends a feed. News of it that is on its way may still arrive.
    fn leave(&mut self, feed: FeedId);

    /// How the cluster serves a kind; nothing if it does not, or if discovery has not answered yet.
    fn served(&self, kind: &GroupKind) -> Option<Served>;
}

/// The sources of an engine, by cluster.
#[derive(Debug)]
pub struct Sources<S>(BTreeMap<Cluster, S>);

/// No source is connected to the cluster that an effect or a write names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSource(pub Cluster);

impl<S> Default for Sources<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S> Sources<S> {
    /// Only the hub.
    pub fn hub(source: S) -> Self {
        Self(BTreeMap::from([(Cluster::hub(), source)]))
    }

    /// Connects a cluster. Gives back the source that it replaces.
    pub fn insert(&mut self, cluster: Cluster, source: S) -> Option<S> {
        self.0.insert(cluster, source)
    }

    /// The source of a cluster.
    pub fn get(&self, cluster: &Cluster) -> Result<&S, NoSource> {
        self.0.get(cluster).ok_or_else(|| NoSource(cluster.clone()))
    }

    /// The source of a cluster, to be changed.
    pub fn get_mut(&mut self, cluster: &Cluster) -> Result<&mut S, NoSource> {
        self.0.get_mut(cluster).ok_or_else(|| NoSource(cluster.clone()))
    }

    /// All sources, by the names of their clusters.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Cluster, &mut S)> {
        self.0.iter_mut()
    }
}

impl<S: Source> Sources<S> {
    /// Hands each effect about reading to the source of its cluster, and gives back the others.
    ///
    /// A feed of a cluster without a source is read nowhere. `step` tells the engine so, and what follows from that is
    /// routed as well.
    pub fn route(
        &mut self,
        mut effects: Vec<Effect>,
        mut step: impl FnMut(Vec<Event>) -> Vec<Effect>,
    ) -> Vec<Effect> {
        let mut others = Vec::new();
        loop {
            let unreadable = self.route_once(effects, &mut others);
            if unreadable.is_empty() {
                return others;
            }
            effects = step(unreadable);
        }
    }

    /// Gives back what the engine has to be told: the feeds that no source can follow.
    fn route_once(&mut self, effects: Vec<Effect>, others: &mut Vec<Effect>) -> Vec<Event> {
        let mut unreadable = Vec::new();
        for effect in effects {
            match effect {
                Effect::Follow { feed, cluster, kind, lens } => match self.get_mut(&cluster) {
                    Ok(source) => source.follow(feed, &kind, lens),
                    Err(NoSource(_)) => {
                        unreadable.push(Event::Feed(feed, FeedEvent::Unreadable(Unreadable::NotConnected)));
                    }
                },
                // What is not connected is not followed.
                Effect::Leave { feed, cluster } => {
                    if let Ok(source) = self.get_mut(&cluster) {
                        source.leave(feed);
                    }
                }
                effect => others.push(effect),
            }
        }
        unreadable
    }
}

impl<S: Source + ?Sized> Source for &mut S {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        (**self).follow(feed, kind, lens);
    }

    fn leave(&mut self, feed: FeedId) {
        (**self).leave(feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<Served> {
        (**self).served(kind)
    }
}

impl std::fmt::Display for NoSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.name() {
            "" => f.write_str("the hub is not connected"),
            name => write!(f, "cluster {name} is not connected"),
        }
    }
}

impl std::error::Error for NoSource {}

/// What becomes of a write to such a cluster.
impl From<NoSource> for Outcome {
    fn from(error: NoSource) -> Self {
        Self::Failed(error.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;

    /// Writes down what it is asked for.
    #[derive(Default)]
    struct Log(Vec<String>);

    impl Source for Log {
        fn follow(&mut self, feed: FeedId, kind: &GroupKind, _lens: Arc<Lens>) {
            self.0.push(format!("follow {feed} {kind}"));
        }

        fn leave(&mut self, feed: FeedId) {
            self.0.push(format!("leave {feed}"));
        }

        fn served(&self, _kind: &GroupKind) -> Option<Served> {
            None
        }
    }

    fn follow(feed: u32, cluster: &Cluster) -> Effect {
        let (kind, cluster) = (GroupKind::pod(), cluster.clone());
        let lens = Arc::new(Engine::new().lens(&kind));
        Effect::Follow { feed: FeedId(feed), cluster, kind, lens }
    }

    #[test]
    fn each_source_is_asked_for_what_is_in_its_cluster() {
        let (hub, east) = (Cluster::hub(), Cluster::named("east"));
        let mut sources = Sources::hub(Log::default());
        sources.insert(east.clone(), Log::default());
        let leave = Effect::Leave { feed: FeedId(2), cluster: east.clone() };
        let effects = vec![follow(1, &hub), follow(2, &east), leave, Effect::Wake(None)];
        let others = sources.route(effects, |_| panic!("all feeds have a source"));
        assert_eq!(others, [Effect::Wake(None)]);
        assert_eq!(sources.get(&hub).unwrap().0, ["follow #1 Pod"]);
        assert_eq!(sources.get(&east).unwrap().0, ["follow #2 Pod", "leave #2"]);
    }

    #[test]
    fn what_is_in_a_cluster_without_a_source_is_read_nowhere() {
        let east = Cluster::named("east");
        let mut sources = Sources::hub(Log::default());
        let leave = Effect::Leave { feed: FeedId(2), cluster: east.clone() };
        let mut reported = Vec::new();
        let others = sources.route(vec![follow(2, &east), leave], |events| {
            reported.extend(events);
            vec![Effect::Wake(None)]
        });
        assert_eq!(others, [Effect::Wake(None)], "what follows from it is not lost");
        assert!(matches!(
            &reported[..],
            [Event::Feed(FeedId(2), FeedEvent::Unreadable(Unreadable::NotConnected))]
        ));
        assert!(sources.get(&Cluster::hub()).unwrap().0.is_empty(), "least of all in the hub");
        let error = sources.get(&east).err().unwrap();
        assert_eq!(Outcome::from(error), Outcome::Failed("cluster east is not connected".into()));
    }
}
