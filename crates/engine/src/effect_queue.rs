//! Collects the effects of a step, the requested writes and the timers.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::{
    effect::{Effect, Part, Slot, Urgency, Write},
    feeds::ObjectId,
    group_ref::{GroupRef, OwnKind},
    id::{Cluster, NamespacedName, ObjectKey},
    planted::Bug,
};

/// The effects of a step, and what outlives it: requested writes and timers.
///
/// A write is kept until it completes, so that the same write is not requested twice. A status has no entry
/// here: it is rendered when it is due, so its slot is enqueued whenever the status may have changed.
#[derive(Debug, Default)]
pub(crate) struct EffectQueue {
    pub(crate) effects: Vec<Effect>,
    requested: BTreeMap<Slot, Write>,
    /// Groups that may have changed in this step.
    changed: BTreeSet<Changed>,
    timers: BTreeSet<(Timestamp, Timer)>,
    /// The last `Effect::Wake`.
    wake_at: Option<Timestamp>,
}

/// A group whose status may have changed; without a name, all groups of the kind.
pub(crate) type Changed = (OwnKind, Option<NamespacedName>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The verdict of an object changes with time.
    Verdict(ObjectId),
    /// Objects below a member say something else about it from now on.
    Below(ObjectId),
    /// Retry an ownerReferences patch that got a 409 although no newer version has arrived on the watch.
    Retry(Slot),
    /// Evaluate a group: its next health-check Pod is due, it may release a kind, a held condition is due, or
    /// a postponed write of its status is.
    Group(GroupRef),
    Silence(Cluster),
    /// What a cluster reported may be stale for a BindingPolicy.
    Freshness(Cluster),
}

impl EffectQueue {
    /// Requests a write, or withdraws it.
    pub(crate) fn request_write(&mut self, slot: Slot, write: Option<Write>) {
        if self.requested.get(&slot) == write.as_ref() {
            return;
        }
        let urgency = write.as_ref().map(|_| Urgency::Transition);
        match write {
            Some(write) => self.requested.insert(slot.clone(), write),
            None => self.requested.remove(&slot),
        };
        self.effects.push(Effect::EnqueueWrite(slot, urgency));
    }

    pub(crate) fn withdraw(&mut self, object: &ObjectKey) {
        let first = Slot { object: object.clone(), part: Part::Status };
        let of_object = self.requested.range(first..).map(|(slot, _)| slot);
        let requested: Vec<_> = of_object.take_while(|slot| slot.object == *object).cloned().collect();
        for slot in requested {
            self.request_write(slot, None);
        }
    }

    pub(crate) fn requested(&self, slot: &Slot) -> Option<&Write> {
        self.requested.get(slot)
    }

    /// The write has ended, or will not be made; it may be requested again.
    pub(crate) fn complete(&mut self, slot: &Slot, write: &Write) {
        if self.requested.get(slot) == Some(write) {
            self.requested.remove(slot);
        }
    }

    /// Lets the same write be requested again.
    pub(crate) fn clear_request(&mut self, slot: &Slot) {
        self.requested.remove(slot);
    }

    pub(crate) fn group_changed(&mut self, group: &GroupRef) {
        if Bug::EmitNoChanged.is_planted() {
            return;
        }
        self.changed.insert((group.kind, Some(group.name.clone())));
    }

    /// All groups of these kinds may have changed, also names that do not exist.
    pub(crate) fn kinds_changed(&mut self, kinds: impl IntoIterator<Item = OwnKind>) {
        self.changed.extend(kinds.into_iter().map(|kind| (kind, None)));
    }

    /// Takes the groups that changed in this step. The caller puts them back with `restore_changed`.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<Changed> {
        std::mem::take(&mut self.changed)
    }

    pub(crate) fn restore_changed(&mut self, changed: BTreeSet<Changed>) {
        self.changed.extend(changed);
    }

    pub(crate) fn schedule(&mut self, time: Timestamp, timer: Timer) {
        self.timers.insert((time, timer));
    }

    /// Shifts the timers. Those of verdicts and of Pods stay: they are points in time that an object gives.
    pub(crate) fn clock_set(&mut self, by: SignedDuration) {
        let shift = |(time, timer): (Timestamp, Timer)| match timer {
            Timer::Verdict(_) | Timer::Below(_) => (time, timer),
            Timer::Group(_) | Timer::Retry(_) | Timer::Silence(_) | Timer::Freshness(_) => {
                (time.checked_add(by).unwrap_or(time), timer)
            }
        };
        self.timers = std::mem::take(&mut self.timers).into_iter().map(shift).collect();
    }

    /// The next timer but those that every cluster starts again whenever it is heard from.
    #[cfg(feature = "planted")]
    pub(crate) fn next_change(&self) -> Option<Timestamp> {
        let is_rearmed = |timer: &Timer| matches!(timer, Timer::Silence(_) | Timer::Freshness(_));
        self.timers.iter().find(|(_, timer)| !is_rearmed(timer)).map(|(time, _)| *time)
    }

    /// Pops one timer that is due.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<Timer> {
        if self.timers.first().is_none_or(|(time, _)| *time > now) {
            return None;
        }
        self.timers.pop_first().map(|(_, timer)| timer)
    }

    pub(crate) fn request_count(&self) -> usize {
        self.requested.len()
    }

    pub(crate) fn drain(&mut self) -> Vec<Effect> {
        for (kind, name) in std::mem::take(&mut self.changed) {
            self.effects.push(Effect::Changed(kind, name));
        }
        let next = self.timers.first().map(|(time, _)| *time);
        if next != self.wake_at {
            self.wake_at = next;
            self.effects.push(Effect::Wake(next));
        }
        std::mem::take(&mut self.effects)
    }
}
