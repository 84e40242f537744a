//! How the members were, and when.
//!
//! Time is told by revisions: etcd numbers all changes of all kinds in one order, and every object carries the number of its
//! last change.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    time::{Duration, Instant},
};

use bellwether_engine::NamespacedName;
use bellwether_simulation::{known::Known, object::Object};

use crate::cast::{Kind, Objects};

/// The number of a change.
pub(crate) type Revision = u64;

/// For so long it is remembered how things were.
const MEMORY: Duration = Duration::from_mins(5);

/// How the members were, and which HealthRule there was.
#[derive(Default)]
pub(crate) struct Chronicle {
    records: BTreeMap<(Kind, String), Record>,
    /// The HealthRule as each change left it, where that changed its spec.
    rules: Vec<(Revision, Option<Rc<Object>>)>,
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
    changes: VecDeque<(Revision, NamespacedName, Option<Rc<Object>>)>,
    now: Objects,
}

impl Chronicle {
    /// A change was seen.
    pub(crate) fn tick(&mut self, revision: Revision, at: Instant) {
        if self.clock.back().is_none_or(|(_, latest)| *latest < revision) {
            self.clock.push_back((at, revision));
        }
    }

    /// A member is so now, or is gone.
    pub(crate) fn note(
        &mut self,
        kind: Kind,
        name: &NamespacedName,
        revision: Revision,
        object: Option<Rc<Object>>,
    ) {
        let record = self.records.entry((kind, name.namespace.to_string())).or_default();
        set(&mut record.now, name, object.as_ref());
        record.changes.push_back((revision, name.clone(), object));
    }

    /// The HealthRule is so now, or is gone.
    pub(crate) fn note_rule(&mut self, revision: Revision, rule: Option<Rc<Object>>) {
        let spec = |rule: &Option<Rc<Object>>| rule.as_ref().map(|rule| rule.value["spec"].clone());
        let before = self.rules.last().and_then(|(_, rule)| spec(rule));
        if before != spec(&rule) {
            self.rules.push((revision, rule));
        }
    }

    /// What happened to a kind in between is not known.
    pub(crate) fn note_gap(&mut self, kind: Kind, from: Revision, to: Revision) {
        self.gaps.push((kind, from, to));
    }

    /// The latest change of all.
    pub(crate) fn latest(&self) -> Revision {
        self.clock.back().map_or(0, |(_, revision)| *revision)
    }

    /// The latest change that was known at a time.
    pub(crate) fn revision_at(&self, time: Instant) -> Revision {
        let index = self.clock.partition_point(|(at, _)| *at <= time);
        index.checked_sub(1).and_then(|index| self.clock.get(index)).map_or(0, |(_, revision)| *revision)
    }

    /// When it was known that a change had been made: it was made before that.
    pub(crate) fn time_of(&self, revision: Revision) -> Option<Instant> {
        let index = self.clock.partition_point(|(_, other)| *other < revision);
        self.clock.get(index).map(|(at, _)| *at)
    }

    /// The members of a kind as they are now, in each namespace.
    pub(crate) fn now(&self, kind: Kind) -> impl Iterator<Item = &Objects> {
        let records = self.records.iter().filter(move |((other, _), _)| *other == kind);
        records.map(|(_, record)| &record.now)
    }

    /// The members of a kind in a namespace as they are now.
    pub(crate) fn now_in(&self, kind: Kind, namespace: &str) -> Option<&Objects> {
        self.records.get(&(kind, namespace.to_owned())).map(|record| &record.now)
    }

    /// Whether the objects that concern somebody, of a kind in a namespace, were ever so: after the first of these changes,
    /// or after any other before the last.
    pub(crate) fn was_ever(
        &self,
        (kind, namespace): (Kind, &str),
        (from, to): (Revision, Revision),
        concerns: impl Fn(&Object) -> bool,
        mut is_so: impl FnMut(&Known) -> bool,
    ) -> bool {
        let Some(record) = self.records.get(&(kind, namespace.to_owned())) else {
            return is_so(&kind.known(Objects::new()));
        };
        let mut known = kind.known(record.before.clone());
        known.objects.retain(|_, object| concerns(object));
        // Most changes concern others, and each moment is asked about once.
        let mut was_asked = false;
        for (revision, name, object) in &record.changes {
            if *revision > from && !was_asked {
                was_asked = true;
                if is_so(&known) {
                    return true;
                }
            }
            if *revision >= to {
                return false;
            }
            let object = object.as_ref().filter(|object| concerns(object));
            was_asked &= object.is_none() && !known.objects.contains_key(name);
            set(&mut known.objects, name, object);
        }
        !was_asked && is_so(&known)
    }

    /// The HealthRule, or none, after the first of these changes, and after any other before the last.
    pub(crate) fn rules_between(&self, from: Revision, to: Revision) -> Vec<Option<&Rc<Object>>> {
        let first = self.rules.iter().rev().find(|(revision, _)| *revision <= from);
        let later = self.rules.iter().filter(|(revision, _)| *revision > from && *revision < to);
        let later = later.map(|(_, rule)| rule.as_ref());
        [first.and_then(|(_, rule)| rule.as_ref())].into_iter().chain(later).collect()
    }

    /// Whether something may have happened to a kind in between that nobody saw.
    pub(crate) fn has_gap(&self, kind: Kind, from: Revision, to: Revision) -> bool {
        self.gaps.iter().any(|(other, begin, end)| *other == kind && *begin < to && *end > from)
    }

    /// Forgets what is too long ago.
    pub(crate) fn forget(&mut self, now: Instant) {
        let Some(revision) = now.checked_sub(MEMORY).map(|time| self.revision_at(time)) else { return };
        while self.clock.front().is_some_and(|(_, other)| *other < revision) {
            self.clock.pop_front();
        }
        for record in self.records.values_mut() {
            while record.changes.front().is_some_and(|(other, ..)| *other < revision) {
                if let Some((_, name, object)) = record.changes.pop_front() {
                    set(&mut record.before, &name, object.as_ref());
                }
            }
        }
        self.gaps.retain(|(.., end)| *end >= revision);
    }
}

fn set(objects: &mut Objects, name: &NamespacedName, object: Option<&Rc<Object>>) {
    match object {
        Some(object) => objects.insert(name.clone(), Rc::clone(object)),
        None => objects.remove(name),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str) -> Rc<Object> {
        Rc::new(Object::new(json!({ "metadata": { "uid": uid } })))
    }

    fn uids(known: &Known) -> String {
        known.objects.values().map(|object| object.uid()).collect()
    }

    /// All states in between, in their order.
    fn states(chronicle: &Chronicle, from: Revision, to: Revision) -> Vec<String> {
        let mut states = Vec::new();
        let concerns = |object: &Object| object.uid() != "other";
        chronicle.was_ever((Kind::Widget, "team"), (from, to), concerns, |known| {
            states.push(uids(known));
            false
        });
        states
    }

    #[test]
    fn it_knows_how_things_were_between_two_changes() {
        let mut chronicle = Chronicle::default();
        let changes = [
            (10, "a", Some("1")),
            (20, "b", Some("2")),
            (25, "c", Some("other")),
            (30, "a", None),
            (35, "c", None),
        ];
        for (revision, name, uid) in changes {
            chronicle.note(Kind::Widget, &NamespacedName::new("team", name), revision, uid.map(object));
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
            chronicle.note(Kind::Widget, &NamespacedName::new("team", "a"), revision, Some(object(uid)));
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
        let rule = |uid: &str, choice: u32| {
            Some(Rc::new(Object::new(json!({ "metadata": { "uid": uid }, "spec": choice }))))
        };
        let between = |chronicle: &Chronicle, from, to| -> Vec<String> {
            let rules = chronicle.rules_between(from, to).into_iter();
            rules.map(|rule| rule.map_or("none", |rule| rule.uid()).to_owned()).collect()
        };
        assert_eq!(between(&chronicle, 5, 10), ["none"]);
        chronicle.note_rule(10, rule("a", 1));
        chronicle.note_rule(15, rule("b", 1));
        chronicle.note_rule(20, rule("c", 2));
        assert_eq!(between(&chronicle, 5, 10), ["none"]);
        assert_eq!(between(&chronicle, 5, 11), ["none", "a"]);
        assert_eq!(between(&chronicle, 12, 30), ["a", "c"], "the same spec is the same rule");
        chronicle.note_rule(40, None);
        assert_eq!(between(&chronicle, 30, 50), ["c", "none"]);
    }
}
