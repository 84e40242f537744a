//! Rate limits, retries and backoff of the outbox.

use rstest::rstest;

use super::*;
use crate::{
    effect::Part,
    id::{GroupKind, NamespacedName, ObjectKey},
};
use Urgency::{MessageOnly, StateChange, Transition};

struct Scenario {
    outbox: Outbox,
    now: Timestamp,
}

fn slot(name: &str) -> Slot {
    let object = ObjectKey {
        cluster: Cluster::hub(),
        kind: GroupKind::bellwether("Application"),
        name: NamespacedName::new("shop", name),
    };
    Slot { object, part: Part::Status }
}

impl Scenario {
    fn begin() -> Self {
        let mut outbox = Outbox::new(2);
        outbox.set_leading(true);
        Self { outbox, now: "2026-11-14T10:00:00Z".parse().expect("a time") }
    }

    fn after(&mut self, milliseconds: i64) -> &mut Self {
        self.now += SignedDuration::from_millis(milliseconds);
        self
    }

    fn set_clock(&mut self, milliseconds: i64) -> &mut Self {
        self.outbox.clock_set(SignedDuration::from_millis(milliseconds));
        self.after(milliseconds)
    }

    fn enqueue(&mut self, name: &str, urgency: Urgency) {
        self.outbox.enqueue(self.now, &slot(name), Some(urgency));
    }

    fn take(&mut self) -> Vec<(Slot, Write)> {
        self.outbox.take(self.now, |_| Some(Write::Delete { uid: "1".into() }))
    }

    /// How many slots it renders, if none needs a change.
    fn renders(&mut self) -> usize {
        let mut renders = 0;
        self.outbox.take(self.now, |_| {
            renders += 1;
            None
        });
        renders
    }

    fn done(&mut self, slot: &Slot, outcome: &Outcome) {
        self.outbox.done(self.now, slot, outcome, None);
    }

    fn written(&mut self) -> usize {
        let taken = self.take();
        for (slot, _) in &taken {
            self.done(slot, &Outcome::Written(None));
        }
        taken.len()
    }
}

#[test]
fn the_first_write_is_immediate_and_message_changes_wait() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", MessageOnly);
    assert_eq!(scenario.written(), 1);
    scenario.enqueue("web", MessageOnly);
    assert_eq!(scenario.after(500).written(), 0);
    assert_eq!(scenario.after(500).written(), 1);
    assert_eq!(scenario.after(5000).written(), 0, "nothing is written twice");
}

#[test]
fn a_transition_does_not_wait() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", MessageOnly);
    assert_eq!(scenario.written(), 1);
    scenario.after(10).enqueue("web", Transition);
    assert_eq!(scenario.written(), 1);
}

/// Nested groups quote each other: while the messages change every second, none of them waits for its state.
#[test]
fn a_transition_does_not_wait_for_messages_that_keep_changing() {
    let mut scenario = Scenario::begin();
    for _ in 0..5 {
        scenario.after(1).enqueue("web", Transition);
        assert_eq!(scenario.written(), 1);
    }
    for _ in 0..10 {
        scenario.after(1000).enqueue("web", MessageOnly);
        assert_eq!(scenario.written(), 1);
    }
    scenario.after(1).enqueue("web", Transition);
    assert_eq!(scenario.written(), 1);
}

/// There is room for two writes at a time.
#[test]
fn what_is_more_urgent_passes() {
    let mut scenario = Scenario::begin();
    for name in ["a", "b", "c"] {
        scenario.enqueue(name, MessageOnly);
    }
    scenario.after(1).enqueue("y", Transition);
    scenario.after(1).enqueue("z", StateChange);
    let first: Vec<_> = scenario.take().into_iter().map(|(slot, _)| slot.object.name.name).collect();
    assert_eq!(first.iter().map(|name| &**name).collect::<Vec<_>>(), ["z", "y"]);
}

#[test]
fn ten_thousand_changes_in_ten_seconds_are_few_writes() {
    for (urgencies, most) in [
        ([MessageOnly, MessageOnly], 11),
        ([Transition, Transition], 16),
        // In each second a message, and a transition that does not wait for it.
        ([MessageOnly, Transition], 26),
    ] {
        let mut scenario = Scenario::begin();
        let mut writes = 0;
        for urgency in urgencies.into_iter().cycle().take(10_000) {
            scenario.after(1).enqueue("web", urgency);
            writes += scenario.written();
        }
        writes += scenario.after(1000).written();
        assert!(writes <= most, "{writes} writes");
        assert_eq!(scenario.outbox.depth(), (0, 0), "the last one is among them");
    }
}

#[test]
fn a_withdrawn_slot_is_not_written() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", Transition);
    scenario.outbox.enqueue(scenario.now, &slot("web"), None);
    assert_eq!(scenario.written(), 0);
}

#[test]
fn a_slot_without_a_change_is_not_written() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", Transition);
    assert_eq!(scenario.renders(), 1);
    assert_eq!((scenario.outbox.depth(), scenario.outbox.next()), ((0, 0), None));
    scenario.enqueue("web", Transition);
    assert_eq!(scenario.written(), 1, "and the next transition is written at once");
}

#[test]
fn a_failed_write_keeps_its_urgency() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", Transition);
    let (slot, _) = scenario.take().remove(0);
    scenario.enqueue("web", MessageOnly);
    scenario.done(&slot, &Outcome::Failed("no answer".into()));
    assert_eq!(scenario.after(100).written(), 1);
}

#[test]
fn writes_in_flight_are_limited() {
    let mut scenario = Scenario::begin();
    for name in ["a", "b", "c"] {
        scenario.enqueue(name, Transition);
    }
    let taken = scenario.take();
    assert_eq!(taken.len(), 2);
    assert!(scenario.take().is_empty());
    assert_eq!(scenario.outbox.next(), None, "nothing to wait for");
    let (slot, _) = &taken[0];
    scenario.done(slot, &Outcome::Written(None));
    assert_eq!(scenario.take().len(), 1);
}

#[test]
fn a_standby_replica_writes_nothing() {
    let mut scenario = Scenario::begin();
    scenario.outbox.set_leading(false);
    scenario.enqueue("web", Transition);
    assert_eq!(scenario.written(), 0);
    assert_eq!(scenario.outbox.next(), None);
    scenario.outbox.set_leading(true);
    assert_eq!(scenario.written(), 1);
}

#[test]
fn failed_writes_are_retried_with_backoff() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", Transition);
    let mut waits = Vec::new();
    for _ in 0..12 {
        let taken = scenario.take();
        let (slot, _) = &taken[0];
        scenario.done(slot, &Outcome::Failed("no answer".into()));
        let next = scenario.outbox.next().expect("a retry is scheduled");
        waits.push(next.duration_since(scenario.now).as_millis());
        scenario.now = next;
    }
    assert!(
        waits.iter().enumerate().all(|(n, wait)| {
            let longest = (100 << n).min(30_000);
            (longest / 2..=longest).contains(wait)
        }),
        "{waits:?}"
    );
    assert_eq!(scenario.written(), 1, "and succeeds in the end");
}

#[test]
fn retry_after_is_honoured() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", Transition);
    let (slot, _) = scenario.take().remove(0);
    let patience = SignedDuration::from_secs(7);
    scenario.outbox.done(scenario.now, &slot, &Outcome::Failed("too many".into()), Some(patience));
    assert_eq!(scenario.outbox.next(), Some(scenario.now + patience));
}

#[test]
fn a_refused_write_waits_even_if_requested_again() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", Transition);
    let (slot, _) = scenario.take().remove(0);
    scenario.done(&slot, &Outcome::Rejected("no right".into()));
    assert!(
        scenario.outbox.next().expect("a retry is scheduled") >= scenario.now + SignedDuration::from_secs(1)
    );
    scenario.enqueue("web", Transition);
    assert_eq!(scenario.written(), 0, "RBAC may still deny it");
}

/// Like an API server that comes back and has not loaded its RBAC rules yet.
#[test]
fn failures_and_refusals_have_separate_backoffs() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", Transition);
    for _ in 0..8 {
        let (slot, _) = scenario.take().remove(0);
        scenario.done(&slot, &Outcome::Failed("no answer".into()));
        scenario.now = scenario.outbox.next().expect("a retry is scheduled");
    }
    let (slot, _) = scenario.take().remove(0);
    scenario.done(&slot, &Outcome::Rejected("no right".into()));
    let next = scenario.outbox.next().expect("a retry is scheduled");
    assert!(next <= scenario.now + SignedDuration::from_secs(2), "{next}");
    scenario.now = next;
    let (slot, _) = scenario.take().remove(0);
    scenario.done(&slot, &Outcome::Failed("no answer".into()));
    let next = scenario.outbox.next().expect("a retry is scheduled");
    assert!(next <= scenario.now + SignedDuration::from_millis(100), "nor the other way round: {next}");
}

#[test]
fn a_conflict_waits_for_the_engine() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", Transition);
    let (slot, _) = scenario.take().remove(0);
    scenario.done(&slot, &Outcome::Conflict);
    assert_eq!(scenario.outbox.next(), None);
}

#[test]
fn idle_slots_are_forgotten() {
    let mut scenario = Scenario::begin();
    for number in 0..100 {
        scenario.enqueue(&number.to_string(), Transition);
        scenario.written();
    }
    scenario.after(11_000).written();
    assert!(scenario.outbox.entries.is_empty() && scenario.outbox.idle.is_empty());
}

#[test]
fn message_changes_are_not_rendered_more_than_once_a_second() {
    let mut scenario = Scenario::begin();
    let mut renders = 0;
    for _ in 0..10_000 {
        scenario.after(1).enqueue("web", MessageOnly);
        renders += scenario.renders();
        assert!(scenario.outbox.idle.len() <= 12, "{}", scenario.outbox.idle.len());
    }
    assert!(renders <= 11, "{renders} renders in ten seconds");
}

#[test]
fn a_new_leader_renders_in_batches() {
    let mut scenario = Scenario::begin();
    scenario.outbox.set_leading(false);
    for number in 0..1000 {
        scenario.enqueue(&number.to_string(), Transition);
    }
    scenario.outbox.set_leading(true);
    let first = scenario.renders();
    assert!((1..=100).contains(&first), "{first} renders at a time");
    assert!(scenario.outbox.next().is_some_and(|next| next <= scenario.now), "and continues at once");
    let rest: usize = (0..1000).map(|_| scenario.renders()).sum();
    assert_eq!((first + rest, scenario.outbox.next()), (1000, None));
}

#[test]
fn a_404_is_retried() {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", Transition);
    let (slot, _) = scenario.take().remove(0);
    scenario.done(&slot, &Outcome::NotFound);
    assert_eq!(scenario.after(100).written(), 1, "another API server may know the object");
}

#[rstest]
#[case::back(-3_600_000)]
#[case::forward(3_600_000)]
fn a_clock_that_was_set_changes_no_delay(#[case] by: i64) {
    let mut scenario = Scenario::begin();
    scenario.enqueue("web", MessageOnly);
    assert_eq!(scenario.written(), 1);
    scenario.set_clock(by).enqueue("web", MessageOnly);
    assert_eq!(scenario.after(500).written(), 0, "message changes still wait for a second");
    assert_eq!(scenario.after(500).written(), 1);

    scenario.enqueue("late", Transition);
    assert_eq!(scenario.set_clock(by).written(), 1);

    scenario.enqueue("web", Transition);
    let (slot, _) = scenario.take().remove(0);
    scenario.done(&slot, &Outcome::Failed("no answer".into()));
    assert_eq!(scenario.set_clock(by).written(), 0);
    assert_eq!(scenario.after(100).written(), 1);
    assert_eq!(scenario.after(11_000).written(), 0);
    assert!(scenario.outbox.entries.is_empty() && scenario.outbox.idle.is_empty());
}
