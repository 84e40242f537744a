//! How the members were, and when.
//!
//! Time is told by revisions: etcd numbers all changes of all kinds in one order, and every object carries the number of its
//! last change.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{cast::Kind, fact::Fact, truth::Objects};

/// The number of a change.
pub(super) type Revision = u64;

/// For so long it is remembered how things were.
const MEMORY: Duration = Duration::from_mins(5);

/// How the members were, and which rule was in force.
#[derive(Default)]
pub(super) struct Chronicle {
    records: BTreeMap<(Kind, String), Record>,
    /// Which rule came into force with which change.
    rules: Vec<(Revision, usize)>,
    /// The latest change that was known at a time.
    clock: VecDeque<(Instant, Revision)>,
    /// Where something may have happened to a kind that nobody saw.
    gaps: Vec<(Kind, Revision, Revision)>,
}

/// The members of one kind in one namespace.
#[derive(Default)]
struct Record {
    /// As they were before all that is remembered.
    before: Objects,
    changes: VecDeque<(Revision, String, Option<Arc<Fact>>)>,
    now: Objects,
}

impl Chronicle {
    /// A change was seen.
    pub(super) fn tick(&mut self, revision: Revision, at: Instant) {
        if self.clock.back().is_none_or(|(_, latest)| *latest < revision) {
            self.clock.push_back((at, revision));
        }
    }

    /// A member is so now, or is gone.
    pub(super) fn note(
        &mut self,
        kind: Kind,
        namespace: &str,
        name: &str,
        revision: Revision,
        fact: Option<Fact>,
    ) {
        let record = self.records.entry((kind, namespace.to_owned())).or_default();
        let fact = fact.map(Arc::new);
        match &fact {
            Some(fact) => record.now.insert(name.to_owned(), Arc::clone(fact)),
            None => record.now.remove(name),
        };
        record.changes.push_back((revision, name.to_owned(), fact));
    }

    /// A rule is in force from now on.
    pub(super) fn note_rule(&mut self, revision: Revision, choice: usize) {
        self.rules.push((revision, choice));
    }

    /// What happened to a kind in between is not known.
    pub(super) fn note_gap(&mut self, kind: Kind, from: Revision, to: Revision) {
        self.gaps.push((kind, from, to));
    }

    /// The latest change of all.
    pub(super) fn latest(&self) -> Revision {
        self.clock.back().map_or(0, |(_, revision)| *revision)
    }

    /// The latest change that was known at a time.
    pub(super) fn revision_at(&self, time: Instant) -> Revision {
        let index = self.clock.partition_point(|(at, _)| *at <= time);
        index.checked_sub(1).and_then(|index| self.clock.get(index)).map_or(0, |(_, revision)| *revision)
    }

    /// When it was known that a change had been made: it was made before that.
    pub(super) fn time_of(&self, revision: Revision) -> Option<Instant> {
        let index = self.clock.partition_point(|(_, other)| *other < revision);
        self.clock.get(index).map(|(at, _)| *at)
    }

    /// The members of a kind as they are now.
    pub(super) fn now(&self, kind: Kind) -> impl Iterator<Item = (&str, &Objects)> {
        let records = self.records.iter().filter(move |((other, _), _)| *other == kind);
        records.map(|((_, namespace), record)| (namespace.as_str(), &record.now))
    }

    /// The members of a kind in a namespace as they are now.
    pub(super) fn now_in(&self, kind: Kind, namespace: &str) -> Option<&Objects> {
        self.records.get(&(kind, namespace.to_owned())).map(|record| &record.now)
    }

    /// Whether the members of a kind in a namespace were ever so: after the first of these changes, or after any other
    /// before the last.
    pub(super) fn was_ever(
        &self,
        kind: Kind,
        namespace: &str,
        (from, to): (Revision, Revision),
        mut is_so: impl FnMut(&Objects) -> bool,
    ) -> bool {
        let Some(record) = self.records.get(&(kind, namespace.to_owned())) else {
            return is_so(&Objects::new());
        };
        let mut objects = record.before.clone();
        for (revision, name, fact) in &record.changes {
            if *revision > from && is_so(&objects) {
                return true;
            }
            if *revision >= to {
                return false;
            }
            match fact {
                Some(fact) => objects.insert(name.clone(), Arc::clone(fact)),
                None => objects.remove(name),
            };
        }
        is_so(&objects)
    }

    /// The rules that were in force after the first of these changes, or after any other before the last.
    pub(super) fn rules_between(&self, from: Revision, to: Revision) -> BTreeSet<usize> {
        let first = self.rules.iter().rev().find(|(revision, _)| *revision <= from);
        let later = self.rules.iter().filter(|(revision, _)| *revision > from && *revision < to);
        let mut rules: BTreeSet<_> = first.into_iter().chain(later).map(|(_, choice)| *choice).collect();
        if first.is_none() {
            rules.insert(0);
        }
        rules
    }

    /// Whether something may have happened to a kind in between that nobody saw.
    pub(super) fn has_gap(&self, kind: Kind, from: Revision, to: Revision) -> bool {
        self.gaps.iter().any(|(other, begin, end)| *other == kind && *begin < to && *end > from)
    }

    /// Forgets what is too long ago.
    pub(super) fn forget(&mut self, now: Instant) {
        let Some(revision) = now.checked_sub(MEMORY).map(|time| self.revision_at(time)) else { return };
        while self.clock.front().is_some_and(|(_, other)| *other < revision) {
            self.clock.pop_front();
        }
        for record in self.records.values_mut() {
            while record.changes.front().is_some_and(|(other, ..)| *other < revision) {
                if let Some((_, name, fact)) = record.changes.pop_front() {
                    match fact {
                        Some(fact) => record.before.insert(name, fact),
                        None => record.before.remove(&name),
                    };
                }
            }
        }
        self.gaps.retain(|(.., end)| *end >= revision);
    }
}

#[cfg(test)]
mod tests {
    use bellwether_model::State;

    use super::*;

    fn fact(uid: &str) -> Fact {
        Fact {
            uid: uid.to_owned(),
            labels: BTreeMap::new(),
            application: None,
            states: [State::Ready; 3],
            settled: true,
            deleting: false,
            owners: Vec::new(),
            generation: 1,
            replicas: 1,
        }
    }

    fn uids(objects: &Objects) -> String {
        objects.values().map(|fact| fact.uid.as_str()).collect()
    }

    /// All states in between, in their order.
    fn states(chronicle: &Chronicle, from: Revision, to: Revision) -> Vec<String> {
        let mut states = Vec::new();
        chronicle.was_ever(Kind::Widget, "team", (from, to), |objects| {
            states.push(uids(objects));
            false
        });
        states
    }

    #[test]
    fn it_knows_how_things_were_between_two_changes() {
        let mut chronicle = Chronicle::default();
        for (revision, name, uid) in [(10, "a", Some("1")), (20, "b", Some("2")), (30, "a", None)] {
            chronicle.note(Kind::Widget, "team", name, revision, uid.map(fact));
        }
        assert_eq!(states(&chronicle, 0, 100), ["", "1", "12", "2"]);
        assert_eq!(states(&chronicle, 10, 100), ["1", "12", "2"]);
        assert_eq!(states(&chronicle, 15, 30), ["1", "12"], "the last change itself comes too late");
        assert_eq!(states(&chronicle, 30, 31), ["2"]);
        assert_eq!(states(&chronicle, 50, 60), ["2"]);
    }

    #[test]
    fn it_forgets_what_is_long_ago_and_keeps_what_came_of_it() {
        let begun = Instant::now();
        let mut chronicle = Chronicle::default();
        for (revision, uid) in [(10, "1"), (20, "2"), (30, "3")] {
            chronicle.note(Kind::Widget, "team", "a", revision, Some(fact(uid)));
            chronicle.tick(revision, begun + Duration::from_secs(revision));
        }
        chronicle.forget(begun + MEMORY + Duration::from_secs(25));
        assert_eq!(states(&chronicle, 0, 100), ["1", "2", "3"]);
        assert_eq!(chronicle.revision_at(begun + Duration::from_secs(29)), 20);
        assert_eq!(chronicle.time_of(25), Some(begun + Duration::from_secs(30)));
    }

    #[test]
    fn rules_are_in_force_until_the_next_one() {
        let mut chronicle = Chronicle::default();
        assert_eq!(chronicle.rules_between(5, 10), [0].into());
        chronicle.note_rule(10, 1);
        chronicle.note_rule(20, 2);
        assert_eq!(chronicle.rules_between(5, 10), [0].into());
        assert_eq!(chronicle.rules_between(5, 11), [0, 1].into());
        assert_eq!(chronicle.rules_between(12, 30), [1, 2].into());
    }
}
