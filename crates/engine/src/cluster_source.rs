//! Sources: where the objects of a cluster come from, and the routing of effects to clusters.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    effect::Effect,
    event::{Event, FeedEvent, Outcome, Unreadable},
    facts::ServedResource,
    id::{Cluster, FeedId, GroupKind},
    lens::Lens,
};

/// Reads one cluster: the reflectors of an API server, manifest files, or a store in memory. The code that
/// drives the engine delivers what a source reads as [`Event::Feed`].
pub trait ClusterSource {
    /// Lists and watches a kind. A feed that exists already is relisted through the new lens.
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>);

    /// Ends a feed. Events that are in flight may still arrive.
    fn leave(&mut self, feed: FeedId);

    /// `None` if the kind is not served, or if discovery has not answered yet.
    fn served(&self, kind: &GroupKind) -> Option<ServedResource>;
}

#[derive(Debug)]
pub struct ClusterSources<S>(BTreeMap<Cluster, S>);

/// The cluster of an effect or a write has no source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSource(pub Cluster);

impl<S> Default for ClusterSources<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S> ClusterSources<S> {
    pub fn hub(source: S) -> Self {
        Self(BTreeMap::from([(Cluster::hub(), source)]))
    }

    /// Returns the source that it replaces.
    pub fn insert(&mut self, cluster: Cluster, source: S) -> Option<S> {
        self.0.insert(cluster, source)
    }

    pub fn remove(&mut self, cluster: &Cluster) -> Option<S> {
        self.0.remove(cluster)
    }

    pub fn get(&self, cluster: &Cluster) -> Result<&S, NoSource> {
        self.0.get(cluster).ok_or_else(|| NoSource(cluster.clone()))
    }

    pub fn get_mut(&mut self, cluster: &Cluster) -> Result<&mut S, NoSource> {
        self.0.get_mut(cluster).ok_or_else(|| NoSource(cluster.clone()))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Cluster, &mut S)> {
        self.0.iter_mut()
    }
}

impl<S: ClusterSource> ClusterSources<S> {
    /// Passes `Follow` and `Leave` to the source of their cluster and returns all other effects.
    ///
    /// A feed of a cluster without a source is reported as `NotConnected` through `step`, and the effects of
    /// that step are routed, too.
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

    /// Returns the events for feeds that no source can follow.
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
                // Without a source, nothing is followed.
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

impl<S: ClusterSource + ?Sized> ClusterSource for &mut S {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        (**self).follow(feed, kind, lens);
    }

    fn leave(&mut self, feed: FeedId) {
        (**self).leave(feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
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

impl From<NoSource> for Outcome {
    fn from(error: NoSource) -> Self {
        Self::Failed(error.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;

    /// Records the calls.
    #[derive(Default)]
    struct Log(Vec<String>);

    impl ClusterSource for Log {
        fn follow(&mut self, feed: FeedId, kind: &GroupKind, _lens: Arc<Lens>) {
            self.0.push(format!("follow {feed} {kind}"));
        }

        fn leave(&mut self, feed: FeedId) {
            self.0.push(format!("leave {feed}"));
        }

        fn served(&self, _kind: &GroupKind) -> Option<ServedResource> {
            None
        }
    }

    fn follow(feed: u32, cluster: &Cluster) -> Effect {
        let (kind, cluster) = (GroupKind::pod(), cluster.clone());
        let lens = Arc::new(Engine::new().lens(&kind));
        Effect::Follow { feed: FeedId(feed), cluster, kind, lens }
    }

    #[test]
    fn effects_are_routed_by_cluster() {
        let (hub, east) = (Cluster::hub(), Cluster::named("east"));
        let mut sources = ClusterSources::hub(Log::default());
        sources.insert(east.clone(), Log::default());
        let leave = Effect::Leave { feed: FeedId(2), cluster: east.clone() };
        let effects = vec![follow(1, &hub), follow(2, &east), leave, Effect::Wake(None)];
        let others = sources.route(effects, |_| panic!("all feeds have a source"));
        assert_eq!(others, [Effect::Wake(None)]);
        assert_eq!(sources.get(&hub).unwrap().0, ["follow #1 Pod"]);
        assert_eq!(sources.get(&east).unwrap().0, ["follow #2 Pod", "leave #2"]);
    }

    #[test]
    fn a_feed_without_a_source_is_not_connected() {
        let east = Cluster::named("east");
        let mut sources = ClusterSources::hub(Log::default());
        let leave = Effect::Leave { feed: FeedId(2), cluster: east.clone() };
        let mut reported = Vec::new();
        let others = sources.route(vec![follow(2, &east), leave], |events| {
            reported.extend(events);
            vec![Effect::Wake(None)]
        });
        assert_eq!(others, [Effect::Wake(None)], "the effects of that step are returned");
        assert!(matches!(
            &reported[..],
            [Event::Feed(FeedId(2), FeedEvent::Unreadable(Unreadable::NotConnected))]
        ));
        assert!(sources.get(&Cluster::hub()).unwrap().0.is_empty(), "the hub is not asked instead");
        let error = sources.get(&east).err().unwrap();
        assert_eq!(Outcome::from(error), Outcome::Failed("cluster east is not connected".into()));
    }
}
