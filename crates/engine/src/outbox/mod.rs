//! When to write: at once for a transition, with a delay for message changes, with backoff after failures.
//!
//! The outbox does no I/O. The engine enqueues slots, [`Outbox::take`] renders those that are due and hands
//! them out, and [`Outbox::done`] takes the outcome.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    effect::{Slot, Urgency, Write},
    event::Outcome,
    id::Cluster,
    planted::Bug,
};

/// How many transitions of one object are written without delay. One more is allowed per `MIN_INTERVAL`.
const BURST: u8 = 5;
/// Between writes of one object: for message changes always, for transitions after a burst.
const MIN_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// How long an idle slot keeps its rate limit.
const FORGET_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// After failures: the first delay, doubled each time up to the second one.
const RETRY_BACKOFF: (SignedDuration, SignedDuration) =
    (SignedDuration::from_millis(100), SignedDuration::from_secs(30));
/// The same after a rejection. It will be rejected again unless RBAC, quota or admission change, or unless
/// the API server has just started and has not loaded its RBAC rules.
const REFUSED_BACKOFF: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(2), SignedDuration::from_mins(10));

/// A new leader has all slots to render. This limit keeps its loop responsive.
const MAX_RENDERS_PER_TAKE: usize = 64;

#[derive(Debug)]
pub struct Outbox {
    entries: HashMap<Slot, PendingWrite>,
    /// Pending writes that are not in flight, by due time.
    due: BTreeMap<Cluster, DueWrites>,
    /// Slots to forget, by time.
    idle: BTreeSet<(Timestamp, Slot)>,
    in_flight: BTreeMap<Cluster, usize>,
    max_in_flight: usize,
    leading: bool,
}

/// While the API server is slower than the changes, the more urgent ones pass the others.
#[derive(Debug, Default)]
struct DueWrites(BTreeMap<Reverse<Urgency>, BTreeSet<(Timestamp, Slot)>>);

#[derive(Debug)]
struct PendingWrite {
    /// Set if it is enqueued.
    urgency: Option<Urgency>,
    in_flight: Option<Urgency>,
    /// When it is due, if it is enqueued and not in flight.
    due: Timestamp,
    /// When the last write started, or turned out to be unnecessary.
    last_write: Option<Timestamp>,
    /// How many transitions may still be written at once, at `last_write`.
    burst_left: u8,
    /// Consecutive failures, or consecutive rejections: each kind has its own backoff.
    failures: u32,
    rejected: bool,
    /// Backoff after failures.
    not_before: Option<Timestamp>,
}

impl Outbox {
    /// `max_in_flight` is per cluster. An outbox is not leading at first.
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

    /// Only the leader writes.
    pub fn set_leading(&mut self, leading: bool) {
        self.leading = leading;
    }

    /// The number of pending writes, and of writes in flight.
    pub fn depth(&self) -> (usize, usize) {
        (self.due.values().map(DueWrites::len).sum(), self.in_flight.values().sum())
    }

    /// The slot may need a write; `None` withdraws it.
    pub fn enqueue(&mut self, now: Timestamp, slot: &Slot, urgency: Option<Urgency>) {
        if !self.entries.contains_key(slot) {
            if urgency.is_none() {
                return;
            }
            self.entries.insert(slot.clone(), PendingWrite::new(now));
        }
        let Some(entry) = self.entries.get_mut(slot) else { return };
        if entry.urgency == urgency {
            return;
        }
        if let Some(before) = entry.urgency
            && entry.in_flight.is_none()
            && let Some(due) = self.due.get_mut(&slot.object.cluster)
        {
            due.remove(before, entry.due, slot);
        }
        entry.urgency = urgency;
        self.schedule(now, slot);
    }

    /// Takes the slots that are due and counts them as in flight. `write` renders each; a slot that needs no
    /// change is dropped.
    pub fn take(
        &mut self,
        now: Timestamp,
        mut write: impl FnMut(&Slot) -> Option<Write>,
    ) -> Vec<(Slot, Write)> {
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
                && let Some(slot) = due.pop(now)
            {
                let Some(entry) = self.entries.get_mut(&slot) else { continue };
                let Some(urgency) = entry.urgency.take() else { continue };
                renders += 1;
                entry.burst_left = entry.burst_left_at(now);
                entry.last_write = Some(now);
                let Some(write) = write(&slot) else {
                    self.idle.insert((entry.forgotten_at(now), slot));
                    continue;
                };
                *in_flight += 1;
                // Message changes that go on must not use up the burst: a transition would wait for them.
                if urgency >= Urgency::Transition {
                    entry.burst_left = entry.burst_left.saturating_sub(1);
                }
                entry.in_flight = Some(urgency);
                taken.push((slot, write));
            }
        }
        taken
    }

    /// Handles the outcome of a write. A failed one is rendered again when it is retried. The engine must
    /// have handled the outcome before the next `take`.
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
            // Another replica of the API server may know the object. If it was deleted, the engine withdraws
            // the slot soon.
            Outcome::Failed(_) | Outcome::NotFound => {
                Some(RETRY_BACKOFF).filter(|_| !Bug::DropRetry.is_planted())
            }
            // No event reports that the other manager gave up a field.
            Outcome::Rejected(_) | Outcome::FieldConflict(_) => Some(REFUSED_BACKOFF),
            // The engine requests the write again when it knows the newer version.
            Outcome::Written(_) | Outcome::Conflict => None,
        };
        if let Some((first, longest)) = backoff {
            let refused = matches!(outcome, Outcome::Rejected(_) | Outcome::FieldConflict(_));
            if entry.rejected != refused {
                (entry.rejected, entry.failures) = (refused, 0);
            }
            let longest = first.saturating_mul(1 << entry.failures.min(16)).min(longest);
            let wait = jitter(longest, slot, entry.failures).max(retry_after.unwrap_or_default());
            entry.not_before = now.checked_add(wait).ok();
            entry.failures = entry.failures.saturating_add(1);
            entry.urgency = entry.urgency.max(urgency);
        } else {
            entry.not_before = None;
            entry.failures = 0;
        }
        self.schedule(now, slot);
    }

    /// When the next `take` has something to do. Clusters at `max_in_flight` do not count: they wait for an
    /// outcome.
    pub fn next(&self) -> Option<Timestamp> {
        let has_room = |cluster: &Cluster| {
            self.in_flight.get(cluster).is_none_or(|in_flight| *in_flight < self.max_in_flight)
        };
        let due = self.due.iter().filter(|(cluster, _)| has_room(cluster));
        due.filter_map(|(_, due)| due.first()).min().filter(|_| self.leading)
    }

    fn schedule(&mut self, now: Timestamp, slot: &Slot) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        if entry.in_flight.is_some() {
            return;
        }
        let Some(urgency) = entry.urgency else {
            self.idle.insert((entry.forgotten_at(now), slot.clone()));
            return;
        };
        let paced = match (entry.last_write, urgency) {
            (None, _) => now,
            (Some(_), urgency) if urgency >= Urgency::Transition && entry.burst_left_at(now) > 0 => now,
            (Some(last), _) => last.checked_add(MIN_INTERVAL).unwrap_or(now),
        };
        entry.due = paced.max(entry.not_before.unwrap_or(paced)).max(now);
        let due = self.due.entry(slot.object.cluster.clone()).or_default();
        due.insert(urgency, entry.due, slot);
    }

    /// Delays keep their remaining time.
    pub fn clock_set(&mut self, by: SignedDuration) {
        let shift = |time: Timestamp| time.checked_add(by).unwrap_or(time);
        for entry in self.entries.values_mut() {
            entry.due = shift(entry.due);
            entry.last_write = entry.last_write.map(shift);
            entry.not_before = entry.not_before.map(shift);
        }
        let due = self.due.values_mut().flat_map(|due| due.0.values_mut());
        for times in due.chain([&mut self.idle]) {
            *times = std::mem::take(times).into_iter().map(|(time, slot)| (shift(time), slot)).collect();
        }
    }

    fn forget_idle(&mut self, now: Timestamp) {
        while self.idle.first().is_some_and(|(time, _)| *time <= now)
            && let Some((_, slot)) = self.idle.pop_first()
        {
            if self
                .entries
                .get(&slot)
                .is_some_and(|entry| entry.urgency.is_none() && entry.in_flight.is_none())
            {
                self.entries.remove(&slot);
            }
        }
    }
}

impl DueWrites {
    fn insert(&mut self, urgency: Urgency, time: Timestamp, slot: &Slot) {
        self.0.entry(Reverse(urgency)).or_default().insert((time, slot.clone()));
    }

    fn remove(&mut self, urgency: Urgency, time: Timestamp, slot: &Slot) {
        if let Some(writes) = self.0.get_mut(&Reverse(urgency)) {
            writes.remove(&(time, slot.clone()));
        }
    }

    fn pop(&mut self, now: Timestamp) -> Option<Slot> {
        let is_due =
            |writes: &&mut BTreeSet<(Timestamp, Slot)>| writes.first().is_some_and(|(time, _)| *time <= now);
        let (_, slot) = self.0.values_mut().find(is_due)?.pop_first()?;
        Some(slot)
    }

    fn first(&self) -> Option<Timestamp> {
        self.0.values().filter_map(BTreeSet::first).map(|(time, _)| *time).min()
    }

    fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }
}

impl PendingWrite {
    fn new(now: Timestamp) -> Self {
        Self {
            urgency: None,
            in_flight: None,
            due: now,
            last_write: None,
            burst_left: BURST,
            failures: 0,
            rejected: false,
            not_before: None,
        }
    }

    fn forgotten_at(&self, now: Timestamp) -> Timestamp {
        self.last_write.unwrap_or(now).checked_add(FORGET_AFTER).unwrap_or(now)
    }

    fn burst_left_at(&self, now: Timestamp) -> u8 {
        let Some(last) = self.last_write else { return BURST };
        let intervals = now.duration_since(last).as_millis() / MIN_INTERVAL.as_millis().max(1);
        let intervals = u8::try_from(intervals.clamp(0, i128::from(BURST))).unwrap_or(BURST);
        self.burst_left.saturating_add(intervals).min(BURST)
    }
}

/// A deterministic value between half of the time and all of it, different for each slot and attempt.
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
