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
    effect::{Change, Slot, Urgency},
    event::Outcome,
    id::Cluster,
    planted::Bug,
};

/// An object is written so often at once, if it turns so often, before the next turn has to wait,
const BURST: u8 = 5;
/// and after so long once more. Words alone wait for so long after what was written last.
const MIN_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// After so long, it is forgotten when something was written last.
const FORGET_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// What did not get through is tried again after so long, and then after twice as long, up to the longest.
const RETRY_BACKOFF: (SignedDuration, SignedDuration) =
    (SignedDuration::from_millis(100), SignedDuration::from_secs(30));
/// What was refused is refused again, unless somebody changes something that we cannot see; or unless a server has just
/// begun, and has not read yet who may do what.
const REFUSED_BACKOFF: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(2), SignedDuration::from_mins(10));

/// So often is asked at a time what is wanted. Whoever takes over has all to look at, and other things to do as well.
const MAX_RENDERS_PER_TAKE: usize = 64;

/// What is to be written.
#[derive(Debug)]
pub struct Outbox {
    entries: HashMap<Slot, PendingWrite>,
    /// What is not under way, by the time at which it is due.
    due: BTreeMap<Cluster, BTreeSet<(Timestamp, Slot)>>,
    /// What can be forgotten, by the time at which it can.
    idle: BTreeSet<(Timestamp, Slot)>,
    in_flight: BTreeMap<Cluster, usize>,
    max_in_flight: usize,
    leading: bool,
}

#[derive(Debug)]
struct PendingWrite {
    wanted: Option<Urgency>,
    in_flight: Option<Urgency>,
    /// When it is due, if it is wanted and not under way.
    due: Timestamp,
    /// When the last write began, or was found to be needless.
    last: Option<Timestamp>,
    /// How often it could still be written at once, as of then.
    burst_left: u8,
    /// How often in a row it did not get through, or was refused: one of the two says nothing about the other.
    failures: u32,
    refused: bool,
    /// Not before that, because of failures.
    not_before: Option<Timestamp>,
}

impl Outbox {
    /// One that gives out at most so many writes at a time for each cluster, and none before it leads.
    pub fn new(max_in_flight: usize) -> Self {
        Self {
            entries: HashMap::new(),
            due: BTreeMap::new(),
            idle: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            max_in_flight,
            leading: false,
        }
    }

    /// Whether writes are ours to make.
    pub fn set_leading(&mut self, leading: bool) {
        self.leading = leading;
    }

    /// How much waits to be written, and how much is under way.
    pub fn depth(&self) -> (usize, usize) {
        (self.due.values().map(BTreeSet::len).sum(), self.in_flight.values().sum())
    }

    /// From now on something is wanted there, or nothing is.
    pub fn want(&mut self, now: Timestamp, slot: &Slot, urgency: Option<Urgency>) {
        if !self.entries.contains_key(slot) {
            if urgency.is_none() {
                return;
            }
            self.entries.insert(slot.clone(), PendingWrite::new(now));
        }
        let Some(entry) = self.entries.get_mut(slot) else { return };
        if entry.wanted == urgency {
            return;
        }
        if entry.wanted.is_some()
            && entry.in_flight.is_none()
            && let Some(due) = self.due.get_mut(&slot.object.cluster)
        {
            due.remove(&(entry.due, slot.clone()));
        }
        entry.wanted = urgency;
        self.schedule(now, slot);
    }

    /// What is due, and from now on under way. `change` says what is wanted in a place by now; where nothing is any more,
    /// nothing is done.
    pub fn take(
        &mut self,
        now: Timestamp,
        mut change: impl FnMut(&Slot) -> Option<Change>,
    ) -> Vec<(Slot, Change)> {
        self.forget_idle(now);
        let mut taken = Vec::new();
        if !self.leading {
            return taken;
        }
        let mut renders = 0;
        for (cluster, due) in &mut self.due {
            let in_flight = self.in_flight.entry(cluster.clone()).or_default();
            while renders < MAX_RENDERS_PER_TAKE
                && *in_flight < self.max_in_flight
                && due.first().is_some_and(|(time, _)| *time <= now)
                && let Some((_, slot)) = due.pop_first()
            {
                let Some(entry) = self.entries.get_mut(&slot) else { continue };
                let Some(urgency) = entry.wanted.take() else { continue };
                renders += 1;
                entry.burst_left = entry.burst_left_at(now);
                entry.last = Some(now);
                let Some(change) = change(&slot) else {
                    self.idle.insert((entry.forgotten_at(now), slot));
                    continue;
                };
                *in_flight += 1;
                entry.burst_left = entry.burst_left.saturating_sub(1);
                entry.in_flight = Some(urgency);
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
        if let Some(in_flight) = self.in_flight.get_mut(&slot.object.cluster) {
            *in_flight = in_flight.saturating_sub(1);
        }
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let urgency = entry.in_flight.take();
        let backoff = match outcome {
            // What is not there may be there at another replica of the API server. If it is gone, nothing is wanted soon.
            Outcome::Failed(_) | Outcome::Absent => {
                Some(RETRY_BACKOFF).filter(|_| !Bug::DropRetry.is_planted())
            }
            // Another manager lets go of a field without a word.
            Outcome::Refused(_) | Outcome::FieldConflict(_) => Some(REFUSED_BACKOFF),
            // The engine says when it has seen what it conflicts with.
            Outcome::Done(_) | Outcome::Conflict => None,
        };
        if let Some((first, longest)) = backoff {
            let refused = matches!(outcome, Outcome::Refused(_) | Outcome::FieldConflict(_));
            if entry.refused != refused {
                (entry.refused, entry.failures) = (refused, 0);
            }
            let longest = first.saturating_mul(1 << entry.failures.min(16)).min(longest);
            let wait = jitter(longest, slot, entry.failures).max(retry_after.unwrap_or_default());
            entry.not_before = now.checked_add(wait).ok();
            entry.failures = entry.failures.saturating_add(1);
            entry.wanted = entry.wanted.max(urgency);
        } else {
            entry.not_before = None;
            entry.failures = 0;
        }
        self.schedule(now, slot);
    }

    /// When something will be due that can be taken then. Where as much is under way as may be, the end of that comes first.
    pub fn next(&self) -> Option<Timestamp> {
        let has_room = |cluster: &Cluster| {
            self.in_flight.get(cluster).is_none_or(|in_flight| *in_flight < self.max_in_flight)
        };
        let due = self.due.iter().filter(|(cluster, _)| has_room(cluster));
        due.filter_map(|(_, due)| due.first()).map(|(time, _)| *time).min().filter(|_| self.leading)
    }

    fn schedule(&mut self, now: Timestamp, slot: &Slot) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        if entry.in_flight.is_some() {
            return;
        }
        let Some(urgency) = entry.wanted else {
            self.idle.insert((entry.forgotten_at(now), slot.clone()));
            return;
        };
        let paced = match (entry.last, urgency) {
            (None, _) => now,
            (Some(_), Urgency::Transition) if entry.burst_left_at(now) > 0 => now,
            (Some(last), _) => last.checked_add(MIN_INTERVAL).unwrap_or(now),
        };
        entry.due = paced.max(entry.not_before.unwrap_or(paced)).max(now);
        self.due.entry(slot.object.cluster.clone()).or_default().insert((entry.due, slot.clone()));
    }

    /// Somebody has set the clock: all that waits for so long from some moment on waits no longer and no shorter for that.
    pub fn clock_set(&mut self, by: SignedDuration) {
        let shift = |time: Timestamp| time.checked_add(by).unwrap_or(time);
        for entry in self.entries.values_mut() {
            entry.due = shift(entry.due);
            entry.last = entry.last.map(shift);
            entry.not_before = entry.not_before.map(shift);
        }
        for times in self.due.values_mut().chain([&mut self.idle]) {
            *times = std::mem::take(times).into_iter().map(|(time, slot)| (shift(time), slot)).collect();
        }
    }

    /// Forgets places where nothing has been wanted for a while.
    fn forget_idle(&mut self, now: Timestamp) {
        while self.idle.first().is_some_and(|(time, _)| *time <= now)
            && let Some((_, slot)) = self.idle.pop_first()
        {
            if self
                .entries
                .get(&slot)
                .is_some_and(|entry| entry.wanted.is_none() && entry.in_flight.is_none())
            {
                self.entries.remove(&slot);
            }
        }
    }
}

impl PendingWrite {
    fn new(now: Timestamp) -> Self {
        Self {
            wanted: None,
            in_flight: None,
            due: now,
            last: None,
            burst_left: BURST,
            failures: 0,
            refused: false,
            not_before: None,
        }
    }

    /// When it can be forgotten, if nothing is wanted there.
    fn forgotten_at(&self, now: Timestamp) -> Timestamp {
        self.last.unwrap_or(now).checked_add(FORGET_AFTER).unwrap_or(now)
    }

    /// How often it may be written at once.
    fn burst_left_at(&self, now: Timestamp) -> u8 {
        let Some(last) = self.last else { return BURST };
        let intervals = now.duration_since(last).as_millis() / MIN_INTERVAL.as_millis().max(1);
        let intervals = u8::try_from(intervals.clamp(0, i128::from(BURST))).unwrap_or(BURST);
        self.burst_left.saturating_add(intervals).min(BURST)
    }
}

/// Between half of the time and all of it, another for every place and every attempt, so that not all come at once.
fn jitter(time: SignedDuration, slot: &Slot, attempt: u32) -> SignedDuration {
    let mut hasher = DefaultHasher::new();
    (slot, attempt).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 1000).unwrap_or_default();
    let half = time / 2;
    half + SignedDuration::from_millis(
        i64::try_from(half.as_millis() * i128::from(share) / 1000).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
