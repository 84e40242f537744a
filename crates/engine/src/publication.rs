//! The status of one of our own objects: what is stored in the cluster, and what it should be. Decides when a
//! write is needed, guards it with the resourceVersion, and records each transition as an Event once.

use std::sync::Arc;

use bellwether_api::{ConditionStatus, EventType, LastEvent};
use bellwether_conditions::Statement;
use bellwether_model::State;
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
    reasons, state_event,
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
    /// Of what each transition is recorded as an Event.
    pub(crate) recorded: &'static [Recorded],
    pub(crate) shape: ConditionShape,
    /// If another controller may write the same status: how to stop one of the two.
    pub(crate) overwrite_hint: Option<&'static str>,
}

/// What is recorded as Events when it changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recorded {
    /// The state of the group, by the rules of [`state_event`].
    State(StateInStatus),
    /// The status of a condition. With a good status: a Warning for every other one.
    Condition(&'static str, Option<ConditionStatus>),
}

/// Where a status has the state that Events have reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateInStatus {
    pub(crate) last_event: fn(&StoredStatus) -> Option<LastEvent>,
    /// Why it is in this state.
    pub(crate) message: fn(&[StoredCondition]) -> Option<&str>,
}

#[derive(Debug)]
pub(crate) struct Publication {
    group: GroupRef,
    slot: Slot,
    condition_set: &'static ConditionSet,
    pub(crate) uid: Box<str>,
    resource_version: ResourceVersion,
    pub(crate) generation: i64,
    created: Option<Timestamp>,
    /// As last observed or written.
    stored: StoredStatus,
    /// The result of the last evaluation.
    desired: Vec<DesiredCondition>,
    /// `None` if the status has no state.
    desired_state: Option<State>,
    /// Changes of the state since the start of the process, for metrics.
    pub(crate) transitions: u64,
    /// The `lastEvent` of the last evaluation.
    desired_event: Option<LastEvent>,
    /// One for each of [`ConditionSet::recorded`].
    recorded_transitions: Vec<RecordedTransition>,
    /// The resourceVersion of a write that got a 409. Until another one is known, writing is pointless. After
    /// `CONFLICT_TIMEOUT` the write is tried again, because the 409 may have been wrong.
    conflicting_version: Option<ResourceVersion>,
    overwrites: OverwriteBackoff,
}

/// Which transition was recorded as an Event, so that each is recorded once.
#[derive(Debug)]
struct RecordedTransition {
    subject: Recorded,
    /// A transition whose write got no response. It may have reached the API server.
    unconfirmed: Option<Transition>,
    /// The last recorded transition, as long as it is stored.
    recorded: Option<(&'static str, bool)>,
    /// The resourceVersion with which it was recorded.
    recorded_version: Option<ResourceVersion>,
}

/// What is stored of a [`Recorded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoredValue {
    value: &'static str,
    good: bool,
    since: Option<Timestamp>,
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
        (generation, created): (i64, Option<Timestamp>),
        status: &impl Serialize,
    ) -> Self {
        Self {
            slot: Slot { object: group.object(), part: Part::Status },
            group,
            condition_set,
            uid: facts.uid.clone(),
            resource_version: facts.resource_version.clone(),
            generation,
            created,
            stored: StoredStatus::of(status),
            desired: Vec::new(),
            desired_state: None,
            transitions: 0,
            desired_event: None,
            recorded_transitions: condition_set
                .recorded
                .iter()
                .map(|subject| RecordedTransition::new(*subject))
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
        let has_state = self.desired_state.is_none_or(|state| self.stored.state == Some(state));
        let is_accurate = !self.desired.is_empty() && has_state && self.desired.iter().all(is_stored);
        (is_current && (is_accurate || Bug::AnswerWithStoredStatus.is_planted()))
            .then(|| self.condition_set.own.iter().filter_map(statement).collect())
    }

    /// The state by the last evaluation.
    pub(crate) fn desired_state(&self) -> Option<State> {
        self.desired_state
    }

    /// The stored `status.state`.
    pub(crate) fn stored_state(&self) -> Option<State> {
        self.stored.state
    }

    /// When the group changed to a state, by the stored `lastEvent`.
    pub(crate) fn state_since(&self, state: State) -> Option<Timestamp> {
        let event = self.stored.last_event.as_ref().filter(|event| event.state == state)?;
        Some(event.time.0)
    }

    /// The stored `lastTransitionTime`, if the condition is stored with this status.
    pub(crate) fn stored_since(&self, type_: &str, status: ConditionStatus) -> Option<Timestamp> {
        let has_status =
            |condition: &&StoredCondition| *condition.type_ == *type_ && condition.status() == status;
        Some(self.stored().iter().find(has_status)?.last_transition_time.as_ref()?.0)
    }

    /// The stored `lastTransitionTime`; if the status is not stored yet, when it was first evaluated.
    pub(crate) fn since(&self, type_: &str, status: ConditionStatus) -> Option<Timestamp> {
        let evaluated = || {
            let desired = self
                .desired
                .iter()
                .find(|desired| desired.type_ == type_ && desired.status == Some(status))?;
            stored_condition::whole_seconds(desired.since)
        };
        self.stored_since(type_, status).or_else(evaluated)
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
            recorded.confirm(&self.stored, &facts.resource_version, queue);
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

    /// What Events will have reported once the status is written, and when time alone changes that.
    pub(crate) fn next_event(&self, state: State, now: Timestamp) -> (Option<LastEvent>, Option<Timestamp>) {
        let mut recorded = self.condition_set.recorded.iter();
        let stored = recorded.find_map(|recorded| match recorded {
            Recorded::State(state) => (state.last_event)(&self.stored),
            Recorded::Condition(..) => None,
        });
        state_event::next(stored.as_ref(), state, self.created, now)
    }

    /// The `lastEvent` to store.
    pub(crate) fn last_event(&self, state: State, now: Timestamp) -> Option<LastEvent> {
        let (event, _) = self.next_event(state, now);
        event.map(|event| self.at_its_time(event))
    }

    /// Another attempt to write the same change has the time of the first.
    fn at_its_time(&self, event: LastEvent) -> LastEvent {
        let is_same = |desired: &&LastEvent| (desired.state, desired.type_) == (event.state, event.type_);
        let is_stored = self.stored.last_event.as_ref() == Some(&event);
        self.desired_event.as_ref().filter(is_same).filter(|_| !is_stored).cloned().unwrap_or(event)
    }

    /// Takes the evaluated conditions and state and requests a write: urgent on a transition or if the caller
    /// says so, postponed if another controller overwrites the status.
    pub(crate) fn request_write(
        &mut self,
        conditions: impl IntoIterator<Item = (&'static str, Option<ConditionStatus>)>,
        state: Option<State>,
        is_urgent: bool,
        now: Timestamp,
        queue: &mut EffectQueue,
    ) {
        let before = std::mem::take(&mut self.desired);
        let mut has_transition = is_urgent || self.stored.observed_generation != Some(self.generation);
        let mut has_new_state = state.is_some_and(|state| self.stored.state != Some(state));
        for (number, (type_, status)) in conditions.into_iter().enumerate() {
            let stored = stored_condition::status(self.stored(), type_) == status;
            has_transition |= !stored;
            // The first condition is the main one.
            has_new_state |= !stored && number == 0;
            // The same status that is no longer stored was overwritten: it counts as a new transition.
            let is_kept = |desired: &&DesiredCondition| {
                desired.type_ == type_ && desired.status == status && (stored || !desired.stored)
            };
            let since = before.iter().find(is_kept).map_or(now, |desired| desired.since);
            self.desired.push(DesiredCondition { type_, status, since, stored });
        }
        let before = std::mem::replace(&mut self.desired_state, state).or(self.stored.state);
        if let Some(state) = state {
            self.transitions += u64::from(before.is_some_and(|before| before != state));
            let (event, later) = self.next_event(state, now);
            has_transition |= event != self.stored.last_event;
            self.desired_event = event.map(|event| self.at_its_time(event));
            if let Some(later) = later {
                queue.schedule(later, self.timer());
            }
        }
        if let Some(until) = self.overwrites.backs_off_until(now) {
            queue.schedule(until, self.timer());
            return self.withdraw(queue);
        }
        let urgency = match () {
            () if has_new_state => Urgency::StateChange,
            () if has_transition => Urgency::Transition,
            () => Urgency::MessageOnly,
        };
        queue.effects.push(Effect::EnqueueWrite(self.slot.clone(), Some(urgency)));
    }

    pub(crate) fn withdraw(&self, queue: &mut EffectQueue) {
        queue.effects.push(Effect::EnqueueWrite(self.slot.clone(), None));
    }

    /// The patch that makes the stored status this one. `None` if they are equal, or if the known version is
    /// outdated.
    ///
    /// The generation and the stored status are from one version of the object. So a stored
    /// `observedGeneration` above the generation is wrong and is corrected. If another replica knows a newer
    /// generation, the object has a newer version, and the guard on `resourceVersion` rejects this write.
    pub(crate) fn render_write(&self, status: &impl Serialize) -> Option<Write> {
        if self.conflicting_version.as_ref() == Some(&self.resource_version) {
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
        if self.recorded_transitions.is_empty() {
            return Box::default();
        }
        let mut patched = self.stored.clone();
        patched.merge(patch);
        let transition = |recorded: &RecordedTransition| {
            let (from, to) = (recorded.subject.stored(&self.stored), recorded.subject.stored(&patched)?);
            if from.is_some_and(|from| (from.value, from.good) == (to.value, to.good)) {
                return None;
            }
            let (subject, reason, message) = match recorded.subject {
                Recorded::State(StateInStatus { last_event, message }) => {
                    let (before, event) = (last_event(&self.stored), last_event(&patched)?);
                    if !state_event::is_recorded(before.as_ref(), &event, self.created) {
                        return None;
                    }
                    (Transition::STATE, Some(to.value), message(&patched.conditions))
                }
                Recorded::Condition(type_, _) => {
                    let was_good = from.is_none_or(|from| from.good);
                    let is_change = from.is_some() && !state_event::is_early(to.since?, self.created);
                    if was_good && to.good && !is_change {
                        return None;
                    }
                    let condition = stored_condition::find(&patched.conditions, type_)?;
                    (type_, condition.reason.as_deref(), condition.message.as_deref())
                }
            };
            Some(Transition {
                object: self.slot.object.clone(),
                uid: self.uid.clone(),
                subject,
                from: from.map(|from| from.value),
                to: to.value,
                since: to.since?,
                reason: reason.unwrap_or_default().into(),
                message: message.unwrap_or_default().into(),
                good: to.good,
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
                    recorded.confirm(&self.stored, &self.resource_version, queue);
                }
            }
            Outcome::Written(version) => {
                for recorded in &mut self.recorded_transitions {
                    recorded.unconfirmed = None;
                    if let Some(transition) =
                        transitions.iter().find(|transition| transition.subject == recorded.subject.name())
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
            Outcome::Written(_) => {
                self.desired_state.is_some_and(|state| self.stored.state != Some(state))
                    || self.desired.iter().any(|desired| !desired.stored)
            }
            Outcome::FieldConflict(_) | Outcome::NotFound | Outcome::Rejected(_) | Outcome::Failed(_) => {
                false
            }
        }
    }
}

impl Recorded {
    fn name(self) -> &'static str {
        match self {
            Self::State(_) => Transition::STATE,
            Self::Condition(type_, _) => type_,
        }
    }

    fn stored(self, status: &StoredStatus) -> Option<StoredValue> {
        Some(match self {
            Self::State(state) => {
                let event = (state.last_event)(status)?;
                StoredValue {
                    value: event.state.name(),
                    good: event.type_ == EventType::Normal,
                    since: Some(event.time.0),
                }
            }
            Self::Condition(type_, good) => {
                let condition = stored_condition::find(&status.conditions, type_)?;
                StoredValue {
                    value: condition.status().name(),
                    good: good.is_none_or(|good| condition.status() == good),
                    since: condition.last_transition_time.as_ref().map(|time| time.0),
                }
            }
        })
    }
}

impl RecordedTransition {
    fn new(subject: Recorded) -> Self {
        Self { subject, unconfirmed: None, recorded: None, recorded_version: None }
    }

    /// The write got no response. An earlier transition may be in doubt already; this one replaces it.
    fn mark_unconfirmed(&mut self, transitions: &[Transition]) {
        let subject = self.subject.name();
        if let Some(transition) = transitions.iter().find(|transition| transition.subject == subject) {
            self.unconfirmed = Some(transition.clone());
        }
    }

    /// If the transition is stored, the write succeeded although its response was lost.
    fn confirm(&mut self, stored: &StoredStatus, version: &ResourceVersion, queue: &mut EffectQueue) {
        let stored = self.subject.stored(stored);
        self.recorded.take_if(|recorded| Some(*recorded) != stored.map(|stored| (stored.value, stored.good)));
        // The time tells our write from the same one by another replica.
        let is_stored = |transition: &mut Transition| {
            stored
                == Some(StoredValue {
                    value: transition.to,
                    good: transition.good,
                    since: Some(transition.since),
                })
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
        let key = (transition.to, transition.good);
        if self.recorded.replace(key) != Some(key) {
            queue.effects.push(Effect::Record(transition));
        }
    }
}
