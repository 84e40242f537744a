//! The members of a group, with counts and sort orders that are updated as members come, change and go.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellwether_api::{ObjectCounts, State};
use jiff::Timestamp;

use crate::{
    below::Below,
    feeds::ObjectId,
    id::{GroupKind, NamespacedName},
    stored_condition,
};

/// What a group counts of one member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MemberEntry {
    pub(crate) kind: GroupKind,
    pub(crate) name: NamespacedName,
    pub(crate) state: State,
    pub(crate) progress: u8,
    pub(crate) settled: bool,
    /// Since when it is in this state, if known.
    pub(crate) since: Option<Timestamp>,
    /// The last state in which it was seen. Differs from `state` while it cannot be read; `None` if it never
    /// could.
    pub(crate) seen: Option<SeenState>,
    pub(crate) below: Option<Below>,
    /// For a workload, whether it is scaled to zero.
    pub(crate) scaled_to_zero: Option<bool>,
    /// Suspended, and what runs of it is not available.
    pub(crate) blocks: bool,
}

impl MemberEntry {
    /// With nothing below.
    pub(crate) fn new(kind: GroupKind, name: NamespacedName, state: State, since: Option<Timestamp>) -> Self {
        Self {
            kind,
            name,
            state,
            progress: 0,
            settled: true,
            since,
            seen: None,
            below: None,
            scaled_to_zero: None,
            blocks: false,
        }
    }

    /// The Pod because of which it is not ready.
    pub(crate) fn cause(&self) -> Option<ObjectId> {
        self.below?.cause()
    }

    /// The state that it may give its group.
    fn group_state(&self) -> State {
        if self.blocks { State::InProgress } else { self.state }
    }
}

/// A state of a member as this process saw it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeenState {
    pub(crate) state: State,
    pub(crate) since: Option<Timestamp>,
    /// When this process first saw the state.
    pub(crate) first_seen: Timestamp,
    /// The state began after this time, because the member was in another one then.
    pub(crate) not_before: Option<Timestamp>,
}

impl SeenState {
    /// When the state began, or when it was seen first.
    fn begin(&self) -> Timestamp {
        self.since.unwrap_or(self.first_seen)
    }

    /// The state after this one. `reported`: since when, by the object itself, or by the Pod because of which
    /// it is `Failed`. It does not count if the member was in another state then, other than `InProgress` if
    /// a Pod reports it.
    pub(crate) fn next(
        &self,
        state: State,
        reported: Option<Timestamp>,
        has_failed_pod: bool,
        now: Timestamp,
    ) -> Self {
        let is_same = state == self.state;
        let continues = is_same || (has_failed_pod && self.state == State::InProgress);
        let not_before = if continues { self.not_before } else { Some(self.begin()) };
        let reported = reported.filter(|since| not_before.is_none_or(|not_before| *since >= not_before));
        let since = if is_same { self.since } else { stored_condition::whole_seconds(now) };
        Self {
            state,
            since: since_when(reported, since, has_failed_pod),
            first_seen: if is_same { self.first_seen } else { now },
            not_before,
        }
    }
}

/// Since when a member is in its state: as reported, otherwise as known before. If one Pod after the other
/// fails, it is `Failed` since the first one.
pub(crate) fn since_when(
    reported: Option<Timestamp>,
    before: Option<Timestamp>,
    has_failed_pod: bool,
) -> Option<Timestamp> {
    match (reported, before) {
        (Some(reported), Some(before)) if has_failed_pod => Some(reported.min(before)),
        _ => reported.or(before),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum MemberId {
    Object(ObjectId),
    /// The index of a named component that does not exist, or whose kind cannot be read.
    Placeholder(usize),
}

/// Worst state first, then by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SortKey {
    rank: usize,
    kind: GroupKind,
    name: NamespacedName,
    member_id: MemberId,
}

impl SortKey {
    fn new(member_id: MemberId, entry: &MemberEntry) -> Self {
        Self { rank: rank(entry.state), kind: entry.kind.clone(), name: entry.name.clone(), member_id }
    }

    /// Sorts before all members of this kind and name in this state.
    fn first(state: State, kind: GroupKind, name: NamespacedName) -> Self {
        Self { rank: rank(state), kind, name, member_id: MemberId::Object(ObjectId::FIRST) }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Members {
    entries: HashMap<MemberId, MemberEntry>,
    order: BTreeSet<SortKey>,
    unsettled: BTreeSet<(GroupKind, NamespacedName, MemberId)>,
    counts: BTreeMap<State, usize>,
    /// The number of members that may give their group a state since a time, so that
    /// [`earliest`](Self::earliest) and [`latest`](Self::latest) need not look at every member.
    since_counts: BTreeMap<(State, Option<Timestamp>), usize>,
    progress: u64,
    blocking_suspended: usize,
    /// Members that run Pods, and those of them that are scaled to zero.
    workloads: usize,
    scaled_to_zero: usize,
}

impl Members {
    pub(crate) fn put(&mut self, member_id: MemberId, entry: MemberEntry) {
        self.remove(member_id);
        *self.counts.entry(entry.state).or_default() += 1;
        *self.since_counts.entry((entry.group_state(), entry.since)).or_default() += 1;
        self.progress += u64::from(entry.progress);
        self.blocking_suspended += usize::from(entry.blocks);
        self.workloads += usize::from(entry.scaled_to_zero.is_some());
        self.scaled_to_zero += usize::from(entry.scaled_to_zero == Some(true));
        self.order.insert(SortKey::new(member_id, &entry));
        if !entry.settled {
            self.unsettled.insert((entry.kind.clone(), entry.name.clone(), member_id));
        }
        self.entries.insert(member_id, entry);
    }

    pub(crate) fn remove(&mut self, member_id: MemberId) -> Option<MemberEntry> {
        let entry = self.entries.remove(&member_id)?;
        if let Some(count) = self.counts.get_mut(&entry.state) {
            *count -= 1;
        }
        self.uncount_since(entry.group_state(), entry.since);
        self.progress -= u64::from(entry.progress);
        self.blocking_suspended -= usize::from(entry.blocks);
        self.workloads -= usize::from(entry.scaled_to_zero.is_some());
        self.scaled_to_zero -= usize::from(entry.scaled_to_zero == Some(true));
        self.order.remove(&SortKey::new(member_id, &entry));
        if !entry.settled {
            self.unsettled.remove(&(entry.kind.clone(), entry.name.clone(), member_id));
        }
        Some(entry)
    }

    pub(crate) fn get(&self, member_id: MemberId) -> Option<&MemberEntry> {
        self.entries.get(&member_id)
    }

    pub(crate) fn total(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn count(&self, state: State) -> usize {
        self.counts.get(&state).copied().unwrap_or_default()
    }

    /// Members that are suspended although what runs of them is not available.
    pub(crate) fn blocking_suspended(&self) -> usize {
        self.blocking_suspended
    }

    /// Whether there are members that run Pods, and all of them are scaled to zero.
    pub(crate) fn are_scaled_to_zero(&self) -> bool {
        self.workloads > 0 && self.workloads == self.scaled_to_zero
    }

    pub(crate) fn counts(&self) -> ObjectCounts {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let of = |state| number(self.count(state));
        ObjectCounts {
            total: number(self.total()),
            ready: of(State::Ready),
            in_progress: of(State::InProgress),
            failed: of(State::Failed),
            suspended: of(State::Suspended),
            terminating: of(State::Terminating),
            unknown: of(State::Unknown),
            missing: of(State::Missing),
        }
    }

    /// The mean progress; `None` without members.
    pub(crate) fn progress(&self) -> Option<u8> {
        let total = u64::try_from(self.total()).ok().filter(|total| *total > 0)?;
        u8::try_from(self.progress / total).ok()
    }

    pub(crate) fn worst_first(&self) -> impl Iterator<Item = (MemberId, &MemberEntry)> {
        self.order.iter().filter_map(|key| Some((key.member_id, self.entries.get(&key.member_id)?)))
    }

    /// Sorted by kind and name.
    pub(crate) fn in_state(&self, state: State) -> impl Iterator<Item = (MemberId, &MemberEntry)> {
        let first = SortKey::first(state, GroupKind::new("", ""), NamespacedName::new("", ""));
        let rank = first.rank;
        let keys = self.order.range(first..).take_while(move |key| key.rank == rank);
        keys.filter_map(|key| Some((key.member_id, self.entries.get(&key.member_id)?)))
    }

    /// Members whose controllers have not observed their latest generation.
    pub(crate) fn unsettled(&self) -> impl ExactSizeIterator<Item = (&GroupKind, &NamespacedName)> {
        self.unsettled.iter().map(|(kind, name, _)| (kind, name))
    }

    /// Members whose `since` is known.
    pub(crate) fn times(&self) -> impl Iterator<Item = (GroupKind, NamespacedName, State, Timestamp)> {
        self.entries
            .values()
            .filter_map(|entry| Some((entry.kind.clone(), entry.name.clone(), entry.state, entry.since?)))
    }

    pub(crate) fn named(&self, kind: &GroupKind, name: &NamespacedName, state: State) -> Vec<MemberId> {
        let first = SortKey::first(state, kind.clone(), name.clone());
        let is_named = |key: &&SortKey| key.rank == first.rank && key.kind == *kind && key.name == *name;
        self.order.range(&first..).take_while(is_named).map(|key| key.member_id).collect()
    }

    pub(crate) fn set_since(&mut self, member_id: MemberId, since: Option<Timestamp>) {
        let Some(entry) = self.entries.get_mut(&member_id) else { return };
        let before = std::mem::replace(&mut entry.since, since);
        if let Some(seen) = entry.seen.as_mut().filter(|seen| seen.state == entry.state) {
            seen.since = since;
        }
        let state = entry.group_state();
        self.uncount_since(state, before);
        *self.since_counts.entry((state, since)).or_default() += 1;
    }

    fn uncount_since(&mut self, state: State, since: Option<Timestamp>) {
        if let Some(count) = self.since_counts.get_mut(&(state, since)) {
            *count -= 1;
            if *count == 0 {
                self.since_counts.remove(&(state, since));
            }
        }
    }

    /// Whether there are members that may give their group this state.
    pub(crate) fn have(&self, state: State) -> bool {
        let mut all = self.since_counts.range((state, None)..=(state, Some(Timestamp::MAX)));
        all.next().is_some()
    }

    /// Since when the first of the members that may give their group this state is in it, of those whose time
    /// is known.
    pub(crate) fn earliest(&self, state: State) -> Option<Timestamp> {
        let mut known =
            self.since_counts.range((state, Some(Timestamp::MIN))..=(state, Some(Timestamp::MAX)));
        known.next().and_then(|((_, since), _)| *since)
    }

    /// Since when the last member is in its state, of those whose time is known.
    pub(crate) fn latest(&self) -> Option<Timestamp> {
        let latest = |state| {
            let mut known =
                self.since_counts.range((state, Some(Timestamp::MIN))..=(state, Some(Timestamp::MAX)));
            known.next_back().and_then(|((_, since), _)| *since)
        };
        State::WORST_FIRST.into_iter().filter_map(latest).max()
    }

    /// Whether it is known of every member since when it is in its state.
    pub(crate) fn has_all_times(&self) -> bool {
        State::WORST_FIRST.iter().all(|state| !self.since_counts.contains_key(&(*state, None)))
    }

    pub(crate) fn objects(&self) -> Vec<ObjectId> {
        let mut objects: Vec<_> = self
            .entries
            .keys()
            .filter_map(|member_id| match member_id {
                MemberId::Object(id) => Some(*id),
                MemberId::Placeholder(_) => None,
            })
            .collect();
        objects.sort_unstable();
        objects
    }
}

/// Lower is worse.
fn rank(state: State) -> usize {
    State::WORST_FIRST.iter().position(|other| *other == state).unwrap_or(State::WORST_FIRST.len())
}
