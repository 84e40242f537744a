//! Rate limits, retries and backoff of the outbox.

use rstest::rstest;

use super::*;
use crate::{
    effect::Part,
    id::{GroupKind, NamespacedName, ObjectKey},
};
use Urgency::{MessageOnly, Transition};

struct Story {
    outbox: Outbox,
    now: Timestamp,
}

fn slot(name: &str) -> Slot {
    let object = ObjectKey {
        cluster: Cluster::hub(),
        kind: GroupKind::own("Application"),
        name: NamespacedName::new("shop", name),
    };
    Slot { object, part: Part::Status }
}

impl Story {
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

    fn want(&mut self, name: &str, urgency: Urgency) {
        self.outbox.want(self.now, &slot(name), Some(urgency));
    }

    fn take(&mut self) -> Vec<(Slot, Change)> {
        self.outbox.take(self.now, |_| Some(Change::Delete { uid: "1".into() }))
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
            self.done(slot, &Outcome::Done(None));
        }
        taken.len()
    }
}

#[test]
fn the_first_is_written_at_once_and_words_wait_a_second() {
    let mut story = Story::begin();
    story.want("web", MessageOnly);
    assert_eq!(story.written(), 1);
    story.want("web", MessageOnly);
    assert_eq!(story.after(500).written(), 0);
    assert_eq!(story.after(500).written(), 1);
    assert_eq!(story.after(5000).written(), 0, "nothing is written twice");
}

#[test]
fn a_turn_does_not_wait_for_words() {
    let mut story = Story::begin();
    story.want("web", MessageOnly);
    assert_eq!(story.written(), 1);
    story.after(10).want("web", Transition);
    assert_eq!(story.written(), 1);
}

#[test]
fn a_burst_of_ten_thousand_changes_in_ten_seconds_is_few_writes() {
    for hastes in [[MessageOnly, MessageOnly], [Transition, Transition], [MessageOnly, Transition]] {
        let mut story = Story::begin();
        let mut writes = 0;
        for urgency in hastes.into_iter().cycle().take(10_000) {
            story.after(1).want("web", urgency);
            writes += story.written();
        }
        writes += story.after(1000).written();
        assert!(writes <= 16, "{writes} writes");
        assert_eq!(story.outbox.depth(), (0, 0), "the last one is among them");
    }
}

#[test]
fn what_is_no_longer_wanted_is_not_written() {
    let mut story = Story::begin();
    story.want("web", Transition);
    story.outbox.want(story.now, &slot("web"), None);
    assert_eq!(story.written(), 0);
}

#[test]
fn what_turns_out_to_be_so_already_is_not_written() {
    let mut story = Story::begin();
    story.want("web", Transition);
    assert_eq!(story.renders(), 1);
    assert_eq!((story.outbox.depth(), story.outbox.next()), ((0, 0), None));
    story.want("web", Transition);
    assert_eq!(story.written(), 1, "and the next turn is written at once");
}

#[test]
fn what_fails_is_as_urgent_as_it_was() {
    let mut story = Story::begin();
    story.want("web", Transition);
    let (slot, _) = story.take().remove(0);
    story.want("web", MessageOnly);
    story.done(&slot, &Outcome::Failed("no answer".into()));
    assert_eq!(story.after(100).written(), 1);
}

#[test]
fn no_more_than_so_many_are_under_way() {
    let mut story = Story::begin();
    for name in ["a", "b", "c"] {
        story.want(name, Transition);
    }
    let taken = story.take();
    assert_eq!(taken.len(), 2);
    assert!(story.take().is_empty());
    assert_eq!(story.outbox.next(), None, "nothing to wake up for");
    let (slot, _) = &taken[0];
    story.done(slot, &Outcome::Done(None));
    assert_eq!(story.take().len(), 1);
}

#[test]
fn nothing_is_written_by_one_that_does_not_lead() {
    let mut story = Story::begin();
    story.outbox.set_leading(false);
    story.want("web", Transition);
    assert_eq!(story.written(), 0);
    assert_eq!(story.outbox.next(), None);
    story.outbox.set_leading(true);
    assert_eq!(story.written(), 1);
}

#[test]
fn what_fails_is_tried_again_later_and_later() {
    let mut story = Story::begin();
    story.want("web", Transition);
    let mut waits = Vec::new();
    for _ in 0..12 {
        let taken = story.take();
        let (slot, _) = &taken[0];
        story.done(slot, &Outcome::Failed("no answer".into()));
        let next = story.outbox.next().expect("it is tried again");
        waits.push(next.duration_since(story.now).as_millis());
        story.now = next;
    }
    assert!(
        waits.iter().enumerate().all(|(n, wait)| {
            let longest = (100 << n).min(30_000);
            (longest / 2..=longest).contains(wait)
        }),
        "{waits:?}"
    );
    assert_eq!(story.written(), 1, "and is written in the end");
}

#[test]
fn the_server_may_ask_for_patience() {
    let mut story = Story::begin();
    story.want("web", Transition);
    let (slot, _) = story.take().remove(0);
    let patience = SignedDuration::from_secs(7);
    story.outbox.done(story.now, &slot, &Outcome::Failed("too many".into()), Some(patience));
    assert_eq!(story.outbox.next(), Some(story.now + patience));
}

#[test]
fn what_is_refused_waits_whatever_is_wanted_by_then() {
    let mut story = Story::begin();
    story.want("web", Transition);
    let (slot, _) = story.take().remove(0);
    story.done(&slot, &Outcome::Refused("no right".into()));
    assert!(story.outbox.next().expect("it is tried again") >= story.now + SignedDuration::from_secs(1));
    story.want("web", Transition);
    assert_eq!(story.written(), 0, "the same right may be missing still");
}

/// Like an API server that comes back and has not loaded its RBAC rules yet.
#[test]
fn what_is_refused_after_failures_waits_no_longer_for_them() {
    let mut story = Story::begin();
    story.want("web", Transition);
    for _ in 0..8 {
        let (slot, _) = story.take().remove(0);
        story.done(&slot, &Outcome::Failed("no answer".into()));
        story.now = story.outbox.next().expect("it is tried again");
    }
    let (slot, _) = story.take().remove(0);
    story.done(&slot, &Outcome::Refused("no right".into()));
    let next = story.outbox.next().expect("it is tried again");
    assert!(next <= story.now + SignedDuration::from_secs(2), "{next}");
    story.now = next;
    let (slot, _) = story.take().remove(0);
    story.done(&slot, &Outcome::Failed("no answer".into()));
    let next = story.outbox.next().expect("it is tried again");
    assert!(next <= story.now + SignedDuration::from_millis(100), "nor the other way round: {next}");
}

#[test]
fn a_conflict_waits_for_the_engine() {
    let mut story = Story::begin();
    story.want("web", Transition);
    let (slot, _) = story.take().remove(0);
    story.done(&slot, &Outcome::Conflict);
    assert_eq!(story.outbox.next(), None);
}

#[test]
fn what_has_been_quiet_for_long_is_forgotten() {
    let mut story = Story::begin();
    for number in 0..100 {
        story.want(&number.to_string(), Transition);
        story.written();
    }
    story.after(11_000).written();
    assert!(story.outbox.entries.is_empty() && story.outbox.idle.is_empty());
}

#[test]
fn words_are_not_looked_for_all_the_time() {
    let mut story = Story::begin();
    let mut renders = 0;
    for _ in 0..10_000 {
        story.after(1).want("web", MessageOnly);
        renders += story.renders();
        assert!(story.outbox.idle.len() <= 12, "{}", story.outbox.idle.len());
    }
    assert!(renders <= 11, "{renders} looks in ten seconds");
}

#[test]
fn one_who_takes_over_does_not_look_at_everything_at_once() {
    let mut story = Story::begin();
    story.outbox.set_leading(false);
    for number in 0..1000 {
        story.want(&number.to_string(), Transition);
    }
    story.outbox.set_leading(true);
    let first = story.renders();
    assert!((1..=100).contains(&first), "{first} looks at a time");
    assert!(story.outbox.next().is_some_and(|next| next <= story.now), "and goes on at once");
    let rest: usize = (0..1000).map(|_| story.renders()).sum();
    assert_eq!((first + rest, story.outbox.next()), (1000, None));
}

#[test]
fn what_is_not_found_is_looked_at_again() {
    let mut story = Story::begin();
    story.want("web", Transition);
    let (slot, _) = story.take().remove(0);
    story.done(&slot, &Outcome::Absent);
    assert_eq!(story.after(100).written(), 1, "a server may not know the kind yet");
}

#[rstest]
#[case::back(-3_600_000)]
#[case::forward(3_600_000)]
fn a_clock_that_is_set_holds_nothing_up_and_hastens_nothing(#[case] by: i64) {
    let mut story = Story::begin();
    story.want("web", MessageOnly);
    assert_eq!(story.written(), 1);
    story.set_clock(by).want("web", MessageOnly);
    assert_eq!(story.after(500).written(), 0, "words wait for a second still");
    assert_eq!(story.after(500).written(), 1);

    story.want("late", Transition);
    assert_eq!(story.set_clock(by).written(), 1);

    story.want("web", Transition);
    let (slot, _) = story.take().remove(0);
    story.done(&slot, &Outcome::Failed("no answer".into()));
    assert_eq!(story.set_clock(by).written(), 0);
    assert_eq!(story.after(100).written(), 1);
    assert_eq!(story.after(11_000).written(), 0);
    assert!(story.outbox.entries.is_empty() && story.outbox.idle.is_empty());
}
