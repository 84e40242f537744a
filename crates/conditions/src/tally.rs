//! Counts sources by class as they come, change and go.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use bellwether_model::ConditionStatus;
use jiff::Timestamp;

use crate::policy::{Class, Policy};

/// How many sources are in each class, which ones, and since when.
///
/// Keys sort in the order in which messages name sources: an [`Identity`](crate::Identity), or a handle that
/// sorts like one. The tally stores no text: the caller looks it up for the few keys that a message needs.
/// Every operation except iterating over keys takes at most logarithmic time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally<K> {
    /// By class. Each key is in one of them.
    classes: [ClassEntries<K>; 3],
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ClassEntries<K> {
    keys: BTreeMap<K, Option<Timestamp>>,
    /// The keys with a time. The last one is the latest; of several with that time, the first by key.
    times: BTreeSet<(Timestamp, Reverse<K>)>,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self { classes: [(); 3].map(|()| ClassEntries { keys: BTreeMap::new(), times: BTreeSet::new() }) }
    }
}

impl<K: Ord + Clone> Tally<K> {
    /// Without sources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or moves a source, with the time since when it is in the class, if known. Returns its previous
    /// class.
    pub fn set(&mut self, key: K, class: Class, since: Option<Timestamp>) -> Option<Class> {
        let before = self.remove(&key);
        let entries = &mut self.classes[class as usize];
        if let Some(since) = since {
            entries.times.insert((since, Reverse(key.clone())));
        }
        entries.keys.insert(key, since);
        before
    }

    /// Removes a source. Returns its previous class.
    pub fn remove(&mut self, key: &K) -> Option<Class> {
        for class in Class::ALL {
            let entries = &mut self.classes[class as usize];
            if let Some((key, since)) = entries.keys.remove_entry(key) {
                if let Some(since) = since {
                    entries.times.remove(&(since, Reverse(key)));
                }
                return Some(class);
            }
        }
        None
    }

    /// The number of sources in a class.
    pub fn count(&self, class: Class) -> usize {
        self.entries(class).keys.len()
    }

    /// The number of sources.
    pub fn len(&self) -> usize {
        self.classes.iter().map(|entries| entries.keys.len()).sum()
    }

    /// True without sources.
    pub fn is_empty(&self) -> bool {
        self.worst().is_none()
    }

    /// The worst class that has a source. It decides.
    pub fn worst(&self) -> Option<Class> {
        Class::ALL.into_iter().find(|class| self.count(*class) > 0)
    }

    /// The status of the merged condition.
    pub fn status(&self, policy: &Policy) -> ConditionStatus {
        self.worst().map_or(policy.empty.status, |class| policy.status(class))
    }

    /// The sources of a class, in key order.
    pub fn keys(&self, class: Class) -> impl Iterator<Item = &K> {
        self.entries(class).keys.keys()
    }

    /// The source of a class with the latest time; the first by key if several tie. A source without a time
    /// sorts before all others.
    pub fn latest(&self, class: Class) -> Option<&K> {
        let entries = self.entries(class);
        let latest = entries.times.last().map(|(_, Reverse(key))| key);
        latest.or_else(|| entries.keys.keys().next())
    }

    /// The earliest time in a class; `None` if any of its sources has no time.
    pub fn since(&self, class: Class) -> Option<Timestamp> {
        let entries = self.entries(class);
        let (earliest, _) = entries.times.first().filter(|_| entries.times.len() == entries.keys.len())?;
        Some(*earliest)
    }

    fn entries(&self, class: Class) -> &ClassEntries<K> {
        &self.classes[class as usize]
    }
}

#[cfg(test)]
mod tests {
    use ConditionStatus::{False, True, Unknown};
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::policy::Polarity;

    type Entry = (u8, Class, Option<i64>);

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn tally(entries: &[Entry]) -> Tally<u8> {
        let mut tally = Tally::new();
        for (key, class, since) in entries {
            tally.set(*key, *class, since.map(time));
        }
        tally
    }

    #[rstest]
    #[case::empty(&[], Unknown, Unknown)]
    #[case::fine(&[Class::Fine], True, False)]
    #[case::unknown(&[Class::Unknown], Unknown, Unknown)]
    #[case::issue(&[Class::Issue], False, True)]
    #[case::fine_fine(&[Class::Fine, Class::Fine], True, False)]
    #[case::fine_unknown(&[Class::Fine, Class::Unknown], Unknown, Unknown)]
    #[case::fine_issue(&[Class::Fine, Class::Issue], False, True)]
    #[case::unknown_unknown(&[Class::Unknown, Class::Unknown], Unknown, Unknown)]
    #[case::unknown_issue(&[Class::Unknown, Class::Issue], False, True)]
    #[case::issue_issue(&[Class::Issue, Class::Issue], False, True)]
    #[case::all(&[Class::Fine, Class::Unknown, Class::Issue], False, True)]
    fn three_values(
        #[case] classes: &[Class],
        #[case] positive: ConditionStatus,
        #[case] negative: ConditionStatus,
    ) {
        let entries: Vec<_> = (0..).zip(classes).map(|(key, class)| (key, *class, None)).collect();
        for (polarity, status) in [(Polarity::Positive, positive), (Polarity::Negative, negative)] {
            let policy = Policy { polarity, ..Policy::new("T") };
            assert_eq!(tally(&entries).status(&policy), status);
        }
    }

    #[rstest]
    #[case::issues_decide(&[(3, Class::Issue, None), (1, Class::Fine, None), (2, Class::Issue, None), (0, Class::Unknown, None)], &[2, 3])]
    #[case::else_unknown(&[(3, Class::Unknown, None), (1, Class::Fine, None), (2, Class::Unknown, None)], &[2, 3])]
    #[case::else_all(&[(3, Class::Fine, None), (1, Class::Fine, None)], &[1, 3])]
    #[case::no_sources(&[], &[])]
    fn the_worst_decide(#[case] entries: &[Entry], #[case] deciding: &[u8]) {
        let tally = tally(entries);
        assert!(tally.worst().into_iter().flat_map(|class| tally.keys(class)).eq(deciding));
    }

    #[rstest]
    #[case::latest(&[(1, Class::Issue, Some(5)), (2, Class::Issue, Some(7)), (3, Class::Issue, Some(6))], Some(2), Some(5))]
    #[case::ties_by_key(&[(3, Class::Issue, Some(7)), (2, Class::Issue, Some(7)), (1, Class::Issue, Some(6))], Some(2), Some(6))]
    #[case::one_without_a_time(&[(1, Class::Issue, None), (2, Class::Issue, Some(7))], Some(2), None)]
    #[case::no_source_has_a_time(&[(2, Class::Issue, None), (1, Class::Issue, None)], Some(1), None)]
    #[case::others_do_not_count(&[(1, Class::Issue, Some(5)), (2, Class::Fine, Some(9)), (3, Class::Fine, None)], Some(1), Some(5))]
    #[case::no_sources(&[], None, None)]
    fn times(#[case] entries: &[Entry], #[case] latest: Option<u8>, #[case] since: Option<i64>) {
        let tally = tally(entries);
        assert_eq!(tally.latest(Class::Issue).copied(), latest);
        assert_eq!(tally.since(Class::Issue), since.map(time));
    }

    #[test]
    fn changes_return_the_previous_class() {
        let mut tally = Tally::new();
        assert_eq!(tally.set("a", Class::Fine, None), None);
        assert_eq!(tally.set("a", Class::Issue, Some(time(1))), Some(Class::Fine));
        assert_eq!(tally.remove(&"a"), Some(Class::Issue));
        assert_eq!(tally.remove(&"a"), None);
        assert_eq!(tally, Tally::new());
    }

    fn class() -> impl Strategy<Value = Class> {
        prop::sample::select(Class::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn the_order_of_changes_does_not_matter(
            steps in prop::collection::vec((0_u8..8, prop::option::weighted(0.8, (class(), prop::option::of(0_i64..4)))), 0..60),
        ) {
            let (mut incremental, mut present) = (Tally::new(), BTreeMap::new());
            for (key, entry) in steps {
                if let Some((class, since)) = entry {
                    incremental.set(key, class, since.map(time));
                    present.insert(key, (class, since));
                } else {
                    incremental.remove(&key);
                    present.remove(&key);
                }
            }
            // Built from scratch, in reverse order.
            let entries: Vec<Entry> = present.iter().rev().map(|(key, (class, since))| (*key, *class, *since)).collect();
            prop_assert_eq!(&incremental, &tally(&entries));
            prop_assert_eq!(incremental.len(), present.len());

            // Compared with a linear scan.
            let worst = entries.iter().map(|(_, class, _)| *class).min();
            prop_assert_eq!(incremental.worst(), worst);
            for class in Class::ALL {
                let of_class = || entries.iter().filter(|entry| entry.1 == class);
                prop_assert_eq!(incremental.count(class), of_class().count());
                let latest = of_class().max_by_key(|(key, _, since)| (*since, Reverse(*key))).map(|entry| entry.0);
                prop_assert_eq!(incremental.latest(class).copied(), latest);
                let since = of_class().map(|entry| entry.2).min().flatten();
                prop_assert_eq!(incremental.since(class), since.map(time));
            }
        }
    }
}
