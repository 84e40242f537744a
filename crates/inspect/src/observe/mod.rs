//! What is to be seen in a cluster, or in files that stand for one: engines are shown all that they ask for, once.
//!
//! A [`Observation`] is made of three: an `Origin` reads objects, `Evaluator`s make groups of them, and [`Notes`] say what could
//! not be seen.

mod cluster;
mod duplicates;
mod evaluator;
mod files;
mod group_query;
mod kind_request;
mod live;
mod location;
mod notes;
mod object_name;
mod origin;

use std::sync::Arc;

use anyhow::Result;
use bellwether_engine::{
    Claim, Dialect, Facts, FeedEvent, Group, GroupKind, Lens, NamespacedName, Unreadable,
};
use bellwether_health::{Context, Evidence};
use bellwether_model::Object;
use jiff::Timestamp;

pub use cluster::ObservedCluster;
pub use evaluator::EvaluationScope;
use evaluator::Evaluator;
pub use files::is_of_the_cluster;
pub use group_query::GroupQuery;
use group_query::views;
use kind_request::KindRequest;
pub use live::LiveObservation;
pub use location::{Flags, Location};
pub use notes::Notes;
use origin::{Origin, PendingLists};

/// What is to be seen, and the engines that have seen it.
pub struct Observation {
    origin: Origin,
    /// It sees the Applications, unless a Rollup is meant.
    evaluator: Evaluator,
    /// It sees the Rollups, where the other one sees one namespace only.
    of_rollups: Option<Evaluator>,
    /// The one namespace that is meant; none for all.
    scope: Option<String>,
    pub now: Timestamp,
    pub remarks: Notes,
}

/// An object that was seen beside those that the engine knows.
#[derive(Clone, Debug)]
pub struct ListedObject {
    pub kind: GroupKind,
    pub name: NamespacedName,
    pub facts: Facts,
}

/// The objects of some kinds.
#[derive(Debug, Default)]
pub struct ListedObjects {
    pub objects: Vec<ListedObject>,
    /// The kinds that cannot be read, and why.
    pub unreadable: Vec<(GroupKind, Unreadable)>,
}

impl Observation {
    /// Looks at all that the groups speak of which are meant.
    pub fn open(place: &Location, now: Timestamp, meant: GroupQuery<'_>) -> Result<Self> {
        let mut sight = Self::at(place, now, meant)?;
        sight.look()?;
        Ok(sight)
    }

    /// The same, with nothing looked at yet.
    pub fn at(place: &Location, now: Timestamp, meant: GroupQuery<'_>) -> Result<Self> {
        let all_namespaces = matches!(meant, GroupQuery::All { all_namespaces: true });
        let origin = Origin::open(place, all_namespaces, now)?;
        let scope = origin.scope(all_namespaces);
        let (view, of_rollups) = match (&origin, &scope) {
            (Origin::Cluster(_), Some(namespace)) => views(meant, namespace.clone()),
            (Origin::Cluster(_), None) | (Origin::Files(_), _) => (EvaluationScope::of_all(None), None),
        };
        Ok(Self { of_rollups: of_rollups.map(Evaluator::new), ..Self::before(origin, scope, now, view) })
    }

    /// Shows the engine these of our own kinds, and nothing of what they speak of.
    pub fn glimpse(place: &Location, now: Timestamp, own: &[GroupKind]) -> Result<Self> {
        let origin = Origin::open(place, false, now)?;
        let scope = origin.scope(false);
        let mut sight = Self::before(origin, scope, now, EvaluationScope::of(own, None));
        let Self { origin, evaluator, scope, remarks, .. } = &mut sight;
        let mut requests = PendingLists::to(origin);
        evaluator.open(now, &mut requests);
        let scope = scope.as_deref();
        let answer = requests.answer(scope, |kind, news| remarks.note(kind, news, origin, scope))?;
        evaluator.see(now, answer.into_iter().flatten(), &mut requests);
        Ok(sight)
    }

    /// Stands before an origin, with nothing looked at yet.
    fn before(origin: Origin, scope: Option<String>, now: Timestamp, view: EvaluationScope) -> Self {
        let remarks = Notes::of(&origin);
        Self { origin, evaluator: Evaluator::new(view), of_rollups: None, scope, now, remarks }
    }

    /// Shows the engines what they ask for, until they ask for no more.
    pub fn look(&mut self) -> Result<()> {
        let Self { origin, evaluator, of_rollups, scope, now, remarks } = self;
        origin.is_worth_a_look()?;
        for evaluator in [evaluator].into_iter().chain(of_rollups) {
            *evaluator = Evaluator::new(evaluator.view.clone());
            let mut requests = PendingLists::to(origin);
            evaluator.open(*now, &mut requests);
            let namespace = evaluator.view.namespace.clone();
            let mut note =
                |kind: &GroupKind, news: &[FeedEvent]| remarks.note(kind, news, origin, scope.as_deref());
            while let Some(news) = requests.answer(namespace.as_deref(), &mut note)? {
                evaluator.see(*now, news, &mut requests);
            }
            remarks.note_cycles(evaluator.engine.cyclic_groups());
        }
        Ok(())
    }

    /// The namespace that is meant where none is named.
    pub fn namespace(&self) -> &str {
        self.origin.namespace()
    }

    /// Where is looked, in words.
    pub fn whereabouts(&self) -> String {
        self.origin.whereabouts(self.scope.as_deref())
    }

    /// The kind and the name that a person means by `deploy/web`.
    pub fn object_named(&self, word: &str) -> Result<(GroupKind, NamespacedName)> {
        let (kind, name) = object_name::split(word)?;
        self.origin.object_named(kind, name)
    }

    /// The name of an object of which these are known. There need not be one.
    pub fn name_of(&self, kind: &GroupKind, namespace: &str, name: &str) -> NamespacedName {
        NamespacedName::new(if self.origin.is_namespaced(kind) { namespace } else { "" }, name)
    }

    /// All objects of these kinds that can be read, judged as the engine judges, and why the other kinds cannot be.
    /// In the namespace that is meant, unless they may be anywhere.
    pub fn listed(&self, kinds: &[GroupKind], anywhere: bool) -> Result<ListedObjects> {
        let asked =
            kinds.iter().map(|kind| KindRequest { kind: kind.clone(), lens: Arc::new(self.lens(kind)) });
        let mut listed = ListedObjects::default();
        let namespace = self.scope.as_deref().filter(|_| !anywhere);
        for (kind, news) in self.origin.answer(asked.collect(), namespace)? {
            for news in news {
                match news {
                    FeedEvent::Applied(name, seen) => {
                        listed.objects.push(ListedObject { kind: kind.clone(), name, facts: seen.facts });
                    }
                    FeedEvent::Unreadable(why) => listed.unreadable.push((kind.clone(), why)),
                    _ => {}
                }
            }
        }
        Ok(listed)
    }

    /// What somebody makes of an object, if it is there.
    pub fn with<R: Send>(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Result<Option<R>> {
        self.origin.with(kind, name, make)
    }

    /// The fields on which the verdict on an object rests. Where it cannot be read any more, there are none.
    pub fn evidence(&self, kind: &GroupKind, name: &NamespacedName) -> Vec<Evidence> {
        let explain = |object: &Object<'_>| bellwether_health::explain(object, &self.context()).evidence;
        self.with(kind, name, &explain).ok().flatten().unwrap_or_default()
    }

    /// The rules and the time by which objects are judged.
    pub fn context(&self) -> Context<'_> {
        Context { rules: Some(self.evaluator.engine.rules()), ..Context::at(self.now) }
    }

    /// The lens through which the engine sees a kind.
    pub fn lens(&self, kind: &GroupKind) -> Lens {
        self.evaluator.engine.lens(kind)
    }

    /// What the Applications of its namespace and the Rollups have to do with an object.
    pub fn claims(&self, kind: &GroupKind, name: &NamespacedName, facts: &Facts) -> Vec<Claim> {
        self.evaluator.engine.claims(kind, name, facts)
    }

    /// The cluster, if it is one.
    pub fn cluster(&self) -> Option<&ObservedCluster> {
        self.origin.cluster()
    }
}

/// Drops the times from a first look: whoever looks does not know since when something is so, only that it is not since
/// they looked.
fn undated(groups: &mut [Group], begun: Timestamp, ended: Timestamp) {
    let begun = Timestamp::from_second(begun.as_second()).unwrap_or(begun);
    let is_invented = |since: &mut Timestamp| (begun..=ended).contains(since);
    for group in groups {
        group.since.take_if(is_invented);
        for member in &mut group.members {
            member.since.take_if(is_invented);
        }
        for condition in &mut group.conditions {
            condition.since.take_if(is_invented);
        }
    }
}

/// The APIs that Applications are written in.
const APPLICATIONS: [Dialect; 2] = [Dialect::Bellwether, Dialect::AppK8sIo];

/// Whether objects of a kind are groups of others.
pub fn is_group(kind: &GroupKind) -> bool {
    is_application(kind) || kind.is_rollup()
}

fn is_application(kind: &GroupKind) -> bool {
    APPLICATIONS.iter().any(|dialect| dialect.kind() == *kind)
}
