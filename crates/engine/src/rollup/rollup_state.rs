//! The state of one Rollup: its spec, its components, and their evaluation.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use bellwether_api::{
    ComponentPresence, ConditionStatus, ProgressingPolicy, RollupSpec, RollupStatus, State,
};
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

#[derive(Debug)]
pub(super) struct RollupState {
    pub(super) name: NamespacedName,
    pub(super) publication: Publication,
    pub(super) deleting: bool,
    pub(super) spec: RollupSpec,
    pub(super) kind_feeds: BTreeMap<GroupKind, FeedId>,
    pub(super) entries: Vec<ComponentEntry>,
    pub(super) invalid_entries: Vec<InvalidEntry>,
    pub(super) members: Members,
    pub(super) reports: ComponentReports,
    /// Components that were stored by a lens without conditions, until the relist delivers them.
    without_conditions: BTreeSet<ObjectId>,
    /// Since when components are missing, by the stored status. Entries that are known to be absent have the
    /// time themselves.
    stored_since: HashMap<(GroupKind, NamespacedName), Timestamp>,
    pub(super) child_rollups: BTreeSet<NamespacedName>,
    /// Those child Rollups that contain this Rollup.
    pub(super) cycle: BTreeSet<NamespacedName>,
    pub(super) last_evaluated: Option<Triple>,
}

/// The deciding class of each condition; `None` without components.
pub(super) struct Evaluation {
    pub(super) available: Damped,
    pub(super) progressing: Progressing,
    pub(super) degraded: Damped,
    policies: &'static Policies,
}

pub(super) enum Progressing {
    /// Under the policy `Matrix`, a component requires manual intervention, which makes Progressing False.
    InterventionRequired,
    /// The Rollup itself is being deleted, which makes Progressing True.
    Terminating,
    /// The merged class.
    As(Option<Class>),
}

impl Published for RollupState {
    fn publication(&mut self) -> &mut Publication {
        &mut self.publication
    }
}

impl RollupState {
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

    pub(super) fn uid(&self) -> &str {
        &self.publication.uid
    }

    pub(super) fn policies(&self) -> &'static Policies {
        Policies::of(self.spec.progressing)
    }

    /// Whether the group can be evaluated: all components have their conditions, all kinds are listed, and no
    /// relist is in progress.
    pub(super) fn is_known(&self, feeds: &Feeds) -> bool {
        let is_known = |feed: &Feed| feed.is_known() && !feed.is_torn();
        let has_conditions =
            self.without_conditions.is_empty() || Bug::EvaluateWithoutConditions.is_planted();
        has_conditions && self.kind_feeds.values().all(|feed| feeds.get(*feed).is_some_and(is_known))
    }

    pub(super) fn waiting_for(&self, feeds: &Feeds) -> BTreeSet<GroupKind> {
        let inconsistent_kinds =
            feeds.inconsistent_kinds(self.kind_feeds.iter().map(|(kind, feed)| (kind, *feed)));
        let without_conditions =
            self.without_conditions.iter().filter_map(|object| feeds.get(feeds.object(*object)?.feed));
        without_conditions.map(|feed| feed.kind.clone()).chain(inconsistent_kinds).collect()
    }

    /// The number of index entries, for the statistics.
    pub(super) fn index_entries(&self) -> usize {
        self.members.total() + self.without_conditions.len() + self.stored_since.len()
    }

    /// Including those without conditions.
    pub(super) fn objects(&self) -> BTreeSet<ObjectId> {
        self.members.objects().into_iter().chain(self.without_conditions.iter().copied()).collect()
    }

    /// Drops all counts. Returns the objects that were counted.
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

    /// `status.state`: as the three conditions say. But if a component is missing, that explains Unknown and
    /// InProgress; and a Rollup of components that are missing or new is not Failed.
    pub(super) fn state(&self, triple: Triple) -> State {
        let has = |state: State| self.members.count(state) > 0;
        let is_unreported = triple.progressing == ConditionStatus::Unknown && !has(State::Failed);
        match triple.state() {
            _ if self.deleting => State::Terminating,
            State::Unknown | State::InProgress if has(State::Missing) => State::Missing,
            State::Failed if is_unreported && has(State::Missing) => State::Missing,
            State::Failed if is_unreported && has(State::InProgress) => State::InProgress,
            state => state,
        }
    }

    /// Takes the times of missing components from a stored status. Another replica may have noticed before
    /// us.
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

    pub(super) fn clear_stored_since(&mut self) {
        self.stored_since = HashMap::new();
    }

    /// Drops the times of components that the spec does not name.
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

    pub(super) fn upsert_component(&mut self, object: ObjectId, stored: &StoredObject, feed: &Feed) {
        let member_id = MemberId::Object(object);
        let Some(report) = self.report_of(stored, feed) else {
            self.forget(object);
            self.without_conditions.insert(object);
            return;
        };
        self.without_conditions.remove(&object);
        let identity = self.identity(&feed.kind, &stored.name.namespace, &stored.name.name);
        let object = (feed.kind.clone(), stored.name.clone());
        self.put(member_id, identity, object, &report, report.state());
    }

    pub(super) fn forget(&mut self, object: ObjectId) {
        self.without_conditions.remove(&object);
        self.remove(MemberId::Object(object));
    }

    /// Updates whether an entry lacks an object. A lack is counted as a placeholder.
    pub(super) fn check_absence(&mut self, index: usize, feeds: &Feeds, now: Timestamp) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        // Wait until the kind is listed.
        let Some(feed) = feeds.get(entry.feed).filter(|feed| feed.is_known()) else { return };
        let absence = absence(entry, feed.unreadable.as_ref());
        if absence == entry.absence {
            return;
        }
        let stored_since = match &entry.target {
            Target::Named(name) => self.stored_since.remove(&(entry.kind.clone(), name.clone())),
            Target::Selected { .. } => None,
        };
        // A missing component is missing since we noticed.
        entry.since =
            stored_since.filter(|_| absence.is_some()).or_else(|| stored_condition::whole_seconds(now));
        entry.absence = absence;
        self.count_absence(index);
    }

    fn count_absence(&mut self, index: usize) {
        let (member_id, Some(entry)) = (MemberId::Placeholder(index), self.entries.get(index)) else {
            return;
        };
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

    /// Counts each invalid entry as Unknown. Their ids come after those of the valid entries.
    pub(super) fn count_invalid_entries(&mut self) {
        for (number, invalid) in self.invalid_entries.clone().into_iter().enumerate() {
            let Some(kind) = invalid.counted_kind.clone() else { continue };
            let member_id = MemberId::Placeholder(self.entries.len() + number);
            let name = NamespacedName::new("", &invalid.spec_path);
            let identity = ComponentIdentity { name: Arc::clone(&name.name), ..ComponentIdentity::default() };
            let report = ComponentReport::missing(self.policies(), &invalid.absence(), None);
            self.put(member_id, identity, (kind, name), &report, State::Unknown);
        }
    }

    /// True for a real or named component, false for an unmatched selector or an invalid entry of the spec.
    pub(super) fn is_component(&self, member_id: MemberId) -> bool {
        match member_id {
            MemberId::Object(_) => true,
            MemberId::Placeholder(index) => {
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
        // Operators report no progress in percent.
        let progress = if state == State::Ready { 100 } else { 0 };
        let since = report.most_significant().since;
        self.members.put(member_id, MemberEntry { progress, ..MemberEntry::new(kind, name, state, since) });
        self.reports.put(member_id, identity, report);
    }

    fn remove(&mut self, member_id: MemberId) {
        self.members.remove(member_id);
        self.reports.remove(member_id);
    }

    /// Includes the API group if two groups of the spec have the same kind.
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

    /// `None` if the object was stored without its conditions.
    fn report_of(&self, stored: &StoredObject, feed: &Feed) -> Option<ComponentReport> {
        if feed.kind.is_rollup() && self.cycle.contains(&stored.name) {
            return Some(ComponentReport::missing(self.policies(), &Absence::Cycle, None));
        }
        let report = stored
            .facts
            .component_conditions
            .as_deref()
            .map(|facts| ComponentReport::of(self.policies(), facts));
        let report = report
            .map(|report| if stored.facts.deleting { report.being_deleted(self.policies()) } else { report });
        match &feed.unreadable {
            // An unreadable kind delivers no conditions, so do not wait for them.
            Some(why) => Some(ComponentReport::unreadable(report.as_ref(), self.policies(), why)),
            None => report,
        }
    }

    /// The report of a component or placeholder.
    pub(super) fn report(&self, member_id: MemberId, feeds: &Feeds) -> Option<ComponentReport> {
        match member_id {
            MemberId::Object(id) => {
                let stored = feeds.object(id)?;
                self.report_of(stored, feeds.get(stored.feed)?)
            }
            MemberId::Placeholder(index) => {
                let Some(entry) = self.entries.get(index) else {
                    let invalid = self.invalid_entries.get(index.checked_sub(self.entries.len())?)?;
                    return Some(ComponentReport::missing(self.policies(), &invalid.absence(), None));
                };
                Some(ComponentReport::missing(self.policies(), entry.absence.as_ref()?, entry.since))
            }
        }
    }

    /// `None` if the component exists, or may exist.
    pub(super) fn presence(&self, member_id: MemberId) -> Option<ComponentPresence> {
        match member_id {
            MemberId::Object(_) => None,
            MemberId::Placeholder(index) => self.entries.get(index)?.absence.as_ref()?.presence(),
        }
    }

    pub(super) fn evaluate(&self, now: Timestamp) -> Evaluation {
        let (policies, reports) = (self.policies(), &self.reports);
        let damped = |policy: &Policy, tally: &Tally<ComponentKey>, kind: &str| {
            let stored = stored_condition::status(self.publication.stored(), kind);
            damp(policy, tally, stored, self.spec.degraded_after.value(), now)
        };
        let available = damped(&policies.available, &reports.available, AVAILABLE);
        let degraded = damped(&policies.degraded, &reports.degraded, DEGRADED);
        // While damping holds back an issue, Progressing must not report it either.
        let requires_intervention = self.spec.progressing == ProgressingPolicy::Matrix
            && available.until.is_none()
            && degraded.until.is_none()
            && !reports.requiring_intervention.is_empty();
        Evaluation {
            available,
            progressing: if self.deleting {
                Progressing::Terminating
            } else if requires_intervention {
                Progressing::InterventionRequired
            } else {
                Progressing::As(reports.progressing.worst())
            },
            degraded,
            policies,
        }
    }
}

fn absence(entry: &ComponentEntry, unreadable: Option<&Unreadable>) -> Option<Absence> {
    let is_named = matches!(entry.target, Target::Named(_));
    match unreadable {
        // A named object that was seen before, or that the running relist has shown already, exists. A
        // selector may match more.
        Some(_) if is_named && entry.matched > 0 => None,
        Some(Unreadable::NotServed) if is_named => Some(Absence::NotServed),
        Some(why) => Some(Absence::Unreadable(why.clone())),
        None if entry.matched > 0 => None,
        None => Some(if is_named { Absence::NotFound } else { Absence::NoObjectsSelected }),
    }
}

impl Evaluation {
    /// When time alone changes the result.
    pub(super) fn next(&self) -> Option<Timestamp> {
        [self.available, self.degraded].into_iter().filter_map(|damped| damped.next).min()
    }

    pub(super) fn triple(&self) -> Triple {
        let status = |policy: &Policy, class: Option<Class>| {
            class.map_or(policy.empty.status, |class| policy.status(class))
        };
        Triple {
            available: status(&self.policies.available, self.available.class),
            progressing: match self.progressing {
                Progressing::InterventionRequired => ConditionStatus::False,
                Progressing::Terminating => ConditionStatus::True,
                Progressing::As(class) => status(&self.policies.progressing, class),
            },
            degraded: status(&self.policies.degraded, self.degraded.class),
        }
    }
}
