//! The history of all members, of the objects below them, and of the HealthRule.
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

use crate::{
    objects::{Kind, Objects},
    rules,
};

pub(crate) type Revision = u64;

/// How long changes are kept.
const RETENTION: Duration = Duration::from_mins(5);

#[derive(Default)]
pub(crate) struct History {
    records: BTreeMap<(Kind, String), Record>,
    rules: Vec<RuleVersion>,
    /// The latest observed revision at each time.
    clock: VecDeque<(Instant, Revision)>,
    /// Revisions between which the watch of a kind may have missed changes.
    gaps: Vec<(Kind, Revision, Revision)>,
}

/// The HealthRule after a change of its spec.
struct RuleVersion {
    revision: Revision,
    seen: Instant,
    /// `None` after its deletion.
    rule: Option<Rc<Object>>,
    /// Whether the observer may have missed versions between the one before and this one.
    has_gap: bool,
}

/// What a controller may have missed of the HealthRule.
pub(crate) struct Missed<'a> {
    /// Whether it may have missed a version that was in force between two moments.
    pub(crate) version: &'a dyn Fn(Instant, Instant) -> bool,
    /// Whether it may have been started too late to know what was replaced at a moment.
    pub(crate) all_before: &'a dyn Fn(Instant) -> bool,
}

/// The objects of one kind in one namespace.
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
    pub(crate) fn note_rule(&mut self, revision: Revision, seen: Instant, rule: Option<Rc<Object>>) {
        let generation = |rule: &Object| rule.metadata()["generation"].as_u64().unwrap_or(1);
        let identity = |rule: &Rc<Object>| (rule.uid().to_owned(), generation(rule));
        let before = self.rules.last().and_then(|last| last.rule.as_ref()).map(identity);
        let now = rule.as_ref().map(identity);
        if before == now {
            return;
        }
        let has_gap = match (before, now) {
            (Some((one, before)), Some((other, now))) => one != other || now != before + 1,
            (None, Some((_, now))) => now != 1,
            (_, None) => false,
        };
        self.rules.push(RuleVersion { revision, seen, rule, has_gap });
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

    /// What a controller may apply as the HealthRule from revision `from` until before revision `to`: each
    /// version, or what [`Self::in_force`] returns for it.
    pub(crate) fn rules_between(
        &self,
        from: Revision,
        to: Revision,
        missed: &Missed<'_>,
    ) -> Vec<Option<Rc<Object>>> {
        let first = self.rules.partition_point(|version| version.revision <= from);
        let end = self.rules.partition_point(|version| version.revision < to).max(first);
        let mut all: Vec<Option<Rc<Object>>> = Vec::new();
        let mut add = |rule: Option<Rc<Object>>| {
            if !all.iter().any(|other| other.as_ref().map(Rc::as_ptr) == rule.as_ref().map(Rc::as_ptr)) {
                all.push(rule);
            }
        };
        match first.checked_sub(1) {
            Some(index) => self.in_force(index, missed).into_iter().for_each(&mut add),
            None => add(None),
        }
        for index in first..end {
            self.in_force(index, missed).into_iter().for_each(&mut add);
            if let Some(rule) = self.rules[index].rule.as_ref().filter(|_| self.rules[index].has_gap) {
                rules::valid_versions(rule).map(Some).chain([None]).for_each(&mut add);
            }
        }
        all
    }

    /// What a controller may apply as the current HealthRule.
    pub(crate) fn rules_now(&self, missed: &Missed<'_>) -> Vec<Option<Rc<Object>>> {
        match self.rules.len().checked_sub(1) {
            Some(index) => self.in_force(index, missed),
            None => vec![None],
        }
    }

    /// What a controller that knows this version may apply. Instead of an invalid version, it applies the last
    /// valid one that it knows. If it knows none, the invalid version makes its kind Unknown.
    fn in_force(&self, index: usize, missed: &Missed<'_>) -> Vec<Option<Rc<Object>>> {
        let current = &self.rules[index].rule;
        let Some(invalid) = current.as_ref().filter(|rule| !rules::is_valid(&rule.value)) else {
            return vec![current.clone()];
        };
        let mut all = Vec::new();
        for index in (0..=index).rev() {
            let RuleVersion { seen, rule, has_gap, .. } = &self.rules[index];
            let Some(rule) = rule.as_ref().filter(|rule| rule.uid() == invalid.uid()) else { break };
            if rules::is_valid(&rule.value) {
                all.push(Some(Rc::clone(rule)));
                let replaced = self.rules[index + 1].seen;
                if (missed.all_before)(replaced) {
                    all.push(Some(Rc::clone(invalid)));
                }
                if !(missed.version)(*seen, replaced) {
                    return all;
                }
            }
            if *has_gap {
                all.extend(rules::valid_versions(rule).map(Some));
            }
        }
        all.push(Some(Rc::clone(invalid)));
        all
    }

    /// Each distinct state of the objects of a kind between two revisions, as [`Self::was_ever`] has them.
    pub(crate) fn states(
        &self,
        (kind, namespace): (Kind, &str),
        (from, to): (Revision, Revision),
        concerns: impl Fn(&Object) -> bool,
    ) -> Vec<Known> {
        let mut states = Vec::new();
        self.was_ever((kind, namespace), (from, to), concerns, |known| {
            states.push(known.clone());
            false
        });
        states
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
        let concerns = |object: &Object| object.uid() != "other";
        history.states((Kind::Widget, "team"), (from, to), concerns).iter().map(uids).collect()
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

    /// A history of a HealthRule: revision, uid and variant (0: deleted). Each change is a second after the one
    /// before.
    fn history_of_rules(changes: &[(Revision, &str, usize)]) -> History {
        let (mut history, begun) = (History::default(), Instant::now());
        let mut generations = BTreeMap::new();
        for (revision, uid, choice) in changes {
            let seen = begun + Duration::from_secs(*revision);
            let generation = generations.entry(*uid).or_insert(0);
            *generation += 1;
            let mut rule = rules::written(*choice);
            rule["metadata"]["uid"] = json!(uid);
            rule["metadata"]["generation"] = json!(generation);
            let rule = (*choice > 0).then(|| Rc::new(Object::new(rule)));
            history.note_rule(*revision, seen, rule);
        }
        history
    }

    /// The variants that [`History::rules_between`] returns.
    fn between(history: &History, from: Revision, to: Revision, missed: &Missed<'_>) -> Vec<usize> {
        let is = |choice: &usize, rule: &Object| rules::written(*choice)["spec"] == rule.value["spec"];
        let variant = |rule: Option<Rc<Object>>| {
            rule.map_or(0, |rule| (1..rules::CHOICES).find(|choice| is(choice, &rule)).expect("a variant"))
        };
        history.rules_between(from, to, missed).into_iter().map(variant).collect()
    }

    const NOTHING: Missed<'_> = Missed { version: &|_, _| false, all_before: &|_| false };

    #[test]
    fn a_rule_applies_until_the_next_change() {
        let history = history_of_rules(&[(10, "a", 1), (20, "a", 2), (40, "a", 0)]);
        assert_eq!(between(&history, 5, 10, &NOTHING), [0]);
        assert_eq!(between(&history, 5, 11, &NOTHING), [0, 1]);
        assert_eq!(between(&history, 12, 30, &NOTHING), [1, 2]);
        assert_eq!(between(&history, 30, 50, &NOTHING), [2, 0]);
    }

    #[test]
    fn the_last_valid_version_stays_in_force() {
        let invalid = 3;
        let history = history_of_rules(&[
            (10, "a", 1),
            (20, "a", 2),
            (30, "a", invalid),
            (40, "a", 0),
            (50, "b", invalid),
            (60, "b", 1),
        ]);
        assert_eq!(between(&history, 30, 40, &NOTHING), [2]);
        assert_eq!(between(&history, 50, 60, &NOTHING), [invalid], "no valid version of this object");
        let started = Missed { all_before: &|_| true, ..NOTHING };
        assert_eq!(between(&history, 30, 40, &started), [2, invalid]);
        let lagging = Missed { version: &|begin, end| end - begin < Duration::from_secs(15), ..NOTHING };
        assert_eq!(between(&history, 30, 40, &lagging), [2, 1, invalid], "both versions were short");
    }

    #[test]
    fn after_a_gap_any_version_may_be_the_last_valid_one() {
        let mut history = history_of_rules(&[(10, "a", 1)]);
        let mut rule = rules::written(3);
        rule["metadata"] = json!({ "name": rules::NAME, "uid": "a", "generation": 3 });
        history.note_rule(20, Instant::now(), Some(Rc::new(Object::new(rule))));
        let all = between(&history, 20, 30, &NOTHING);
        assert!([1, 2].iter().all(|choice| all.contains(choice)), "{all:?}");
    }
}
