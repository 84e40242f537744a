//! One Rollup: what its user wrote, and what is known of its components.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use bellwether_api::{ComponentPresence, ProgressingPolicy, RollupSpec, RollupStatus, State};
use bellwether_conditions::{Class, Damped, Policy, Tally, damp};
use jiff::Timestamp;

use crate::{
    condition_types::{AVAILABLE, DEGRADED},
    event::Unreadable,
    feeds::{Feed, Feeds, ObjectId, StoredObject},
    id::{FeedId, GroupKind, NamespacedName},
    members::{MemberEntry, MemberId, Members},
    planted::Bug,
    publication::Publication,
    registry::Published,
    stored_condition,
};

use super::{
    component_entry::{ComponentEntry, InvalidEntry, Target},
    component_report::{Absence, ComponentReport},
    component_reports::{ComponentIdentity, ComponentKey, ComponentReports},
    policies::Policies,
    triple::Triple,
};

/// One Rollup.
#[derive(Debug)]
pub(super) struct Rollup {
    pub(super) name: NamespacedName,
    pub(super) publication: Publication,
    pub(super) deleting: bool,
    pub(super) spec: RollupSpec,
    /// The kinds that it needs.
    pub(super) needs: BTreeMap<GroupKind, FeedId>,
    pub(super) choices: Vec<ComponentEntry>,
    pub(super) mistakes: Vec<InvalidEntry>,
    pub(super) members: Members,
    pub(super) sources: ComponentReports,
    /// Components of whose conditions nothing is known yet: nobody wanted to know before.
    blind: BTreeSet<ObjectId>,
    /// Since when components were not found, by the status that was last seen. What is seen here as well is not in it.
    remembered: HashMap<(GroupKind, NamespacedName), Timestamp>,
    /// The Rollups among its components,
    pub(super) below: BTreeSet<NamespacedName>,
    /// and those of them of which it is a component in turn.
    pub(super) circle: BTreeSet<NamespacedName>,
    /// How it was, when it was last looked at.
    pub(super) shown: Option<Triple>,
}

/// What decides, for each condition. Nothing where there are no components.
pub(super) struct Evaluation {
    pub(super) available: Damped,
    pub(super) progressing: Progressing,
    pub(super) degraded: Damped,
    policies: &'static Policies,
}

/// What decides whether a Rollup is progressing.
pub(super) enum Progressing {
    /// Components that need a human.
    Stuck,
    /// What the components say.
    As(Option<Class>),
}

impl Published for Rollup {
    fn publication(&mut self) -> &mut Publication {
        &mut self.publication
    }
}

impl Rollup {
    pub(super) fn new(publication: Publication, deleting: bool, spec: RollupSpec) -> Self {
        Self {
            name: publication.group().name.clone(),
            publication,
            deleting,
            spec,
            needs: BTreeMap::new(),
            choices: Vec::new(),
            mistakes: Vec::new(),
            members: Members::default(),
            sources: ComponentReports::default(),
            blind: BTreeSet::new(),
            remembered: HashMap::new(),
            below: BTreeSet::new(),
            circle: BTreeSet::new(),
            shown: None,
        }
    }

    /// Its identity.
    pub(super) fn uid(&self) -> &str {
        &self.publication.uid
    }

    pub(super) fn policies(&self) -> &'static Policies {
        Policies::of(self.spec.progressing)
    }

    /// Whether all that it needs is known, and of one time, so that something can be said of it.
    pub(super) fn is_known(&self, feeds: &Feeds) -> bool {
        let is_known = |feed: &Feed| feed.is_known() && !feed.is_torn();
        let is_seen = self.blind.is_empty() || Bug::TrustNarrowLens.is_planted();
        is_seen && self.needs.values().all(|feed| feeds.get(*feed).is_some_and(is_known))
    }

    /// The kinds of which more has to be known before something can be said of it.
    pub(super) fn waits_for(&self, feeds: &Feeds) -> BTreeSet<GroupKind> {
        let not_whole = feeds.not_whole(self.needs.iter().map(|(kind, feed)| (kind, *feed)));
        let blind = self.blind.iter().filter_map(|object| feeds.get(feeds.object(*object)?.feed));
        blind.map(|feed| feed.kind.clone()).chain(not_whole).collect()
    }

    /// How many notes are kept.
    pub(super) fn notes(&self) -> usize {
        self.members.total() + self.blind.len() + self.remembered.len()
    }

    /// The objects among its components, also those of whose conditions nothing is known yet.
    pub(super) fn objects(&self) -> BTreeSet<ObjectId> {
        self.members.objects().into_iter().chain(self.blind.iter().copied()).collect()
    }

    /// Nothing is counted any more. Gives back the objects that were.
    pub(super) fn clear(&mut self) -> BTreeSet<ObjectId> {
        for choice in &self.choices {
            let presence = choice.lack.as_ref().and_then(Absence::presence);
            if let (Target::Named(name), Some(_), Some(since)) = (&choice.what, presence, choice.since) {
                self.remembered.insert((choice.kind.clone(), name.clone()), since);
            }
        }
        let objects = self.objects();
        (self.members, self.blind) = (Members::default(), BTreeSet::new());
        self.sources = ComponentReports::default();
        self.choices.clear();
        self.mistakes.clear();
        self.below.clear();
        objects
    }

    /// What was written, by us or by another: since when components were not found. Another controller may have seen that
    /// before we do.
    pub(super) fn remember(&mut self, status: &RollupStatus) {
        self.remembered.clear();
        for said in &status.components {
            let (Some(since), Some(presence)) = (&said.since, said.presence) else { continue };
            let lack = Absence::from(presence);
            let kind = GroupKind::new(&said.group, &said.kind);
            let name = NamespacedName::new(said.namespace.as_deref().unwrap_or_default(), &said.name);
            let is_it = |choice: &&ComponentEntry| {
                choice.lack.as_ref() == Some(&lack)
                    && choice.kind == kind
                    && matches!(&choice.what, Target::Named(own) if *own == name)
            };
            match self.choices.iter().position(|choice| is_it(&choice)) {
                Some(index) => {
                    if let Some(choice) = self.choices.get_mut(index) {
                        choice.since = Some(since.0);
                    }
                    self.count_lack(index);
                }
                None => _ = self.remembered.insert((kind, name), since.0),
            }
        }
    }

    /// What is known here counts, and not what was written before.
    pub(super) fn forget_the_past(&mut self) {
        self.remembered = HashMap::new();
    }

    /// What was written of components that the spec does not name is of no use.
    pub(super) fn forget_strangers(&mut self) {
        if self.remembered.is_empty() {
            return;
        }
        let key = |choice: &ComponentEntry| match &choice.what {
            Target::Named(name) => Some((choice.kind.clone(), name.clone())),
            Target::Selected { .. } => None,
        };
        let named: HashSet<_> = self.choices.iter().filter_map(key).collect();
        self.remembered.retain(|component, _| named.contains(component));
    }

    /// Counts an object as it is now.
    pub(super) fn count(&mut self, object: ObjectId, stored: &StoredObject, feed: &Feed) {
        let whose = MemberId::Object(object);
        let Some(word) = self.heard(stored, feed) else {
            self.forget(object);
            self.blind.insert(object);
            return;
        };
        self.blind.remove(&object);
        let called = self.called(&feed.kind, &stored.name.namespace, &stored.name.name);
        let object = (feed.kind.clone(), stored.name.clone());
        self.put(whose, called, object, &word, word.triple().state());
    }

    /// Counts an object no longer.
    pub(super) fn forget(&mut self, object: ObjectId) {
        self.blind.remove(&object);
        self.remove(MemberId::Object(object));
    }

    /// Looks whether a choice lacks an object, and counts that if it does.
    pub(super) fn look_for(&mut self, index: usize, feeds: &Feeds, now: Timestamp) {
        let Some(choice) = self.choices.get_mut(index) else { return };
        // Before anything is known of the kind, nothing is said.
        let Some(feed) = feeds.get(choice.feed).filter(|feed| feed.is_known()) else { return };
        let lack = lack(choice, feed.unreadable.as_ref());
        if lack == choice.lack {
            return;
        }
        let remembered = match &choice.what {
            Target::Named(name) => self.remembered.remove(&(choice.kind.clone(), name.clone())),
            Target::Selected { .. } => None,
        };
        // What is not there is missed from now on, however long it has not been there.
        choice.since = remembered.filter(|_| lack.is_some()).or_else(|| stored_condition::whole_seconds(now));
        choice.lack = lack;
        self.count_lack(index);
    }

    /// Counts what a choice lacks, as it is now.
    fn count_lack(&mut self, index: usize) {
        let (whose, Some(choice)) = (MemberId::Component(index), self.choices.get(index)) else { return };
        let Some(lack) = &choice.lack else { return self.remove(whose) };
        let word = ComponentReport::missing(self.policies(), lack, choice.since);
        let state = if lack.presence().is_some() { State::Missing } else { State::Unknown };
        let (called, name) = match &choice.what {
            Target::Named(name) => (self.called(&choice.kind, &name.namespace, &name.name), name.clone()),
            Target::Selected { namespace, text, .. } => {
                let namespace = namespace.clone().unwrap_or_default();
                let title = format!("{} with {text}", choice.kind.kind);
                let called = self.called(&choice.kind, &namespace, &title.into());
                (called, NamespacedName { namespace, name: Arc::clone(text) })
            }
        };
        let kind = choice.kind.clone();
        self.put(whose, called, (kind, name), &word, state);
    }

    /// Counts what nobody can understand of the spec, after all its choices: nobody can tell what would have been there.
    pub(super) fn count_mistakes(&mut self) {
        for (number, mistake) in self.mistakes.clone().into_iter().enumerate() {
            let Some(kind) = mistake.lost.clone() else { continue };
            let whose = MemberId::Component(self.choices.len() + number);
            let name = NamespacedName::new("", &mistake.place);
            let called = self.called(&kind, &name.namespace, &name.name);
            let word = ComponentReport::missing(self.policies(), &mistake.lack(), None);
            self.put(whose, called, (kind, name), &word, State::Unknown);
        }
    }

    /// Whether somebody stands for a component, and not for an entry of the spec that means none.
    pub(super) fn is_component(&self, whose: MemberId) -> bool {
        match whose {
            MemberId::Object(_) => true,
            MemberId::Component(index) => {
                self.choices.get(index).is_some_and(|choice| matches!(choice.what, Target::Named(_)))
            }
        }
    }

    fn put(
        &mut self,
        whose: MemberId,
        called: ComponentIdentity,
        (kind, name): (GroupKind, NamespacedName),
        word: &ComponentReport,
        state: State,
    ) {
        // A component is ready or it is not: nobody says how far along it is.
        let progress = if state == State::Ready { 100 } else { 0 };
        let since = word.telling().since;
        self.members.put(whose, MemberEntry { kind, name, state, progress, settled: true, since });
        self.sources.put(whose, called, word);
    }

    fn remove(&mut self, whose: MemberId) {
        self.members.remove(whose);
        self.sources.remove(whose);
    }

    /// What a component is called, which says where it stands.
    fn called(&self, kind: &GroupKind, namespace: &Arc<str>, name: &Arc<str>) -> ComponentIdentity {
        let is_ambiguous =
            self.needs.keys().any(|other| other.kind == kind.kind && other.group != kind.group);
        ComponentIdentity {
            kind: if is_ambiguous { kind.to_string().into() } else { Arc::clone(&kind.kind) },
            cluster: Arc::default(),
            namespace: Arc::clone(namespace),
            name: Arc::clone(name),
        }
    }

    /// What an object says, if anybody has looked.
    fn heard(&self, stored: &StoredObject, feed: &Feed) -> Option<ComponentReport> {
        if feed.kind.is_rollup() && self.circle.contains(&stored.name) {
            return Some(ComponentReport::missing(self.policies(), &Absence::Circle, None));
        }
        let word = stored.facts.operator.as_deref().map(|facts| ComponentReport::of(self.policies(), facts));
        let word = word.map(|word| if stored.facts.deleting { word.going(self.policies()) } else { word });
        match &feed.unreadable {
            // Nobody will look as long as nobody can.
            Some(why) => Some(ComponentReport::unreadable(word.as_ref(), self.policies(), why)),
            None => word,
        }
    }

    /// What a component says, or what has to be assumed of it.
    pub(super) fn word(&self, whose: MemberId, feeds: &Feeds) -> Option<ComponentReport> {
        match whose {
            MemberId::Object(id) => {
                let stored = feeds.object(id)?;
                self.heard(stored, feeds.get(stored.feed)?)
            }
            MemberId::Component(index) => {
                let Some(choice) = self.choices.get(index) else {
                    let mistake = self.mistakes.get(index.checked_sub(self.choices.len())?)?;
                    return Some(ComponentReport::missing(self.policies(), &mistake.lack(), None));
                };
                Some(ComponentReport::missing(self.policies(), choice.lack.as_ref()?, choice.since))
            }
        }
    }

    /// Why a component does not exist; nothing if it does, or may.
    pub(super) fn presence(&self, whose: MemberId) -> Option<ComponentPresence> {
        match whose {
            MemberId::Object(_) => None,
            MemberId::Component(index) => self.choices.get(index)?.lack.as_ref()?.presence(),
        }
    }

    /// What decides at this moment.
    pub(super) fn weigh(&self, now: Timestamp) -> Evaluation {
        let (policies, sources) = (self.policies(), &self.sources);
        let damped = |policy: &Policy, tally: &Tally<ComponentKey>, kind: &str| {
            let stored = stored_condition::status(self.publication.stored(), kind);
            damp(policy, tally, stored, self.spec.degraded_after.value(), now)
        };
        let available = damped(&policies.available, &sources.available, AVAILABLE);
        let degraded = damped(&policies.degraded, &sources.degraded, DEGRADED);
        // What is not said to be bad yet is not said to be stuck.
        let is_stuck = self.spec.progressing == ProgressingPolicy::Matrix
            && available.until.is_none()
            && degraded.until.is_none()
            && !sources.stuck.is_empty();
        Evaluation {
            available,
            progressing: if is_stuck {
                Progressing::Stuck
            } else {
                Progressing::As(sources.progressing.worst())
            },
            degraded,
            policies,
        }
    }
}

/// What a choice lacks, where this is known of its kind.
fn lack(choice: &ComponentEntry, unreadable: Option<&Unreadable>) -> Option<Absence> {
    let is_named = matches!(choice.what, Target::Named(_));
    match unreadable {
        // What was there is counted as such, and so is what is there already while a kind comes back; where there may be any
        // number, there may be more.
        Some(_) if is_named && choice.matched > 0 => None,
        Some(Unreadable::NotServed) if is_named => Some(Absence::NotServed),
        Some(why) => Some(Absence::Unreadable(why.clone())),
        None if choice.matched > 0 => None,
        None => Some(if is_named { Absence::NotFound } else { Absence::NothingSelected }),
    }
}

impl Evaluation {
    /// When time alone makes something else of it.
    pub(super) fn next(&self) -> Option<Timestamp> {
        [self.available, self.degraded].into_iter().filter_map(|damped| damped.next).min()
    }

    /// The three conditions together.
    pub(super) fn triple(&self) -> Triple {
        let status = |policy: &Policy, class: Option<Class>| {
            class.map_or(policy.empty.status, |class| policy.status(class))
        };
        Triple {
            available: status(&self.policies.available, self.available.class),
            progressing: match self.progressing {
                Progressing::Stuck => bellwether_api::ConditionStatus::False,
                Progressing::As(class) => status(&self.policies.progressing, class),
            },
            degraded: status(&self.policies.degraded, self.degraded.class),
        }
    }
}
