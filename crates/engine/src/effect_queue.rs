//! What has been asked for, and when to look again.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::{
    effect::{Change, Effect, Part, Slot, Urgency},
    feeds::ObjectId,
    group_ref::{GroupRef, OwnKind},
    id::{Cluster, NamespacedName, ObjectKey},
    planted::Bug,
};

/// Everything that goes out passes here. A change that was asked for already is not asked for again; statuses, which are not
/// known before they are due, are announced whenever they may have changed.
#[derive(Debug, Default)]
pub(crate) struct EffectQueue {
    pub(crate) effects: Vec<Effect>,
    requested: BTreeMap<Slot, Change>,
    /// The groups that have changed in this step, or all of a kind.
    changed: BTreeSet<Changed>,
    timers: BTreeSet<(Timestamp, Timer)>,
    /// When we are to be woken, as far as has been said.
    wake_at: Option<Timestamp>,
}

/// A group that may be told of in other words than before; without a name, all of its kind.
pub(crate) type Changed = (OwnKind, Option<NamespacedName>);

/// What to look at when the time has come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The verdict on an object turns into another.
    Verdict(ObjectId),
    /// A change that got a conflict is tried once more, although no newer version of the object has arrived on the watch.
    Retry(Slot),
    /// Something that a group waits for is over: it is time for another Pod of a health check, to leave a kind,
    /// or to write a status after all.
    Group(GroupRef),
    /// A cluster may have fallen silent.
    Silence(Cluster),
}

impl EffectQueue {
    /// Asks for a change, or takes back what was asked for.
    pub(crate) fn want(&mut self, slot: Slot, change: Option<Change>) {
        if self.requested.get(&slot) == change.as_ref() {
            return;
        }
        let urgency = change.as_ref().map(|_| Urgency::Transition);
        match change {
            Some(change) => self.requested.insert(slot.clone(), change),
            None => self.requested.remove(&slot),
        };
        self.effects.push(Effect::Want(slot, urgency));
    }

    /// Takes back whatever was asked for of an object.
    pub(crate) fn withdraw(&mut self, object: &ObjectKey) {
        let first = Slot { object: object.clone(), part: Part::Status };
        let of_object = self.requested.range(first..).map(|(slot, _)| slot);
        let requested: Vec<_> = of_object.take_while(|slot| slot.object == *object).cloned().collect();
        for slot in requested {
            self.want(slot, None);
        }
    }

    /// The change that has been asked for in a place.
    pub(crate) fn requested(&self, slot: &Slot) -> Option<&Change> {
        self.requested.get(slot)
    }

    /// A change has been made, or will not be: it may be asked for again.
    pub(crate) fn complete(&mut self, slot: &Slot, change: &Change) {
        if self.requested.get(slot) == Some(change) {
            self.requested.remove(slot);
        }
    }

    /// Whatever has been asked for in a place may be asked for again.
    pub(crate) fn clear_request(&mut self, slot: &Slot) {
        self.requested.remove(slot);
    }

    /// A group may be told of in other words than before.
    pub(crate) fn group_changed(&mut self, group: &GroupRef) {
        if Bug::TellNoFollower.is_planted() {
            return;
        }
        self.changed.insert((group.kind, Some(group.name.clone())));
    }

    /// So may all groups of some kinds, also those that are not there.
    pub(crate) fn kinds_changed(&mut self, kinds: impl IntoIterator<Item = OwnKind>) {
        self.changed.extend(kinds.into_iter().map(|kind| (kind, None)));
    }

    /// Takes what has changed in this step. The caller gives it back with `restore_changed`.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<Changed> {
        std::mem::take(&mut self.changed)
    }

    pub(crate) fn restore_changed(&mut self, changed: BTreeSet<Changed>) {
        self.changed.extend(changed);
    }

    pub(crate) fn schedule(&mut self, time: Timestamp, timer: Timer) {
        self.timers.insert((time, timer));
    }

    /// Somebody has set the clock. When the verdict on an object turns is for the object to say.
    pub(crate) fn clock_set(&mut self, by: SignedDuration) {
        let shift = |(time, timer): (Timestamp, Timer)| match timer {
            Timer::Verdict(_) => (time, timer),
            Timer::Group(_) | Timer::Retry(_) | Timer::Silence(_) => {
                (time.checked_add(by).unwrap_or(time), timer)
            }
        };
        self.timers = std::mem::take(&mut self.timers).into_iter().map(shift).collect();
    }

    /// What is due.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<Timer> {
        if self.timers.first().is_none_or(|(time, _)| *time > now) {
            return None;
        }
        self.timers.pop_first().map(|(_, timer)| timer)
    }

    /// How much has been asked for.
    pub(crate) fn request_count(&self) -> usize {
        self.requested.len()
    }

    /// All that is to be done now.
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
