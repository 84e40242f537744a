//! The status of one of our own objects: what is stored in the cluster, and what it should be. Decides when a
//! write is needed, guards it with the resourceVersion, and records each condition transition as an Event
//! once.

use std::sync::Arc;

use bellwether_api::ConditionStatus;
use bellwether_conditions::Statement;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::{
    effect::{Effect, Part, Slot, Transition, Urgency, Warning, Write},
    effect_queue::{EffectQueue, Timer},
    event::Outcome,
    facts::{Facts, ResourceVersion},
    group_ref::GroupRef,
    overwrite_backoff::OverwriteBackoff,
    planted::Bug,
    reasons,
    stored_condition::{self, ConditionShape, StoredCondition},
    stored_status::StoredStatus,
};

/// How long to wait for a watch event with the newer version after a 409.
pub(crate) const CONFLICT_TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

/// The conditions that a kind's status has.
#[derive(Debug)]
pub(crate) struct ConditionSet {
    /// The types that we own in the status.
    pub(crate) own: &'static [&'static str],
    /// The types whose transitions are recorded as Events, each with its good status; `None` if both are
    /// good.
    pub(crate) recorded: &'static [(&'static str, Option<ConditionStatus>)],
    pub(crate) shape: ConditionShape,
    /// If another controller may write the same status: how to stop one of the two.
    pub(crate) overwrite_hint: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Publication {
    group: GroupRef,
    slot: Slot,
    condition_set: &'static ConditionSet,
    pub(crate) uid: Box<str>,
    resource_version: ResourceVersion,
    pub(crate) generation: i64,
    /// As last observed or written.
    stored: StoredStatus,
    /// The result of the last evaluation.
    desired: Vec<DesiredCondition>,
    /// One for each type in [`ConditionSet::recorded`].
    recorded_transitions: Vec<RecordedTransition>,
    /// The resourceVersion of a write that got a 409. Until another one is known, writing is pointless. After
    /// `CONFLICT_TIMEOUT` the write is tried again, because the 409 may have been wrong.
    conflicting_version: Option<ResourceVersion>,
    overwrites: OverwriteBackoff,
}

/// Which transition of a condition was recorded as an Event, so that each is recorded once.
#[derive(Debug)]
struct RecordedTransition {
    type_: &'static str,
    /// `None` if both statuses are good.
    good: Option<ConditionStatus>,
    /// A transition whose write got no response. It may have reached the API server.
    unconfirmed: Option<Transition>,
    /// The status of the last recorded transition, as long as it is stored.
    recorded: Option<ConditionStatus>,
    /// The resourceVersion with which it was recorded.
    recorded_version: Option<ResourceVersion>,
}

/// A condition as last evaluated.
#[derive(Debug)]
struct DesiredCondition {
    type_: &'static str,
    /// `None` if the condition does not apply.
    status: Option<ConditionStatus>,
    /// When the status changed, or when another writer overwrote the condition.
    since: Timestamp,
    stored: bool,
}

impl Publication {
    pub(crate) fn new(
        group: GroupRef,
        condition_set: &'static ConditionSet,
        facts: &Facts,
        generation: i64,
        status: &impl Serialize,
    ) -> Self {
        Self {
            slot: Slot { object: group.object(), part: Part::Status },
            group,
            condition_set,
            uid: facts.uid.clone(),
            resource_version: facts.resource_version.clone(),
            generation,
            stored: StoredStatus::of(status),
            desired: Vec::new(),
            recorded_transitions: condition_set
                .recorded
                .iter()
                .map(|(type_, good)| RecordedTransition::new(type_, *good))
                .collect(),
            conflicting_version: None,
            overwrites: OverwriteBackoff::default(),
        }
    }

    pub(crate) fn group(&self) -> &GroupRef {
        &self.group
    }

    pub(crate) fn timer(&self) -> Timer {
        Timer::Group(self.group.clone())
    }

    pub(crate) fn stored(&self) -> &[StoredCondition] {
        &self.stored.conditions
    }

    /// Our stored conditions, if they describe the current generation and every one matches the last
    /// evaluation. `None` if a newer evaluation is not written yet.
    pub(crate) fn last_published(&self) -> Option<Vec<(&'static str, Statement)>> {
        let statement =
            |type_: &&'static str| Some((*type_, stored_condition::statement(self.stored(), type_)?));
        let is_current = self.stored.observed_generation == Some(self.generation);
        let is_stored = |desired: &DesiredCondition| {
            stored_condition::status(self.stored(), desired.type_) == desired.status
        };
        let is_accurate = !self.desired.is_empty() && self.desired.iter().all(is_stored);
        (is_current && (is_accurate || Bug::AnswerWithStoredStatus.is_planted()))
            .then(|| self.condition_set.own.iter().filter_map(statement).collect())
    }

    /// The stored `lastTransitionTime`; if the status is not stored yet, when it was first evaluated.
    pub(crate) fn since(&self, type_: &str, status: ConditionStatus) -> Option<Timestamp> {
        let stored = || {
            let has_status =
                |condition: &&StoredCondition| *condition.type_ == *type_ && condition.status() == status;
            Some(self.stored().iter().find(has_status)?.last_transition_time.as_ref()?.0)
        };
        let evaluated = || {
            let desired = self
                .desired
                .iter()
                .find(|desired| desired.type_ == type_ && desired.status == Some(status))?;
            stored_condition::whole_seconds(desired.since)
        };
        stored().or_else(evaluated)
    }

    /// The conditions to store: ours, among those of other controllers.
    pub(crate) fn conditions<'a>(
        &self,
        statements: impl IntoIterator<Item = (&'a str, Option<Statement>)>,
        now: Timestamp,
    ) -> Vec<StoredCondition> {
        let since = |type_: &str, status: ConditionStatus| {
            let is_same =
                |desired: &&DesiredCondition| desired.type_ == type_ && desired.status == Some(status);
            self.desired.iter().find(is_same).map_or(now, |desired| desired.since)
        };
        let condition_set = (self.condition_set.own, self.condition_set.shape);
        stored_condition::conditions(self.stored(), condition_set, statements, self.generation, now, since)
    }

    /// Takes the stored status from a watch event. Returns whether the group has to be evaluated.
    pub(crate) fn observe(
        &mut self,
        facts: &Facts,
        generation: i64,
        status: &impl Serialize,
        queue: &mut EffectQueue,
    ) -> bool {
        let stored = StoredStatus::of(status);
        if stored != self.stored {
            self.overwrites.observe_foreign(&facts.resource_version);
        }
        let is_same = stored == self.stored && generation == self.generation;
        self.generation = generation;
        self.stored = stored;
        for recorded in &mut self.recorded_transitions {
            recorded.confirm(&self.stored.conditions, &facts.resource_version, queue);
        }
        self.observe_version(facts) || !is_same
    }

    /// Only the resourceVersion changed. Returns whether a write was waiting for that.
    pub(crate) fn observe_version(&mut self, facts: &Facts) -> bool {
        self.resource_version = facts.resource_version.clone();
        self.conflicting_version
            .take_if(|conflicting_version| *conflicting_version != self.resource_version)
            .is_some()
    }

    /// Takes the evaluated conditions and requests a write: urgent on a transition or if the caller says so,
    /// postponed if another controller overwrites the status.
    pub(crate) fn request_write(
        &mut self,
        conditions: impl IntoIterator<Item = (&'static str, Option<ConditionStatus>)>,
        is_urgent: bool,
        now: Timestamp,
        queue: &mut EffectQueue,
    ) {
        let before = std::mem::take(&mut self.desired);
        let mut has_transition = is_urgent || self.stored.observed_generation != Some(self.generation);
        for (type_, status) in conditions {
            let stored = stored_condition::status(self.stored(), type_) == status;
            has_transition |= !stored;
            // The same status that is no longer stored was overwritten: it counts as a new transition.
            let is_kept = |desired: &&DesiredCondition| {
                desired.type_ == type_ && desired.status == status && (stored || !desired.stored)
            };
            let since = before.iter().find(is_kept).map_or(now, |desired| desired.since);
            self.desired.push(DesiredCondition { type_, status, since, stored });
        }
        if let Some(until) = self.overwrites.backs_off_until(now) {
            queue.schedule(until, self.timer());
            return self.withdraw(queue);
        }
        let urgency = if has_transition { Urgency::Transition } else { Urgency::MessageOnly };
        queue.effects.push(Effect::EnqueueWrite(self.slot.clone(), Some(urgency)));
    }

    pub(crate) fn withdraw(&self, queue: &mut EffectQueue) {
        queue.effects.push(Effect::EnqueueWrite(self.slot.clone(), None));
    }

    /// The patch that makes the stored status this one. `None` if they are equal, if the known version is
    /// outdated, or if the stored status describes a newer generation than ours.
    pub(crate) fn render_write(&self, status: &impl Serialize) -> Option<Write> {
        let own =
            self.stored().iter().filter(|condition| self.condition_set.own.contains(&&*condition.type_));
        let observed = own.map(|condition| condition.observed_generation);
        let observed = observed.chain([self.stored.observed_generation]);
        if self.conflicting_version.as_ref() == Some(&self.resource_version)
            || bellwether_conditions::has_newer_generation(observed, Some(self.generation))
        {
            return None;
        }
        let patch = self.stored.patch(status)?;
        Some(Write::Status {
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            transitions: self.transitions(&patch),
            patch: Arc::new(patch),
            owned_kinds: Box::default(),
        })
    }

    /// The transitions to record once this patch is written.
    fn transitions(&self, patch: &Value) -> Box<[Transition]> {
        let mut patched = StoredStatus::default();
        patched.merge(patch);
        let transition = |recorded: &RecordedTransition| {
            let condition = find(&patched.conditions, recorded.type_)?;
            let from = stored_condition::status(self.stored(), recorded.type_);
            let to = condition.status();
            let since = condition.last_transition_time.as_ref()?.0;
            (from != Some(to)).then(|| Transition {
                object: self.slot.object.clone(),
                uid: self.uid.clone(),
                condition: recorded.type_,
                from,
                to,
                since,
                reason: condition.reason.as_deref().unwrap_or_default().into(),
                message: condition.message.as_deref().unwrap_or_default().into(),
                good: recorded.good.is_none_or(|good| good == to),
            })
        };
        self.recorded_transitions.iter().filter_map(transition).collect()
    }

    /// Handles the outcome of a write. Returns the new resourceVersion, if it is newer than the known one.
    pub(crate) fn written(
        &mut self,
        write: &Write,
        outcome: &Outcome,
        now: Timestamp,
        queue: &mut EffectQueue,
    ) -> Option<ResourceVersion> {
        let Write::Status { uid, resource_version: before, patch, transitions, .. } = write else {
            return None;
        };
        // The response may be so late that the name belongs to another object.
        if *uid != self.uid {
            return None;
        }
        match outcome {
            Outcome::Failed(_) => {
                for recorded in &mut self.recorded_transitions {
                    recorded.mark_unconfirmed(transitions);
                    // The watch may have reported the write before the request timed out.
                    recorded.confirm(&self.stored.conditions, &self.resource_version, queue);
                }
            }
            Outcome::Written(version) => {
                for recorded in &mut self.recorded_transitions {
                    recorded.unconfirmed = None;
                    if let Some(transition) =
                        transitions.iter().find(|transition| transition.condition == recorded.type_)
                    {
                        recorded.record(transition.clone(), version.as_ref(), queue);
                    }
                }
            }
            Outcome::Conflict if *before == self.resource_version => {
                self.conflicting_version = Some(before.clone());
                if let Ok(time) = now.checked_add(CONFLICT_TIMEOUT) {
                    queue.schedule(time, self.timer());
                }
            }
            Outcome::Conflict | Outcome::FieldConflict(_) | Outcome::NotFound | Outcome::Rejected(_) => {}
        }
        let Outcome::Written(Some(version)) = outcome else { return None };
        // The watch has reported a newer version already.
        if version.is_before(&self.resource_version) {
            return None;
        }
        self.stored.merge(patch);
        self.resource_version = version.clone();
        if let Some(remedy) = self.condition_set.overwrite_hint
            && self.overwrites.record_own_write(version, now)
        {
            queue.effects.push(Effect::Warn(self.warning(remedy)));
        }
        for desired in &mut self.desired {
            desired.stored =
                stored_condition::status(&self.stored.conditions, desired.type_) == desired.status;
        }
        Some(version.clone())
    }

    pub(crate) fn clock_set(&mut self, by: SignedDuration) {
        self.overwrites.clock_set(by);
    }

    fn warning(&self, remedy: &str) -> Warning {
        Warning {
            object: self.slot.object.clone(),
            uid: self.uid.clone(),
            reason: reasons::event::STATUS_OVERWRITTEN,
            message: format!(
                "another controller overwrites this status: {remedy}. Until then, Bellwether backs off"
            )
            .into(),
        }
    }

    /// Writes again although no newer version has arrived.
    pub(crate) fn retry(&mut self) {
        self.conflicting_version = None;
    }

    /// Whether to evaluate after a write: the written status may be outdated already.
    pub(crate) fn is_behind(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Conflict => true,
            Outcome::Written(_) => self.desired.iter().any(|desired| !desired.stored),
            Outcome::FieldConflict(_) | Outcome::NotFound | Outcome::Rejected(_) | Outcome::Failed(_) => {
                false
            }
        }
    }
}

impl RecordedTransition {
    fn new(type_: &'static str, good: Option<ConditionStatus>) -> Self {
        Self { type_, good, unconfirmed: None, recorded: None, recorded_version: None }
    }

    /// The write got no response. An earlier transition may be in doubt already; this one replaces it.
    fn mark_unconfirmed(&mut self, transitions: &[Transition]) {
        if let Some(transition) = transitions.iter().find(|transition| transition.condition == self.type_) {
            self.unconfirmed = Some(transition.clone());
        }
    }

    /// If the transition is stored, the write succeeded although its response was lost.
    fn confirm(&mut self, stored: &[StoredCondition], version: &ResourceVersion, queue: &mut EffectQueue) {
        let status = stored_condition::status(stored, self.type_);
        self.recorded.take_if(|recorded| Some(*recorded) != status);
        let since = find(stored, self.type_).and_then(|condition| condition.last_transition_time.as_ref());
        // The time tells our write from the same status written by another replica.
        let is_stored = |transition: &mut Transition| {
            status == Some(transition.to) && since.is_some_and(|since| since.0 == transition.since)
        };
        if let Some(transition) = self.unconfirmed.take_if(is_stored) {
            self.record(transition, Some(version), queue);
        }
    }

    /// Queues the Event, unless an earlier attempt at the same write has recorded it.
    fn record(&mut self, transition: Transition, version: Option<&ResourceVersion>, queue: &mut EffectQueue) {
        if version.is_some() && self.recorded_version.as_ref() == version {
            return;
        }
        self.recorded_version = version.cloned();
        if self.recorded.replace(transition.to) != Some(transition.to) {
            queue.effects.push(Effect::Record(transition));
        }
    }
}

fn find<'a>(conditions: &'a [StoredCondition], type_: &str) -> Option<&'a StoredCondition> {
    conditions.iter().find(|condition| *condition.type_ == *type_)
}
