//! An engine that sees what is shown to it of one view: some of our own kinds, in one namespace or in all.
//!
//! The members of an Application are where it is, and whoever may read one namespace may see all about it. The components
//! of a Rollup are anywhere. So there are two views of a cluster, unless somebody looks at all of it.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
    sync::Arc,
};

use bellwether_engine::{
    Dialect, Effect, Engine, Event, FeedEvent, FeedId, Group, GroupKind, GroupRef, Lens, NamespacedName,
    OwnKind, Served, Source, Sources, Unreadable,
};
use jiff::Timestamp;

/// What somebody wants to see.
#[derive(Clone, Debug)]
pub struct EvaluationScope {
    /// The one namespace; none for all.
    pub(super) namespace: Option<String>,
    /// Those of our own kinds that are understood. The others are objects like any, if somebody asks for them.
    own: Vec<GroupKind>,
    /// The one Rollup that is meant, if it is one.
    only: Option<String>,
}

impl EvaluationScope {
    /// These of our own kinds.
    pub(super) fn of(own: &[GroupKind], namespace: Option<String>) -> Self {
        Self { namespace, own: own.to_vec(), only: None }
    }

    /// All groups.
    pub(super) fn of_all(namespace: Option<String>) -> Self {
        let mut view = Self::of_applications(namespace);
        view.own.push(rollup());
        view
    }

    /// The Applications.
    pub(super) fn of_applications(namespace: Option<String>) -> Self {
        let own = [Dialect::Bellwether.kind(), Dialect::AppK8sIo.kind(), GroupKind::own("HealthRule")];
        Self::of(&own, namespace)
    }

    /// The Rollups, wherever their components are, or one of them. No rule judges components.
    pub(super) fn of_rollups(only: Option<&str>) -> Self {
        Self { only: only.map(str::to_owned), ..Self::of(&[rollup()], None) }
    }

    /// The same for who looks at nothing else: what is below components is judged by rules.
    pub(super) fn alone(mut self) -> Self {
        let rules = GroupKind::own("HealthRule");
        if !self.own.contains(&rules) {
            self.own.push(rules);
        }
        self
    }

    /// Whether there may be groups of this kind in it.
    pub(super) fn shows(&self, kind: &GroupKind) -> bool {
        self.own.contains(kind)
    }

    /// Whether an object is understood rather than merely seen.
    fn means(&self, kind: &GroupKind, name: &NamespacedName) -> bool {
        let is_another = |only: &String| kind.is_rollup() && *name.name != **only;
        self.shows(kind) && !self.only.as_ref().is_some_and(is_another)
    }
}

pub(super) fn rollup() -> GroupKind {
    GroupKind::own("Rollup")
}

/// An engine and its view.
pub(super) struct Evaluator {
    pub(super) engine: Engine,
    pub(super) view: EvaluationScope,
    /// The kinds that it follows.
    followed: HashMap<FeedId, GroupKind>,
    /// The groups of which something else may be said than before.
    changed: BTreeSet<Changed>,
}

/// A group; without a name, all of its kind, also those that are not there.
pub(super) type Changed = (OwnKind, Option<NamespacedName>);

impl Evaluator {
    pub(super) fn new(view: EvaluationScope) -> Self {
        let engine =
            Engine::new().with_kind(OwnKind::Application(Dialect::AppK8sIo)).with_nested_evaluation();
        Self { engine, view, followed: HashMap::new(), changed: BTreeSet::new() }
    }

    /// Asks a source for those of our own kinds that are in the view. Of the others there is nothing to be seen.
    pub(super) fn open(&mut self, now: Timestamp, source: &mut impl Source) {
        let effects = self.engine.step(now, []);
        let mut hidden = Vec::new();
        self.route(now, effects, source, Some(&mut hidden));
        let unseen = |feed| Event::Feed(feed, FeedEvent::Unreadable(Unreadable::NotInInput));
        self.step(now, hidden.into_iter().map(unseen).collect(), source);
    }

    /// Shows it what there is of the kinds that it follows.
    pub(super) fn see(
        &mut self,
        now: Timestamp,
        news: impl IntoIterator<Item = (FeedId, FeedEvent)>,
        source: &mut impl Source,
    ) {
        let mut events = vec![Event::Tick];
        for (feed, mut news) in news {
            if let (FeedEvent::Applied(name, seen), Some(kind)) = (&mut news, self.followed.get(&feed))
                && !self.view.means(kind, name)
            {
                seen.own = None;
            }
            events.push(Event::Feed(feed, news));
        }
        self.step(now, events, source);
    }

    /// Tells it what has happened. The source follows what it asks for next.
    pub(super) fn step(&mut self, now: Timestamp, events: Vec<Event>, source: &mut impl Source) {
        let effects = self.engine.step(now, events);
        self.route(now, effects, source, None);
    }

    /// The source is that of the hub, the only cluster that is looked at.
    fn route(
        &mut self,
        now: Timestamp,
        effects: Vec<Effect>,
        source: &mut impl Source,
        hidden: Option<&mut Vec<FeedId>>,
    ) {
        let Self { engine, view, followed, changed } = self;
        let effects = Sources::hub(Feeds { source, view, followed, hidden })
            .route(effects, |unread| engine.step(now, unread));
        // What is to be written is not for those who only look.
        changed.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Changed(kind, name) => Some((kind, name)),
            _ => None,
        }));
    }

    /// The groups of which something else may be said than when this was last called.
    pub(super) fn take_changed(&mut self) -> BTreeSet<Changed> {
        mem::take(&mut self.changed)
    }

    /// The groups of the view, but for those that count one another: nobody can tell how they are.
    pub(super) fn groups(&self, now: Timestamp) -> Vec<Group> {
        let mut groups = self.engine.groups(now);
        groups.retain(|group| {
            !self.engine.cyclic_groups().any(|it| it.kind.kind() == group.kind && it.name == group.name)
        });
        groups
    }

    /// One of them.
    pub(super) fn group(&self, now: Timestamp, group: &GroupRef) -> Option<Group> {
        let is_cyclic = self.engine.cyclic_groups().any(|it| it == group);
        self.engine.group(now, group).filter(|_| !is_cyclic)
    }
}

/// The feeds of an evaluator, on their way to what reads them.
struct Feeds<'e, S> {
    source: &'e mut S,
    view: &'e mut EvaluationScope,
    followed: &'e mut HashMap<FeedId, GroupKind>,
    /// The feeds of kinds that are not in the view, while the evaluator opens. Later, a group may count objects of such a
    /// kind.
    hidden: Option<&'e mut Vec<FeedId>>,
}

impl<S: Source> Source for Feeds<'_, S> {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        if let Some(hidden) = &mut self.hidden
            && !self.view.shows(kind)
        {
            hidden.push(feed);
            return;
        }
        let is_known = self.followed.insert(feed, kind.clone()).is_some();
        // Some Rollup counts others, which have to be understood as well.
        if is_known && kind.is_rollup() {
            self.view.only = None;
        }
        self.source.follow(feed, kind, lens);
    }

    fn leave(&mut self, feed: FeedId) {
        self.followed.remove(&feed);
        self.source.leave(feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<Served> {
        self.source.served(kind)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_engine::{Cluster, LookContext};
    use bellwether_model::Object;
    use serde_json::json;

    use super::*;

    /// Writes down the kinds that it is asked for.
    #[derive(Default)]
    struct RequestLog(Vec<String>, Vec<(FeedId, Arc<Lens>)>);

    impl Source for RequestLog {
        fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
            self.0.push(kind.to_string());
            self.1.push((feed, lens));
        }

        fn leave(&mut self, _feed: FeedId) {}

        fn served(&self, _kind: &GroupKind) -> Option<Served> {
            None
        }
    }

    #[test]
    fn only_kinds_of_the_view_are_asked_for() {
        let mut log = RequestLog::default();
        Evaluator::new(EvaluationScope::of_rollups(None)).open(Timestamp::UNIX_EPOCH, &mut log);
        assert_eq!(log.0, ["Rollup.bellwether.dev"]);
    }

    #[test]
    fn who_follows_groups_is_told_only_of_those_that_changed() {
        let (now, mut log) = (Timestamp::UNIX_EPOCH, RequestLog::default());
        let mut evaluator = Evaluator::new(EvaluationScope::of_rollups(None));
        evaluator.open(now, &mut log);
        let (feed, lens) = log.1[0].clone();
        evaluator.see(now, [(feed, FeedEvent::ListCompleted)], &mut log);
        assert!(evaluator.take_changed().contains(&(OwnKind::Rollup, None)), "all are known now");
        let rollup = |name: &str, version: &str| {
            let object = json!({
                "apiVersion": "bellwether.dev/v1alpha1", "kind": "Rollup",
                "metadata": {"name": name, "uid": name, "resourceVersion": version, "generation": 1},
                "spec": {"components": [{"group": "example.com", "kind": "Database", "name": "main"}]},
            });
            let bytes = object.to_string();
            let object = Object::from_json(bytes.as_bytes(), lens.plan()).unwrap();
            let (name, seen) = lens.look(&object, LookContext { now, has_status: Some(true) });
            (feed, FeedEvent::Applied(name, Box::new(seen)))
        };
        let of = |name: &str| (OwnKind::Rollup, Some(NamespacedName::new("", name)));
        evaluator.see(now, [rollup("a", "1"), rollup("b", "1")], &mut log);
        assert_eq!(evaluator.take_changed(), [of("a"), of("b")].into());
        evaluator.see(now, [(feed, FeedEvent::Deleted(NamespacedName::new("", "b")))], &mut log);
        assert_eq!(evaluator.take_changed(), [of("b")].into());
        evaluator.see(now, [], &mut log);
        assert_eq!(evaluator.take_changed(), [].into());
    }

    /// The engine is told that nothing connects them, which is for `Sources` to prove.
    #[test]
    fn feeds_of_another_cluster_are_not_asked_for_in_this_one() {
        let (mut evaluator, mut log) = (Evaluator::new(EvaluationScope::of_all(None)), RequestLog::default());
        let mut effects = evaluator.engine.step(Timestamp::UNIX_EPOCH, []);
        for effect in &mut effects {
            if let Effect::Follow { cluster, .. } = effect {
                *cluster = Cluster::named("east");
            }
        }
        evaluator.route(Timestamp::UNIX_EPOCH, effects, &mut log, None);
        assert!(log.0.is_empty() && evaluator.followed.is_empty(), "{:?}", log.0);
    }
}
