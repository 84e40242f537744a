//! Damping: a condition turns bad only after the issue has lasted for a while.

use std::time::Duration;

use bellwether_model::ConditionStatus;
use jiff::Timestamp;

use crate::{
    policy::{Class, Policy},
    tally::Tally,
};

/// Which class decides now, and when that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damped {
    /// The class that decides, for [`merge_as`](crate::merge_as); `None` without sources.
    pub class: Option<Class>,
    /// If an issue is held back: when it starts to decide, unless a source changes before.
    pub until: Option<Timestamp>,
    /// When time alone changes the result, as long as the stored status stays the same.
    pub next: Option<Timestamp>,
}

impl Damped {
    /// A class that decides now, and that time does not change.
    pub fn immediate(class: Option<Class>) -> Self {
        Self { class, until: None, next: None }
    }
}

/// Holds back issues until one of them has lasted for `hold`. A return to good, or to Unknown, is published
/// at once.
///
/// The sources' own transition times say how long an issue has lasted, and the stored status says what was
/// published before. Nothing is kept in memory, so a restart changes nothing. While an issue is held back,
/// the remaining sources decide, but the status never improves: Unknown stays Unknown.
///
/// An issue is not held back if no status is stored, because then nothing flips; if the stored status is bad
/// already; if a source has no transition time; or if its time is ahead of `now` by more than `hold`, because
/// a clock that wrong must not hide an outage.
pub fn damp<K: Ord + Clone>(
    policy: &Policy,
    tally: &Tally<K>,
    stored: Option<ConditionStatus>,
    hold: Duration,
    now: Timestamp,
) -> Damped {
    let worst = tally.worst();
    let immediate = Damped::immediate(worst);
    let (Some(Class::Issue), Some(stored)) = (worst, stored) else { return immediate };
    let before = policy.class_of(stored);
    let Some(since) = tally.since(Class::Issue) else { return immediate };
    let until = after(since, hold);
    if before == Class::Issue || until <= now {
        return immediate;
    }
    if since > after(now, hold) {
        return Damped { next: since.checked_sub(hold).ok(), ..immediate };
    }
    let rest = if tally.count(Class::Unknown) > 0 { Class::Unknown } else { Class::Fine };
    Damped { class: Some(before.min(rest)), until: Some(until), next: Some(until) }
}

fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use ConditionStatus::{False, True, Unknown};
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::policy::Polarity;

    const NOW: i64 = 1000;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn tally(entries: &[(Class, Option<i64>)]) -> Tally<usize> {
        let mut tally = Tally::new();
        for (key, (class, since)) in entries.iter().enumerate() {
            tally.set(key, *class, since.map(time));
        }
        tally
    }

    #[rstest]
    #[case::young(&[(Class::Issue, Some(950))], Some(True), Some(Class::Fine), Some(1050))]
    #[case::old(&[(Class::Issue, Some(800))], Some(True), Some(Class::Issue), None)]
    #[case::exactly_old_enough(&[(Class::Issue, Some(900))], Some(True), Some(Class::Issue), None)]
    #[case::one_is_old(&[(Class::Issue, Some(950)), (Class::Issue, Some(800))], Some(True), Some(Class::Issue), None)]
    #[case::the_oldest_ends_the_hold(&[(Class::Issue, Some(990)), (Class::Issue, Some(950))], Some(True), Some(Class::Fine), Some(1050))]
    #[case::issue_is_stored(&[(Class::Issue, Some(950))], Some(False), Some(Class::Issue), None)]
    #[case::nothing_is_stored(&[(Class::Issue, Some(950))], None, Some(Class::Issue), None)]
    #[case::one_without_a_time(&[(Class::Issue, Some(950)), (Class::Issue, None)], Some(True), Some(Class::Issue), None)]
    #[case::clock_a_little_ahead(&[(Class::Issue, Some(1005))], Some(True), Some(Class::Fine), Some(1105))]
    #[case::clock_far_ahead(&[(Class::Issue, Some(1101))], Some(True), Some(Class::Issue), None)]
    #[case::unknown_is_not_held(&[(Class::Unknown, Some(999))], Some(True), Some(Class::Unknown), None)]
    #[case::unknown_beside(&[(Class::Issue, Some(950)), (Class::Unknown, None)], Some(True), Some(Class::Unknown), Some(1050))]
    #[case::unknown_before(&[(Class::Issue, Some(950)), (Class::Fine, None)], Some(Unknown), Some(Class::Unknown), Some(1050))]
    #[case::recovery(&[(Class::Fine, Some(999))], Some(False), Some(Class::Fine), None)]
    #[case::half_recovery(&[(Class::Unknown, Some(999))], Some(False), Some(Class::Unknown), None)]
    #[case::no_sources(&[], Some(True), None, None)]
    fn held_or_not(
        #[case] entries: &[(Class, Option<i64>)],
        #[case] stored: Option<ConditionStatus>,
        #[case] class: Option<Class>,
        #[case] until: Option<i64>,
    ) {
        let until = until.map(time);
        let hold = Duration::from_secs(100);
        let positive = damp(&Policy::new("Ready"), &tally(entries), stored, hold, time(NOW));
        assert_eq!((positive.class, positive.until), (class, until));

        let policy = Policy { polarity: Polarity::Negative, ..Policy::new("Degraded") };
        let mirrored = stored.map(|status| match status {
            True => False,
            False => True,
            Unknown => Unknown,
        });
        assert_eq!(damp(&policy, &tally(entries), mirrored, hold, time(NOW)), positive);
    }

    #[test]
    fn a_hold_of_zero_delays_nothing() {
        let damped = damp(
            &Policy::new("Ready"),
            &tally(&[(Class::Issue, Some(NOW))]),
            Some(True),
            Duration::ZERO,
            time(NOW),
        );
        assert_eq!(damped, Damped::immediate(Some(Class::Issue)));
    }

    #[test]
    fn a_hold_may_be_as_long_as_a_duration_can_be() {
        let damped = damp(
            &Policy::new("Ready"),
            &tally(&[(Class::Issue, Some(NOW))]),
            Some(True),
            Duration::MAX,
            time(NOW),
        );
        assert_eq!(damped.until, Some(Timestamp::MAX));
    }

    /// Sources of any class, with transition times before `end`.
    fn entries(end: i64) -> impl Strategy<Value = Vec<(Class, Option<i64>)>> {
        let class = prop::sample::select(Class::ALL.to_vec());
        prop::collection::vec((class, prop::option::weighted(0.9, 800..end)), 1..5)
    }

    proptest! {
        /// Evaluated second by second, with each result stored: the class only gets worse, ends as the worst
        /// class, and changes exactly at `until`.
        #[test]
        fn with_every_status_stored_the_class_only_gets_worse(
            entries in entries(NOW + 200),
            stored in prop::sample::select(vec![True, False, Unknown]),
            hold in 0_u64..150,
        ) {
            let (policy, tally) = (Policy::new("Ready"), tally(&entries));
            let evaluate = |stored, now| damp(&policy, &tally, Some(stored), Duration::from_secs(hold), time(now));
            let mut last = evaluate(stored, NOW);
            for now in NOW..NOW + 500 {
                let damped = evaluate(last.class.map_or(Unknown, |class| policy.status(class)), now);
                prop_assert!(damped.class <= last.class, "better at {now}: {damped:?} after {last:?}");
                if let Some(until) = damped.until {
                    prop_assert!(time(now) < until && damped.class == last.class);
                }
                if damped.class != last.class {
                    prop_assert_eq!(last.until, Some(time(now)));
                }
                last = damped;
            }
            prop_assert_eq!(last, Damped::immediate(tally.worst()));
        }

        /// Evaluated second by second, with the stored status fixed: the result changes exactly at `next`.
        #[test]
        fn with_nothing_stored_the_class_changes_at_next(
            entries in entries(NOW + 400),
            stored in prop::sample::select(vec![True, False, Unknown]),
            hold in 0_u64..150,
        ) {
            let (policy, tally) = (Policy::new("Ready"), tally(&entries));
            let evaluate = |now| damp(&policy, &tally, Some(stored), Duration::from_secs(hold), time(now));
            let mut last = evaluate(NOW);
            for now in NOW..NOW + 700 {
                let damped = evaluate(now);
                if damped != last {
                    prop_assert_eq!(last.next, Some(time(now)));
                }
                prop_assert!(damped.next.is_none_or(|next| next > time(now)));
                last = damped;
            }
            prop_assert_eq!(last, Damped::immediate(tally.worst()));
        }

        /// Only with transition times before now: the limit for times in the future depends on `hold`.
        #[test]
        fn a_longer_hold_never_ends_sooner(entries in entries(NOW), hold in 0_u64..150, more in 0_u64..100) {
            let (policy, tally) = (Policy::new("Ready"), tally(&entries));
            let evaluate = |hold| damp(&policy, &tally, Some(True), Duration::from_secs(hold), time(NOW));
            prop_assert!(evaluate(hold).class <= evaluate(hold + more).class);
            prop_assert!(evaluate(hold).until <= evaluate(hold + more).until);
        }
    }
}
