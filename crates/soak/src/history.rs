//! The history of all members.
//!
//! Its clock is the etcd revision: etcd numbers all changes of all kinds in one order, and the
//! resourceVersion of an object is the revision of its last change.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    time::{Duration, Instant},
};

use bellwether_engine::NamespacedName;
use bellwether_simulation::{known::Known, object::Object};

use crate::objects::{Kind, Objects};

pub(crate) type Revision = u64;

/// How long changes are kept.
const RETENTION: Duration = Duration::from_mins(5);

#[derive(Default)]
pub(crate) struct History {
    records: BTreeMap<(Kind, String), Record>,
    /// The HealthRule after each change of its spec; `None` after its deletion.
    rules: Vec<(Revision, Option<Rc<Object>>)>,
    /// The latest observed revision at each time.
    clock: VecDeque<(Instant, Revision)>,
    /// Revisions between which the watch of a kind may have missed changes.
    gaps: Vec<(Kind, Revision, Revision)>,
}

/// The members of one kind in one namespace.
#[derive(Default)]
struct Record {
    /// The state before the first kept change.
    before: Objects,
    changes: VecDeque<(Revision, NamespacedName, Option<Rc<Object>>)>,
    now: Objects,
}

impl History {
    /// Records the time at which a revision was observed.
    pub(crate) fn tick(&mut self, revision: Revision, at: Instant) {
        if self.clock.back().is_none_or(|(_, latest)| *latest < revision) {
            self.clock.push_back((at, revision));
        }
    }

    /// Records a change of a member; `None` is its deletion.
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

    /// Records a change of the HealthRule; `None` is its deletion.
    pub(crate) fn note_rule(&mut self, revision: Revision, rule: Option<Rc<Object>>) {
        let spec = |rule: &Option<Rc<Object>>| rule.as_ref().map(|rule| rule.value["spec"].clone());
        let before = self.rules.last().and_then(|(_, rule)| spec(rule));
        if before != spec(&rule) {
            self.rules.push((revision, rule));
        }
    }

    /// Records that changes of a kind between these revisions may be missing.
    pub(crate) fn note_gap(&mut self, kind: Kind, from: Revision, to: Revision) {
        self.gaps.push((kind, from, to));
    }

    pub(crate) fn latest(&self) -> Revision {
        self.clock.back().map_or(0, |(_, revision)| *revision)
    }

    /// The latest revision that was observed at a time.
    pub(crate) fn revision_at(&self, time: Instant) -> Revision {
        let index = self.clock.partition_point(|(at, _)| *at <= time);
        index.checked_sub(1).and_then(|index| self.clock.get(index)).map_or(0, |(_, revision)| *revision)
    }

    /// When a revision was observed. The change itself happened before.
    pub(crate) fn time_of(&self, revision: Revision) -> Option<Instant> {
        let index = self.clock.partition_point(|(_, other)| *other < revision);
        self.clock.get(index).map(|(at, _)| *at)
    }

    /// The current members of a kind, for each namespace.
    pub(crate) fn now(&self, kind: Kind) -> impl Iterator<Item = &Objects> {
        let records = self.records.iter().filter(move |((other, _), _)| *other == kind);
        records.map(|(_, record)| &record.now)
    }

    pub(crate) fn now_in(&self, kind: Kind, namespace: &str) -> Option<&Objects> {
        self.records.get(&(kind, namespace.to_owned())).map(|record| &record.now)
    }

    /// Whether `is_so` holds for the state at revision `from` or after any later change before revision `to`.
    /// Only the objects for which `concerns` holds are part of the state.
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
        // Most changes do not affect the relevant objects: each distinct state is checked once.
        let mut is_checked = false;
        for (revision, name, object) in &record.changes {
            if *revision > from && !is_checked {
                is_checked = true;
                if is_so(&known) {
                    return true;
                }
            }
            if *revision >= to {
                return false;
            }
            let object = object.as_ref().filter(|object| concerns(object));
            is_checked &= object.is_none() && !known.objects.contains_key(name);
            set(&mut known.objects, name, object);
        }
        !is_checked && is_so(&known)
    }

    /// The HealthRule at revision `from` and after each later change before revision `to`.
    pub(crate) fn rules_between(&self, from: Revision, to: Revision) -> Vec<Option<&Rc<Object>>> {
        let first = self.rules.iter().rev().find(|(revision, _)| *revision <= from);
        let later = self.rules.iter().filter(|(revision, _)| *revision > from && *revision < to);
        let later = later.map(|(_, rule)| rule.as_ref());
        [first.and_then(|(_, rule)| rule.as_ref())].into_iter().chain(later).collect()
    }

    /// Whether changes of a kind may be missing between these revisions.
    pub(crate) fn has_gap(&self, kind: Kind, from: Revision, to: Revision) -> bool {
        self.gaps.iter().any(|(other, begin, end)| *other == kind && *begin < to && *end > from)
    }

    /// Drops changes that are older than [`RETENTION`].
    pub(crate) fn forget(&mut self, now: Instant) {
        let Some(revision) = now.checked_sub(RETENTION).map(|time| self.revision_at(time)) else { return };
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

    /// All states between two revisions, in order.
    fn states(history: &History, from: Revision, to: Revision) -> Vec<String> {
        let mut states = Vec::new();
        let concerns = |object: &Object| object.uid() != "other";
        history.was_ever((Kind::Widget, "team"), (from, to), concerns, |known| {
            states.push(uids(known));
            false
        });
        states
    }

    #[test]
    fn it_returns_each_state_between_two_revisions() {
        let mut history = History::default();
        let changes = [
            (10, "a", Some("1")),
            (20, "b", Some("2")),
            (25, "c", Some("other")),
            (30, "a", None),
            (35, "c", None),
        ];
        for (revision, name, uid) in changes {
            history.note(Kind::Widget, &NamespacedName::new("team", name), revision, uid.map(object));
        }
        assert_eq!(states(&history, 0, 100), ["", "1", "12", "2"]);
        assert_eq!(states(&history, 10, 100), ["1", "12", "2"]);
        assert_eq!(states(&history, 15, 30), ["1", "12"], "the change at the last revision is not included");
        assert_eq!(states(&history, 30, 31), ["2"]);
        assert_eq!(states(&history, 50, 60), ["2"]);
    }

    #[test]
    fn it_drops_old_changes_and_keeps_their_result() {
        let begun = Instant::now();
        let mut history = History::default();
        for (revision, uid) in [(10, "1"), (20, "2"), (30, "3")] {
            history.note(Kind::Widget, &NamespacedName::new("team", "a"), revision, Some(object(uid)));
            history.tick(revision, begun + Duration::from_secs(revision));
        }
        history.forget(begun + RETENTION + Duration::from_secs(25));
        assert_eq!(states(&history, 0, 100), ["1", "2", "3"]);
        assert_eq!(history.revision_at(begun + Duration::from_secs(29)), 20);
        assert_eq!(history.time_of(25), Some(begun + Duration::from_secs(30)));
    }

    #[test]
    fn a_rule_applies_until_the_next_change() {
        let mut history = History::default();
        let rule = |uid: &str, choice: u32| {
            Some(Rc::new(Object::new(json!({ "metadata": { "uid": uid }, "spec": choice }))))
        };
        let between = |history: &History, from, to| -> Vec<String> {
            let rules = history.rules_between(from, to).into_iter();
            rules.map(|rule| rule.map_or("none", |rule| rule.uid()).to_owned()).collect()
        };
        assert_eq!(between(&history, 5, 10), ["none"]);
        history.note_rule(10, rule("a", 1));
        history.note_rule(15, rule("b", 1));
        history.note_rule(20, rule("c", 2));
        assert_eq!(between(&history, 5, 10), ["none"]);
        assert_eq!(between(&history, 5, 11), ["none", "a"]);
        assert_eq!(between(&history, 12, 30), ["a", "c"], "a rule with the same spec is the same rule");
        history.note_rule(40, None);
        assert_eq!(between(&history, 30, 50), ["c", "none"]);
    }
}
