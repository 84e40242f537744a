//! An engine that sees what is shown to it of one view: some of our own kinds, in one namespace or in all.
//!
//! The members of an Application are where it is, and whoever may read one namespace may see all about it. The components
//! of a Rollup are anywhere. So there are two views of a cluster, unless somebody looks at all of it.

use std::collections::HashMap;

use bellwether_engine::{
    Dialect, Effect, Engine, Event, FeedId, Group, GroupRef, Kind, Name, News, Unreadable,
};
use jiff::Timestamp;

/// What somebody wants to see.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The one namespace; none for all.
    pub(super) namespace: Option<String>,
    /// Those of our own kinds that are understood. The others are objects like any, if somebody asks for them.
    own: Vec<Kind>,
    /// The one Rollup that is meant, if it is one.
    only: Option<String>,
}

impl View {
    /// These of our own kinds.
    pub(super) fn of(own: &[Kind], namespace: Option<String>) -> Self {
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
        let own = [Dialect::Bellwether.kind(), Dialect::AppK8sIo.kind(), Kind::own("HealthRule")];
        Self::of(&own, namespace)
    }

    /// The Rollups, wherever their components are, or one of them. No rule judges components.
    pub(super) fn of_rollups(only: Option<&str>) -> Self {
        Self { only: only.map(str::to_owned), ..Self::of(&[rollup()], None) }
    }

    /// The same for who looks at nothing else: what is below components is judged by rules.
    pub(super) fn alone(mut self) -> Self {
        let rules = Kind::own("HealthRule");
        if !self.own.contains(&rules) {
            self.own.push(rules);
        }
        self
    }

    /// Whether there may be groups of this kind in it.
    pub(super) fn shows(&self, kind: &Kind) -> bool {
        self.own.contains(kind)
    }

    /// Whether an object is understood rather than merely seen.
    fn means(&self, kind: &Kind, name: &Name) -> bool {
        let is_another = |only: &String| kind.is_rollup() && *name.name != **only;
        self.shows(kind) && !self.only.as_ref().is_some_and(is_another)
    }
}

pub(super) fn rollup() -> Kind {
    Kind::own("Rollup")
}

/// An engine and its view.
pub(super) struct Eye {
    pub(super) engine: Engine,
    pub(super) view: View,
    /// The kinds that it follows.
    followed: HashMap<FeedId, Kind>,
}

impl Eye {
    pub(super) fn new(view: View) -> Self {
        let engine = Engine::new().with_app_k8s_io().with_nested_evaluation();
        Self { engine, view, followed: HashMap::new() }
    }

    /// Opens it: gives back what it asks for first.
    pub(super) fn open(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut wanted = Vec::new();
        let mut unseen = Vec::new();
        for effect in self.engine.step(now, []) {
            match effect {
                Effect::Follow { feed, cluster: _, kind, lens: _ } if !self.view.shows(&kind) => {
                    unseen.push(Event::Feed(feed, News::Unreadable(Unreadable::NotGiven)));
                }
                effect => wanted.push(effect),
            }
        }
        wanted.extend(self.engine.step(now, unseen));
        self.follow(&wanted);
        wanted
    }

    /// Shows it what there is of the kinds that it follows. Gives back what it asks for next.
    pub(super) fn see(
        &mut self,
        now: Timestamp,
        news: impl IntoIterator<Item = (FeedId, News)>,
    ) -> Vec<Effect> {
        let mut events = vec![Event::Tick];
        for (feed, mut news) in news {
            if let (News::Seen(name, seen), Some(kind)) = (&mut news, self.followed.get(&feed))
                && !self.view.means(kind, name)
            {
                seen.own = None;
            }
            events.push(Event::Feed(feed, news));
        }
        self.step(now, events)
    }

    /// Tells it what has happened. Gives back what it asks for next.
    pub(super) fn step(&mut self, now: Timestamp, events: Vec<Event>) -> Vec<Effect> {
        let effects = self.engine.step(now, events);
        self.follow(&effects);
        effects
    }

    fn follow(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Follow { feed, cluster: _, kind, lens: _ } => {
                    let is_known = self.followed.insert(*feed, kind.clone()).is_some();
                    // Some Rollup counts others, which have to be understood as well.
                    if is_known && kind.is_rollup() {
                        self.view.only = None;
                    }
                }
                Effect::Leave { feed, cluster: _ } => drop(self.followed.remove(feed)),
                Effect::Changed(..)
                | Effect::Want(..)
                | Effect::Record(_)
                | Effect::Warn(_)
                | Effect::Wake(_) => {}
            }
        }
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
