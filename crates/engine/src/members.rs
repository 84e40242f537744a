//! The members of a group, with counts and sort orders that are updated as members come, change and go.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellwether_api::{ObjectCounts, State};
use jiff::Timestamp;

use crate::{
    feeds::ObjectId,
    id::{GroupKind, NamespacedName},
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
    progress: u64,
}

impl Members {
    pub(crate) fn put(&mut self, member_id: MemberId, entry: MemberEntry) {
        self.remove(member_id);
        *self.counts.entry(entry.state).or_default() += 1;
        self.progress += u64::from(entry.progress);
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
        self.progress -= u64::from(entry.progress);
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
        if let Some(entry) = self.entries.get_mut(&member_id) {
            entry.since = since;
        }
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
