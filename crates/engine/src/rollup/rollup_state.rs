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
    pub(super) kind_feeds: BTreeMap<GroupKind, FeedId>,
    pub(super) entries: Vec<ComponentEntry>,
    pub(super) invalid_entries: Vec<InvalidEntry>,
    pub(super) members: Members,
    pub(super) reports: ComponentReports,
    /// Components of whose conditions nothing is known yet: nobody wanted to know before.
    without_conditions: BTreeSet<ObjectId>,
    /// Since when components were not found, by the status that was last seen. What is seen here as well is not in it.
    stored_since: HashMap<(GroupKind, NamespacedName), Timestamp>,
    /// The Rollups among its components,
    pub(super) child_rollups: BTreeSet<NamespacedName>,
    /// and those of them of which it is a component in turn.
    pub(super) cycle: BTreeSet<NamespacedName>,
    /// How it was, when it was last looked at.
    pub(super) last_evaluated: Option<Triple>,
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
    InterventionRequired,
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
            kind_feeds: BTreeMap::new(),
            entries: Vec::new(),
            invalid_entries: Vec::new(),
            members: Members::default(),
            reports: ComponentReports::default(),
            without_conditions: BTreeSet::new(),
            stored_since: HashMap::new(),
            child_rollups: BTreeSet::new(),
            cycle: BTreeSet::new(),
            last_evaluated: None,
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
        let has_conditions = self.without_conditions.is_empty() || Bug::TrustNarrowLens.is_planted();
        has_conditions && self.kind_feeds.values().all(|feed| feeds.get(*feed).is_some_and(is_known))
    }

    /// The kinds of which more has to be known before something can be said of it.
    pub(super) fn waiting_for(&self, feeds: &Feeds) -> BTreeSet<GroupKind> {
        let not_whole = feeds.not_whole(self.kind_feeds.iter().map(|(kind, feed)| (kind, *feed)));
        let without_conditions =
            self.without_conditions.iter().filter_map(|object| feeds.get(feeds.object(*object)?.feed));
        without_conditions.map(|feed| feed.kind.clone()).chain(not_whole).collect()
    }

    /// How many notes are kept.
    pub(super) fn notes(&self) -> usize {
        self.members.total() + self.without_conditions.len() + self.stored_since.len()
    }

    /// The objects among its components, also those of whose conditions nothing is known yet.
    pub(super) fn objects(&self) -> BTreeSet<ObjectId> {
        self.members.objects().into_iter().chain(self.without_conditions.iter().copied()).collect()
    }

    /// Nothing is counted any more. Gives back the objects that were.
    pub(super) fn clear(&mut self) -> BTreeSet<ObjectId> {
        for entry in &self.entries {
            let presence = entry.absence.as_ref().and_then(Absence::presence);
            if let (Target::Named(name), Some(_), Some(since)) = (&entry.target, presence, entry.since) {
                self.stored_since.insert((entry.kind.clone(), name.clone()), since);
            }
        }
        let objects = self.objects();
        (self.members, self.without_conditions) = (Members::default(), BTreeSet::new());
        self.reports = ComponentReports::default();
        self.entries.clear();
        self.invalid_entries.clear();
        self.child_rollups.clear();
        objects
    }

    /// What was written, by us or by another: since when components were not found. Another controller may have seen that
    /// before we do.
    pub(super) fn load_stored_since(&mut self, status: &RollupStatus) {
        self.stored_since.clear();
        for component in &status.components {
            let (Some(since), Some(presence)) = (&component.since, component.presence) else { continue };
            let absence = Absence::from(presence);
            let kind = GroupKind::new(&component.group, &component.kind);
            let name =
                NamespacedName::new(component.namespace.as_deref().unwrap_or_default(), &component.name);
            let is_same = |entry: &&ComponentEntry| {
                entry.absence.as_ref() == Some(&absence)
                    && entry.kind == kind
                    && matches!(&entry.target, Target::Named(own) if *own == name)
            };
            match self.entries.iter().position(|entry| is_same(&entry)) {
                Some(index) => {
                    if let Some(entry) = self.entries.get_mut(index) {
                        entry.since = Some(since.0);
                    }
                    self.count_absence(index);
                }
                None => _ = self.stored_since.insert((kind, name), since.0),
            }
        }
    }

    /// What is known here counts, and not what was written before.
    pub(super) fn clear_stored_since(&mut self) {
        self.stored_since = HashMap::new();
    }

    /// What was written of components that the spec does not name is of no use.
    pub(super) fn drop_unnamed(&mut self) {
        if self.stored_since.is_empty() {
            return;
        }
        let key = |entry: &ComponentEntry| match &entry.target {
            Target::Named(name) => Some((entry.kind.clone(), name.clone())),
            Target::Selected { .. } => None,
        };
        let named: HashSet<_> = self.entries.iter().filter_map(key).collect();
        self.stored_since.retain(|component, _| named.contains(component));
    }

    /// Counts an object as it is now.
    pub(super) fn count(&mut self, object: ObjectId, stored: &StoredObject, feed: &Feed) {
        let member_id = MemberId::Object(object);
        let Some(report) = self.report_of(stored, feed) else {
            self.forget(object);
            self.without_conditions.insert(object);
            return;
        };
        self.without_conditions.remove(&object);
        let identity = self.identity(&feed.kind, &stored.name.namespace, &stored.name.name);
        let object = (feed.kind.clone(), stored.name.clone());
        self.put(member_id, identity, object, &report, report.triple().state());
    }

    /// Counts an object no longer.
    pub(super) fn forget(&mut self, object: ObjectId) {
        self.without_conditions.remove(&object);
        self.remove(MemberId::Object(object));
    }

    /// Looks whether a choice lacks an object, and counts that if it does.
    pub(super) fn check_absence(&mut self, index: usize, feeds: &Feeds, now: Timestamp) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        // Before anything is known of the kind, nothing is said.
        let Some(feed) = feeds.get(entry.feed).filter(|feed| feed.is_known()) else { return };
        let absence = absence(entry, feed.unreadable.as_ref());
        if absence == entry.absence {
            return;
        }
        let stored_since = match &entry.target {
            Target::Named(name) => self.stored_since.remove(&(entry.kind.clone(), name.clone())),
            Target::Selected { .. } => None,
        };
        // What is not there is missed from now on, however long it has not been there.
        entry.since =
            stored_since.filter(|_| absence.is_some()).or_else(|| stored_condition::whole_seconds(now));
        entry.absence = absence;
        self.count_absence(index);
    }

    /// Counts what a choice lacks, as it is now.
    fn count_absence(&mut self, index: usize) {
        let (member_id, Some(entry)) = (MemberId::Component(index), self.entries.get(index)) else { return };
        let Some(absence) = &entry.absence else { return self.remove(member_id) };
        let report = ComponentReport::missing(self.policies(), absence, entry.since);
        let state = if absence.presence().is_some() { State::Missing } else { State::Unknown };
        let (identity, name) = match &entry.target {
            Target::Named(name) => (self.identity(&entry.kind, &name.namespace, &name.name), name.clone()),
            Target::Selected { namespace, text, .. } => {
                let namespace = namespace.clone().unwrap_or_default();
                let identity = self.identity(&entry.kind, &namespace, text);
                (identity, NamespacedName { namespace, name: Arc::clone(text) })
            }
        };
        let kind = entry.kind.clone();
        self.put(member_id, identity, (kind, name), &report, state);
    }

    /// Counts what nobody can understand of the spec, after all its choices: nobody can tell what would have been there.
    pub(super) fn count_invalid_entries(&mut self) {
        for (number, invalid) in self.invalid_entries.clone().into_iter().enumerate() {
            let Some(kind) = invalid.counted_kind.clone() else { continue };
            let member_id = MemberId::Component(self.entries.len() + number);
            let name = NamespacedName::new("", &invalid.spec_path);
            let identity = ComponentIdentity { name: Arc::clone(&name.name), ..ComponentIdentity::default() };
            let report = ComponentReport::missing(self.policies(), &invalid.absence(), None);
            self.put(member_id, identity, (kind, name), &report, State::Unknown);
        }
    }

    /// Whether somebody stands for a component, and not for an entry of the spec that means none.
    pub(super) fn is_component(&self, member_id: MemberId) -> bool {
        match member_id {
            MemberId::Object(_) => true,
            MemberId::Component(index) => {
                self.entries.get(index).is_some_and(|entry| matches!(entry.target, Target::Named(_)))
            }
        }
    }

    fn put(
        &mut self,
        member_id: MemberId,
        identity: ComponentIdentity,
        (kind, name): (GroupKind, NamespacedName),
        report: &ComponentReport,
        state: State,
    ) {
        // A component is ready or it is not: nobody says how far along it is.
        let progress = if state == State::Ready { 100 } else { 0 };
        let since = report.most_significant().since;
        self.members.put(member_id, MemberEntry { kind, name, state, progress, settled: true, since });
        self.reports.put(member_id, identity, report);
    }

    fn remove(&mut self, member_id: MemberId) {
        self.members.remove(member_id);
        self.reports.remove(member_id);
    }

    /// What a component is called, which says where it stands.
    fn identity(&self, kind: &GroupKind, namespace: &Arc<str>, name: &Arc<str>) -> ComponentIdentity {
        let is_ambiguous =
            self.kind_feeds.keys().any(|other| other.kind == kind.kind && other.group != kind.group);
        ComponentIdentity {
            kind: if is_ambiguous { kind.to_string().into() } else { Arc::clone(&kind.kind) },
            cluster: Arc::default(),
            namespace: Arc::clone(namespace),
            name: Arc::clone(name),
        }
    }

    /// What an object says, if anybody has looked.
    fn report_of(&self, stored: &StoredObject, feed: &Feed) -> Option<ComponentReport> {
        if feed.kind.is_rollup() && self.cycle.contains(&stored.name) {
            return Some(ComponentReport::missing(self.policies(), &Absence::Cycle, None));
        }
        let report =
            stored.facts.operator.as_deref().map(|facts| ComponentReport::of(self.policies(), facts));
        let report = report
            .map(|report| if stored.facts.deleting { report.being_deleted(self.policies()) } else { report });
        match &feed.unreadable {
            // Nobody will look as long as nobody can.
            Some(why) => Some(ComponentReport::unreadable(report.as_ref(), self.policies(), why)),
            None => report,
        }
    }

    /// What a component says, or what has to be assumed of it.
    pub(super) fn report(&self, member_id: MemberId, feeds: &Feeds) -> Option<ComponentReport> {
        match member_id {
            MemberId::Object(id) => {
                let stored = feeds.object(id)?;
                self.report_of(stored, feeds.get(stored.feed)?)
            }
            MemberId::Component(index) => {
                let Some(entry) = self.entries.get(index) else {
                    let invalid = self.invalid_entries.get(index.checked_sub(self.entries.len())?)?;
                    return Some(ComponentReport::missing(self.policies(), &invalid.absence(), None));
                };
                Some(ComponentReport::missing(self.policies(), entry.absence.as_ref()?, entry.since))
            }
        }
    }

    /// Why a component does not exist; nothing if it does, or may.
    pub(super) fn presence(&self, member_id: MemberId) -> Option<ComponentPresence> {
        match member_id {
            MemberId::Object(_) => None,
            MemberId::Component(index) => self.entries.get(index)?.absence.as_ref()?.presence(),
        }
    }

    /// What decides at this moment.
    pub(super) fn evaluate(&self, now: Timestamp) -> Evaluation {
        let (policies, reports) = (self.policies(), &self.reports);
        let damped = |policy: &Policy, tally: &Tally<ComponentKey>, kind: &str| {
            let stored = stored_condition::status(self.publication.stored(), kind);
            damp(policy, tally, stored, self.spec.degraded_after.value(), now)
        };
        let available = damped(&policies.available, &reports.available, AVAILABLE);
        let degraded = damped(&policies.degraded, &reports.degraded, DEGRADED);
        // What is not said to be bad yet is not said to be stuck.
        let requires_intervention = self.spec.progressing == ProgressingPolicy::Matrix
            && available.until.is_none()
            && degraded.until.is_none()
            && !reports.requiring_intervention.is_empty();
        Evaluation {
            available,
            progressing: if requires_intervention {
                Progressing::InterventionRequired
            } else {
                Progressing::As(reports.progressing.worst())
            },
            degraded,
            policies,
        }
    }
}

/// What a choice lacks, where this is known of its kind.
fn absence(entry: &ComponentEntry, unreadable: Option<&Unreadable>) -> Option<Absence> {
    let is_named = matches!(entry.target, Target::Named(_));
    match unreadable {
        // What was there is counted as such, and so is what is there already while a kind comes back; where there may be any
        // number, there may be more.
        Some(_) if is_named && entry.matched > 0 => None,
        Some(Unreadable::NotServed) if is_named => Some(Absence::NotServed),
        Some(why) => Some(Absence::Unreadable(why.clone())),
        None if entry.matched > 0 => None,
        None => Some(if is_named { Absence::NotFound } else { Absence::NoObjectsSelected }),
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
                Progressing::InterventionRequired => bellwether_api::ConditionStatus::False,
                Progressing::As(class) => status(&self.policies.progressing, class),
            },
            degraded: status(&self.policies.degraded, self.degraded.class),
        }
    }
}
