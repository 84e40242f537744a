//! The status of one of our own objects: as the cluster has it, and as it should be.

use std::sync::Arc;

use bellwether_api::ConditionStatus;
use bellwether_conditions::Statement;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::{
    effect::{Change, Effect, Part, Slot, Transition, Urgency, Warning},
    effect_queue::{EffectQueue, Timer},
    event::Outcome,
    facts::{Facts, ResourceVersion},
    group_ref::GroupRef,
    planted::Bug,
    reasons,
    stored_condition::{self, ConditionShape, StoredCondition},
    stored_status::StoredStatus,
    write_conflict::WriteConflict,
};

/// So long is waited for news of what a write conflicts with.
pub(crate) const CONFLICT_TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

/// What the status of a kind says in conditions.
#[derive(Debug)]
pub(crate) struct ConditionSet {
    /// The types of the conditions that are ours.
    pub(crate) own: &'static [&'static str],
    /// The types of the conditions whose turns people are told of, and what they are when all is well; nothing if they
    /// may be either.
    pub(crate) announced: &'static [(&'static str, Option<ConditionStatus>)],
    /// What those conditions have besides.
    pub(crate) shape: ConditionShape,
    /// If another controller may write the same: how to stop one of the two.
    pub(crate) conflict_hint: Option<&'static str>,
}

/// What is published about an object, in its own status.
#[derive(Debug)]
pub(crate) struct Publication {
    group: GroupRef,
    slot: Slot,
    condition_set: &'static ConditionSet,
    pub(crate) uid: Box<str>,
    version: ResourceVersion,
    pub(crate) generation: i64,
    /// The status as the cluster has it, as far as we know.
    stored: StoredStatus,
    /// The conditions as they were when they were last looked at.
    desired: Vec<DesiredCondition>,
    /// Of each condition whose turns people are told of, what they were told.
    announcements: Vec<Announcement>,
    /// A version that is not the latest, as we were told. Before another one is known, nothing can be written; but not every
    /// word about that is true.
    outdated: Option<ResourceVersion>,
    conflict: WriteConflict,
}

/// What people are told of a condition.
#[derive(Debug)]
struct Announcement {
    type_: &'static str,
    /// What it is when all is well; nothing if it may be either.
    good: Option<ConditionStatus>,
    /// A transition that may have been written: the API server has not answered.
    in_doubt: Option<Transition>,
    /// What they were told last, as long as that is stored, and the version in which it was.
    announced: Option<ConditionStatus>,
    announced_version: Option<ResourceVersion>,
}

/// A condition as it should be.
#[derive(Debug)]
struct DesiredCondition {
    type_: &'static str,
    /// What it is, if it is there.
    status: Option<ConditionStatus>,
    /// When it turned, or when somebody overwrote it.
    since: Timestamp,
    /// Whether it is stored so.
    stored: bool,
}

impl Publication {
    /// Of an object that has been found.
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
            version: facts.version.clone(),
            generation,
            stored: StoredStatus::of(status),
            desired: Vec::new(),
            announcements: condition_set
                .announced
                .iter()
                .map(|(type_, good)| Announcement::new(type_, *good))
                .collect(),
            outdated: None,
            conflict: WriteConflict::default(),
        }
    }

    /// The group that it is about.
    pub(crate) fn group(&self) -> &GroupRef {
        &self.group
    }

    /// What wakes the group.
    pub(crate) fn timer(&self) -> Timer {
        Timer::Group(self.group.clone())
    }

    /// The conditions that the cluster has, as far as we know.
    pub(crate) fn stored(&self) -> &[StoredCondition] {
        &self.stored.conditions
    }

    /// What was said last in our conditions, if that was about the object as it is written now, and if it is what was found
    /// when they were last looked at: nobody may have written that yet.
    pub(crate) fn last_published(&self) -> Option<Vec<(&'static str, Statement)>> {
        let statement =
            |type_: &&'static str| Some((*type_, stored_condition::statement(self.stored(), type_)?));
        let is_current = self.stored.observed_generation == Some(self.generation);
        let is_stored = |desired: &DesiredCondition| {
            stored_condition::status(self.stored(), desired.type_) == desired.status
        };
        let is_accurate = !self.desired.is_empty() && self.desired.iter().all(is_stored);
        (is_current && (is_accurate || Bug::TellTheLastWord.is_planted()))
            .then(|| self.condition_set.own.iter().filter_map(statement).collect())
    }

    /// Since when a condition has this status: as is stored, or else since it was seen to.
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

    /// The conditions that say this, among those that are stored.
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

    /// The object has been seen again. Gives back whether its status has to be looked at.
    pub(crate) fn observe(
        &mut self,
        facts: &Facts,
        generation: i64,
        status: &impl Serialize,
        queue: &mut EffectQueue,
    ) -> bool {
        let stored = StoredStatus::of(status);
        if stored != self.stored {
            self.conflict.differs(&facts.version);
        }
        let is_same = stored == self.stored && generation == self.generation;
        self.generation = generation;
        self.stored = stored;
        for announcement in &mut self.announcements {
            announcement.resolve_doubt(&self.stored.conditions, &facts.version, queue);
        }
        self.observe_version(facts) || !is_same
    }

    /// The object has another version, and nothing else about it has changed. Gives back whether its status has to be
    /// looked at.
    pub(crate) fn observe_version(&mut self, facts: &Facts) -> bool {
        self.version = facts.version.clone();
        self.outdated.take_if(|outdated| *outdated != self.version).is_some()
    }

    /// The conditions are these now. Asks for them to be written, and for whatever words go with them: at once if one has
    /// turned, or if something else is waited for; later if somebody else writes the same.
    pub(crate) fn want(
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
            // Where it is as before, and is not stored so any more, somebody has overwritten it.
            let is_kept = |desired: &&DesiredCondition| {
                desired.type_ == type_ && desired.status == status && (stored || !desired.stored)
            };
            let since = before.iter().find(is_kept).map_or(now, |desired| desired.since);
            self.desired.push(DesiredCondition { type_, status, since, stored });
        }
        if let Some(until) = self.conflict.backs_off_until(now) {
            queue.schedule(until, self.timer());
            return self.withdraw(queue);
        }
        let urgency = if has_transition { Urgency::Transition } else { Urgency::MessageOnly };
        queue.effects.push(Effect::Want(self.slot.clone(), Some(urgency)));
    }

    /// Nothing is to be written any more.
    pub(crate) fn withdraw(&self, queue: &mut EffectQueue) {
        queue.effects.push(Effect::Want(self.slot.clone(), None));
    }

    /// What has to be written so that the object has this status; nothing if it does, or if somebody who has seen a newer
    /// generation has spoken.
    pub(crate) fn change(&self, status: &impl Serialize) -> Option<Change> {
        let own =
            self.stored().iter().filter(|condition| self.condition_set.own.contains(&&*condition.type_));
        let observed = own.map(|condition| condition.observed_generation);
        let observed = observed.chain([self.stored.observed_generation]);
        if self.outdated.as_ref() == Some(&self.version)
            || bellwether_conditions::has_newer_generation(observed, Some(self.generation))
        {
            return None;
        }
        let patch = self.stored.patch(status)?;
        Some(Change::Status {
            uid: self.uid.clone(),
            version: self.version.clone(),
            transitions: self.transitions(&patch),
            patch: Arc::new(patch),
            claims: Box::default(),
        })
    }

    /// The turns that people are told of once this patch is written.
    fn transitions(&self, patch: &Value) -> Box<[Transition]> {
        let mut patched = StoredStatus::default();
        patched.merge(patch);
        let transition = |announcement: &Announcement| {
            let condition = find(&patched.conditions, announcement.type_)?;
            let from = stored_condition::status(self.stored(), announcement.type_);
            let to = condition.status();
            let since = condition.last_transition_time.as_ref()?.0;
            (from != Some(to)).then(|| Transition {
                object: self.slot.object.clone(),
                uid: self.uid.clone(),
                condition: announcement.type_,
                from,
                to,
                since,
                reason: condition.reason.as_deref().unwrap_or_default().into(),
                message: condition.message.as_deref().unwrap_or_default().into(),
                good: announcement.good.is_none_or(|good| good == to),
            })
        };
        self.announcements.iter().filter_map(transition).collect()
    }

    /// A write of the status has ended. Gives back the version that the object has now, if that is news.
    pub(crate) fn written(
        &mut self,
        change: &Change,
        outcome: &Outcome,
        now: Timestamp,
        queue: &mut EffectQueue,
    ) -> Option<ResourceVersion> {
        let Change::Status { uid, version: before, patch, transitions, .. } = change else { return None };
        // An answer may come so late that the name is another object's by now.
        if *uid != self.uid {
            return None;
        }
        match outcome {
            Outcome::Failed(_) => {
                for announcement in &mut self.announcements {
                    announcement.mark_in_doubt(transitions);
                    // That it is stored may have been seen before it was known that no answer comes.
                    announcement.resolve_doubt(&self.stored.conditions, &self.version, queue);
                }
            }
            Outcome::Done(version) => {
                for announcement in &mut self.announcements {
                    announcement.in_doubt = None;
                    if let Some(transition) =
                        transitions.iter().find(|transition| transition.condition == announcement.type_)
                    {
                        announcement.announce(transition.clone(), version.as_ref(), queue);
                    }
                }
            }
            Outcome::Conflict if *before == self.version => {
                self.outdated = Some(before.clone());
                if let Ok(time) = now.checked_add(CONFLICT_TIMEOUT) {
                    queue.schedule(time, self.timer());
                }
            }
            Outcome::Conflict | Outcome::FieldConflict(_) | Outcome::Absent | Outcome::Refused(_) => {}
        }
        let Outcome::Done(Some(version)) = outcome else { return None };
        // What a watch has shown since is newer than what we know.
        if version.is_before(&self.version) {
            return None;
        }
        self.stored.merge(patch);
        self.version = version.clone();
        if let Some(remedy) = self.condition_set.conflict_hint
            && self.conflict.wrote(version, now)
        {
            queue.effects.push(Effect::Warn(self.warning(remedy)));
        }
        for desired in &mut self.desired {
            desired.stored =
                stored_condition::status(&self.stored.conditions, desired.type_) == desired.status;
        }
        Some(version.clone())
    }

    /// Somebody has set the clock.
    pub(crate) fn clock_set(&mut self, by: SignedDuration) {
        self.conflict.clock_set(by);
    }

    fn warning(&self, remedy: &str) -> Warning {
        Warning {
            object: self.slot.object.clone(),
            uid: self.uid.clone(),
            reason: reasons::event::STATUS_OVERWRITTEN,
            message: format!(
                "another controller overwrites this status: {remedy}; until then Bellwether writes it less and less \
                 often"
            )
            .into(),
        }
    }

    /// Another version should be known by now, if there is one.
    pub(crate) fn retry(&mut self) {
        self.outdated = None;
    }

    /// Whether its status has to be looked at after a write has ended so: what was written may not be true any more.
    pub(crate) fn is_behind(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Conflict => true,
            Outcome::Done(_) => self.desired.iter().any(|desired| !desired.stored),
            Outcome::FieldConflict(_) | Outcome::Absent | Outcome::Refused(_) | Outcome::Failed(_) => false,
        }
    }
}

impl Announcement {
    fn new(type_: &'static str, good: Option<ConditionStatus>) -> Self {
        Self { type_, good, in_doubt: None, announced: None, announced_version: None }
    }

    /// Nobody has answered to a patch that would have made these turns. An earlier transition may be in doubt still, and whatever
    /// became of it, this attempt does not say.
    fn mark_in_doubt(&mut self, transitions: &[Transition]) {
        if let Some(transition) = transitions.iter().find(|transition| transition.condition == self.type_) {
            self.in_doubt = Some(transition.clone());
        }
    }

    /// A transition that is stored in this version was written, though the answer was lost.
    fn resolve_doubt(
        &mut self,
        stored: &[StoredCondition],
        version: &ResourceVersion,
        queue: &mut EffectQueue,
    ) {
        let status = stored_condition::status(stored, self.type_);
        self.announced.take_if(|announced| Some(*announced) != status);
        let since = find(stored, self.type_).and_then(|condition| condition.last_transition_time.as_ref());
        // Somebody else may have written the same, at another time.
        let is_stored = |transition: &mut Transition| {
            status == Some(transition.to) && since.is_some_and(|since| since.0 == transition.since)
        };
        if let Some(transition) = self.in_doubt.take_if(is_stored) {
            self.announce(transition, Some(version), queue);
        }
    }

    /// Tells people of a transition, unless they were told already: it may have been tried more than once.
    fn announce(
        &mut self,
        transition: Transition,
        version: Option<&ResourceVersion>,
        queue: &mut EffectQueue,
    ) {
        if version.is_some() && self.announced_version.as_ref() == version {
            return;
        }
        self.announced_version = version.cloned();
        if self.announced.replace(transition.to) != Some(transition.to) {
            queue.effects.push(Effect::Record(transition));
        }
    }
}

fn find<'a>(conditions: &'a [StoredCondition], type_: &str) -> Option<&'a StoredCondition> {
    conditions.iter().find(|condition| *condition.type_ == *type_)
}
