//! What is to be written, and when: at once if a status turns, in a while if only words do, later if it went wrong.
//!
//! The outbox writes nothing itself. It is told where something is wanted, asks what when that is due, gives it out, and is
//! told what became of it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    effect::{Change, Haste, Slot},
    event::Outcome,
    id::Cluster,
};

/// An object is written so often at once, if it turns so often, before the next turn has to wait,
const AT_ONCE: u8 = 5;
/// and after so long once more. Words alone wait for so long after what was written last.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// After so long, it is forgotten when something was written last.
const MEMORY: SignedDuration = SignedDuration::from_secs(10);

/// What did not get through is tried again after so long, and then after twice as long, up to the longest.
const AGAIN: (SignedDuration, SignedDuration) =
    (SignedDuration::from_millis(100), SignedDuration::from_secs(30));
/// What was refused is refused again, unless somebody changes something that we cannot see.
const AGAIN_IF_REFUSED: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(30), SignedDuration::from_mins(10));

/// What is to be written.
#[derive(Debug)]
pub struct Outbox {
    entries: HashMap<Slot, Entry>,
    /// What is not under way, by the time at which it is due.
    due: BTreeMap<Cluster, BTreeSet<(Timestamp, Slot)>>,
    /// What can be forgotten, by the time at which it can.
    idle: BTreeSet<(Timestamp, Slot)>,
    under_way: BTreeMap<Cluster, usize>,
    most: usize,
    leading: bool,
}

#[derive(Debug)]
struct Entry {
    wanted: Option<Haste>,
    under_way: Option<Haste>,
    /// When it is due, if it is not under way.
    due: Timestamp,
    /// When the last write began.
    last: Option<Timestamp>,
    /// How often it could still be written at once, as of the last write.
    at_once: u8,
    failures: u32,
    /// Not before that, because of failures.
    not_before: Option<Timestamp>,
}

impl Outbox {
    /// One that gives out at most so many writes at a time for each cluster, and none before it leads.
    pub fn new(most: usize) -> Self {
        Self {
            entries: HashMap::new(),
            due: BTreeMap::new(),
            idle: BTreeSet::new(),
            under_way: BTreeMap::new(),
            most,
            leading: false,
        }
    }

    /// Whether writes are ours to make.
    pub fn lead(&mut self, leading: bool) {
        self.leading = leading;
    }

    /// How much waits to be written, and how much is under way.
    pub fn depth(&self) -> (usize, usize) {
        (self.due.values().map(BTreeSet::len).sum(), self.under_way.values().sum())
    }

    /// From now on something is wanted there, or nothing is.
    pub fn want(&mut self, now: Timestamp, slot: &Slot, haste: Option<Haste>) {
        let Some(entry) = self.entries.get_mut(slot) else {
            if haste.is_some() {
                let entry = Entry {
                    wanted: haste,
                    under_way: None,
                    due: now,
                    last: None,
                    at_once: AT_ONCE,
                    failures: 0,
                    not_before: None,
                };
                self.due.entry(slot.object.cluster.clone()).or_default().insert((now, slot.clone()));
                self.entries.insert(slot.clone(), entry);
            }
            return;
        };
        if entry.wanted == haste {
            return;
        }
        if entry.wanted.is_some()
            && entry.under_way.is_none()
            && let Some(due) = self.due.get_mut(&slot.object.cluster)
        {
            due.remove(&(entry.due, slot.clone()));
        }
        entry.wanted = haste;
        self.schedule(now, slot);
    }

    /// What is due, and from now on under way. `change` says what is wanted in a place by now; where nothing is any more,
    /// nothing is done.
    pub fn take(
        &mut self,
        now: Timestamp,
        mut change: impl FnMut(&Slot) -> Option<Change>,
    ) -> Vec<(Slot, Change)> {
        self.forget(now);
        let mut taken = Vec::new();
        if !self.leading {
            return taken;
        }
        for (cluster, due) in &mut self.due {
            let under_way = self.under_way.entry(cluster.clone()).or_default();
            while *under_way < self.most
                && due.first().is_some_and(|(time, _)| *time <= now)
                && let Some((_, slot)) = due.pop_first()
            {
                let Some(entry) = self.entries.get_mut(&slot) else { continue };
                let Some(haste) = entry.wanted.take() else { continue };
                let Some(change) = change(&slot) else {
                    self.idle.insert((entry.forgotten_at(now), slot));
                    continue;
                };
                *under_way += 1;
                entry.at_once = entry.at_once_by(now).saturating_sub(1);
                entry.last = Some(now);
                entry.under_way = Some(haste);
                taken.push((slot, change));
            }
        }
        taken
    }

    /// What was under way has ended. What did not succeed is tried again in a while, in whatever words are right by then.
    /// The engine must have been told of the outcome before anything is taken again.
    pub fn done(
        &mut self,
        now: Timestamp,
        slot: &Slot,
        outcome: &Outcome,
        retry_after: Option<SignedDuration>,
    ) {
        if let Some(under_way) = self.under_way.get_mut(&slot.object.cluster) {
            *under_way = under_way.saturating_sub(1);
        }
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let haste = entry.under_way.take();
        let again = match outcome {
            Outcome::Failed(_) => Some(AGAIN),
            Outcome::Refused(_) => Some(AGAIN_IF_REFUSED),
            Outcome::Done(_) | Outcome::Conflict | Outcome::Absent => None,
        };
        if let Some((first, longest)) = again {
            let longest = first.saturating_mul(1 << entry.failures.min(16)).min(longest);
            let wait = spread(longest, slot, entry.failures).max(retry_after.unwrap_or_default());
            entry.not_before = now.checked_add(wait).ok();
            entry.failures = entry.failures.saturating_add(1);
            entry.wanted = entry.wanted.max(haste);
        } else {
            entry.not_before = None;
            entry.failures = 0;
        }
        self.schedule(now, slot);
    }

    /// When something will be due that can be taken then. Where as much is under way as may be, the end of that comes first.
    pub fn next(&self) -> Option<Timestamp> {
        let has_room =
            |cluster: &Cluster| self.under_way.get(cluster).is_none_or(|under_way| *under_way < self.most);
        let due = self.due.iter().filter(|(cluster, _)| has_room(cluster));
        due.filter_map(|(_, due)| due.first()).map(|(time, _)| *time).min().filter(|_| self.leading)
    }

    fn schedule(&mut self, now: Timestamp, slot: &Slot) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        if entry.under_way.is_some() {
            return;
        }
        let Some(haste) = entry.wanted else {
            self.idle.insert((entry.forgotten_at(now), slot.clone()));
            return;
        };
        let pace = match (entry.last, haste) {
            (None, _) => now,
            (Some(_), Haste::Turn) if entry.at_once_by(now) > 0 => now,
            (Some(last), _) => last.checked_add(PAUSE).unwrap_or(now),
        };
        entry.due = pace.max(entry.not_before.unwrap_or(pace)).max(now);
        self.due.entry(slot.object.cluster.clone()).or_default().insert((entry.due, slot.clone()));
    }

    /// Forgets places where nothing has been wanted for a while.
    fn forget(&mut self, now: Timestamp) {
        while self.idle.first().is_some_and(|(time, _)| *time <= now)
            && let Some((_, slot)) = self.idle.pop_first()
        {
            if self
                .entries
                .get(&slot)
                .is_some_and(|entry| entry.wanted.is_none() && entry.under_way.is_none())
            {
                self.entries.remove(&slot);
            }
        }
    }
}

impl Entry {
    /// When it can be forgotten, if nothing is wanted there.
    fn forgotten_at(&self, now: Timestamp) -> Timestamp {
        self.last.unwrap_or(now).checked_add(MEMORY).unwrap_or(now)
    }

    /// How often it may be written at once.
    fn at_once_by(&self, now: Timestamp) -> u8 {
        let Some(last) = self.last else { return AT_ONCE };
        let pauses = now.duration_since(last).as_millis() / PAUSE.as_millis().max(1);
        let pauses = u8::try_from(pauses.clamp(0, i128::from(AT_ONCE))).unwrap_or(AT_ONCE);
        self.at_once.saturating_add(pauses).min(AT_ONCE)
    }
}

/// Between half of the time and all of it, another for every place and every attempt, so that not all come at once.
fn spread(time: SignedDuration, slot: &Slot, attempt: u32) -> SignedDuration {
    let mut hasher = DefaultHasher::new();
    (slot, attempt).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 1000).unwrap_or_default();
    let half = time / 2;
    half + SignedDuration::from_millis(
        i64::try_from(half.as_millis() * i128::from(share) / 1000).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        effect::Part,
        id::{Kind, Name, ObjectKey},
    };
    use Haste::{Turn, Words};

    struct Story {
        outbox: Outbox,
        now: Timestamp,
    }

    fn slot(name: &str) -> Slot {
        let object = ObjectKey {
            cluster: Cluster::hub(),
            kind: Kind::own("Application"),
            name: Name::new("shop", name),
        };
        Slot { object, part: Part::Status }
    }

    impl Story {
        fn begin() -> Self {
            let mut outbox = Outbox::new(2);
            outbox.lead(true);
            Self { outbox, now: "2026-11-14T10:00:00Z".parse().expect("a time") }
        }

        fn after(&mut self, milliseconds: i64) -> &mut Self {
            self.now += SignedDuration::from_millis(milliseconds);
            self
        }

        fn want(&mut self, name: &str, haste: Haste) {
            self.outbox.want(self.now, &slot(name), Some(haste));
        }

        fn take(&mut self) -> Vec<(Slot, Change)> {
            self.outbox.take(self.now, |_| Some(Change::Delete { uid: "1".into() }))
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
        story.want("web", Words);
        assert_eq!(story.written(), 1);
        story.want("web", Words);
        assert_eq!(story.after(500).written(), 0);
        assert_eq!(story.after(500).written(), 1);
        assert_eq!(story.after(5000).written(), 0, "nothing is written twice");
    }

    #[test]
    fn a_turn_does_not_wait_for_words() {
        let mut story = Story::begin();
        story.want("web", Words);
        assert_eq!(story.written(), 1);
        story.after(10).want("web", Turn);
        assert_eq!(story.written(), 1);
    }

    #[test]
    fn a_burst_of_ten_thousand_changes_in_ten_seconds_is_few_writes() {
        for hastes in [[Words, Words], [Turn, Turn], [Words, Turn]] {
            let mut story = Story::begin();
            let mut writes = 0;
            for haste in hastes.into_iter().cycle().take(10_000) {
                story.after(1).want("web", haste);
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
        story.want("web", Turn);
        story.outbox.want(story.now, &slot("web"), None);
        assert_eq!(story.written(), 0);
    }

    #[test]
    fn what_turns_out_to_be_so_already_is_not_written() {
        let mut story = Story::begin();
        story.want("web", Turn);
        assert!(story.outbox.take(story.now, |_| None).is_empty());
        assert_eq!((story.outbox.depth(), story.outbox.next()), ((0, 0), None));
        story.want("web", Words);
        assert_eq!(story.written(), 1, "and the next is written at once");
    }

    #[test]
    fn what_fails_is_as_urgent_as_it_was() {
        let mut story = Story::begin();
        story.want("web", Turn);
        let (slot, _) = story.take().remove(0);
        story.want("web", Words);
        story.done(&slot, &Outcome::Failed("no answer".into()));
        assert_eq!(story.after(100).written(), 1);
    }

    #[test]
    fn no_more_than_so_many_are_under_way() {
        let mut story = Story::begin();
        for name in ["a", "b", "c"] {
            story.want(name, Turn);
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
        story.outbox.lead(false);
        story.want("web", Turn);
        assert_eq!(story.written(), 0);
        assert_eq!(story.outbox.next(), None);
        story.outbox.lead(true);
        assert_eq!(story.written(), 1);
    }

    #[test]
    fn what_fails_is_tried_again_later_and_later() {
        let mut story = Story::begin();
        story.want("web", Turn);
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
                let most = (100 << n).min(30_000);
                (most / 2..=most).contains(wait)
            }),
            "{waits:?}"
        );
        assert_eq!(story.written(), 1, "and is written in the end");
    }

    #[test]
    fn the_server_may_ask_for_patience() {
        let mut story = Story::begin();
        story.want("web", Turn);
        let (slot, _) = story.take().remove(0);
        let patience = SignedDuration::from_secs(7);
        story.outbox.done(story.now, &slot, &Outcome::Failed("too many".into()), Some(patience));
        assert_eq!(story.outbox.next(), Some(story.now + patience));
    }

    #[test]
    fn what_is_refused_waits_whatever_is_wanted_by_then() {
        let mut story = Story::begin();
        story.want("web", Turn);
        let (slot, _) = story.take().remove(0);
        story.done(&slot, &Outcome::Refused("no right".into()));
        assert!(story.outbox.next().expect("it is tried again") >= story.now + SignedDuration::from_secs(15));
        story.want("web", Turn);
        assert_eq!(story.written(), 0, "the same right may be missing still");
    }

    #[test]
    fn a_conflict_waits_for_the_engine() {
        let mut story = Story::begin();
        story.want("web", Turn);
        let (slot, _) = story.take().remove(0);
        story.done(&slot, &Outcome::Conflict);
        assert_eq!(story.outbox.next(), None);
    }

    #[test]
    fn what_has_been_quiet_for_long_is_forgotten() {
        let mut story = Story::begin();
        for number in 0..100 {
            story.want(&number.to_string(), Turn);
            story.written();
        }
        story.after(11_000).written();
        assert!(story.outbox.entries.is_empty() && story.outbox.idle.is_empty());
    }
}
