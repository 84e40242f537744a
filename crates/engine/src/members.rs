//! The members of a group, counted as they come, change and go.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellwether_api::{ObjectCounts, State};
use jiff::Timestamp;

use crate::{
    feeds::ObjectId,
    id::{GroupKind, NamespacedName},
};

/// What is counted of one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MemberEntry {
    pub(crate) kind: GroupKind,
    pub(crate) name: NamespacedName,
    pub(crate) state: State,
    pub(crate) progress: u8,
    pub(crate) settled: bool,
    /// Since when it is in that state, as far as anybody knows.
    pub(crate) since: Option<Timestamp>,
}

/// Who a share is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum MemberId {
    /// An object that is there.
    Object(ObjectId),
    /// A named component that is not, or of which nobody can tell.
    Component(usize),
}

/// A place in the list: the worst first, then by kind and name.
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

    /// Before all of this kind and name that are in this state.
    fn first(state: State, kind: GroupKind, name: NamespacedName) -> Self {
        Self { rank: rank(state), kind, name, member_id: MemberId::Object(ObjectId::FIRST) }
    }
}

/// All of them, and what they come to.
#[derive(Debug, Default)]
pub(crate) struct Members {
    entries: HashMap<MemberId, MemberEntry>,
    order: BTreeSet<SortKey>,
    unsettled: BTreeSet<(GroupKind, NamespacedName, MemberId)>,
    counts: BTreeMap<State, usize>,
    progress: u64,
}

impl Members {
    /// Counts one, instead of what was counted of it before.
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

    /// Counts one no longer.
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

    /// How many are in which state.
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

    /// How far along they are on average, if there are any.
    pub(crate) fn progress(&self) -> Option<u8> {
        let total = u64::try_from(self.total()).ok().filter(|total| *total > 0)?;
        u8::try_from(self.progress / total).ok()
    }

    /// All of them, the worst first, then by kind and name.
    pub(crate) fn worst_first(&self) -> impl Iterator<Item = (MemberId, &MemberEntry)> {
        self.order.iter().filter_map(|key| Some((key.member_id, self.entries.get(&key.member_id)?)))
    }

    /// Those in a state, by kind and name.
    pub(crate) fn in_state(&self, state: State) -> impl Iterator<Item = (MemberId, &MemberEntry)> {
        let first = SortKey::first(state, GroupKind::new("", ""), NamespacedName::new("", ""));
        let rank = first.rank;
        let keys = self.order.range(first..).take_while(move |key| key.rank == rank);
        keys.filter_map(|key| Some((key.member_id, self.entries.get(&key.member_id)?)))
    }

    /// Those whose controllers have not acted on their latest generation.
    pub(crate) fn unsettled(&self) -> impl ExactSizeIterator<Item = (&GroupKind, &NamespacedName)> {
        self.unsettled.iter().map(|(kind, name, _)| (kind, name))
    }

    /// Since when they are in their states, as far as anybody knows.
    pub(crate) fn times(&self) -> impl Iterator<Item = (GroupKind, NamespacedName, State, Timestamp)> {
        self.entries
            .values()
            .filter_map(|entry| Some((entry.kind.clone(), entry.name.clone(), entry.state, entry.since?)))
    }

    /// Those of this kind and name that are in a state.
    pub(crate) fn named(&self, kind: &GroupKind, name: &NamespacedName, state: State) -> Vec<MemberId> {
        let first = SortKey::first(state, kind.clone(), name.clone());
        let is_named = |key: &&SortKey| key.rank == first.rank && key.kind == *kind && key.name == *name;
        self.order.range(&first..).take_while(is_named).map(|key| key.member_id).collect()
    }

    /// Takes over since when one is in its state.
    pub(crate) fn set_since(&mut self, member_id: MemberId, since: Option<Timestamp>) {
        if let Some(entry) = self.entries.get_mut(&member_id) {
            entry.since = since;
        }
    }

    /// The objects among them.
    pub(crate) fn objects(&self) -> Vec<ObjectId> {
        let mut objects: Vec<_> = self
            .entries
            .keys()
            .filter_map(|member_id| match member_id {
                MemberId::Object(id) => Some(*id),
                MemberId::Component(_) => None,
            })
            .collect();
        objects.sort_unstable();
        objects
    }
}

/// How bad a state is: less is worse.
fn rank(state: State) -> usize {
    State::WORST_FIRST.iter().position(|other| *other == state).unwrap_or(State::WORST_FIRST.len())
}
