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
pub(crate) const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// What the status of a kind says in conditions.
#[derive(Debug)]
pub(crate) struct ConditionSet {
    /// The types of the conditions that are ours.
    pub(crate) own: &'static [&'static str],
    /// The types of the conditions whose turns people are told of, and what they are when all is well; nothing if they
    /// may be either.
    pub(crate) told: &'static [(&'static str, Option<ConditionStatus>)],
    /// What those conditions have besides.
    pub(crate) form: ConditionShape,
    /// If another controller may write the same: how to stop one of the two.
    pub(crate) contested: Option<&'static str>,
}

/// What is published about an object, in its own status.
#[derive(Debug)]
pub(crate) struct Publication {
    group: GroupRef,
    slot: Slot,
    manner: &'static ConditionSet,
    pub(crate) uid: Box<str>,
    version: ResourceVersion,
    pub(crate) generation: i64,
    /// The status as the cluster has it, as far as we know.
    stored: StoredStatus,
    /// The conditions as they were when they were last looked at.
    looks: Vec<DesiredCondition>,
    /// Of each condition whose turns people are told of, what they were told.
    tellings: Vec<Announcement>,
    /// A version that is not the latest, as we were told. Before another one is known, nothing can be written; but not every
    /// word about that is true.
    outdated: Option<ResourceVersion>,
    contest: WriteConflict,
}

/// What people are told of a condition.
#[derive(Debug)]
struct Announcement {
    kind: &'static str,
    /// What it is when all is well; nothing if it may be either.
    good: Option<ConditionStatus>,
    /// A turn that may have been written: the API server has not answered.
    in_doubt: Option<Transition>,
    /// What they were told last, as long as that is stored, and the version in which it was.
    told: Option<ConditionStatus>,
    told_of: Option<ResourceVersion>,
}

/// A condition as it should be.
#[derive(Debug)]
struct DesiredCondition {
    kind: &'static str,
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
        manner: &'static ConditionSet,
        facts: &Facts,
        generation: i64,
        status: &impl Serialize,
    ) -> Self {
        Self {
            slot: Slot { object: group.object(), part: Part::Status },
            group,
            manner,
            uid: facts.uid.clone(),
            version: facts.version.clone(),
            generation,
            stored: StoredStatus::of(status),
            looks: Vec::new(),
            tellings: manner.told.iter().map(|(kind, good)| Announcement::new(kind, *good)).collect(),
            outdated: None,
            contest: WriteConflict::default(),
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
    pub(crate) fn last_said(&self) -> Option<Vec<(&'static str, Statement)>> {
        let said = |kind: &&'static str| Some((*kind, stored_condition::statement(self.stored(), kind)?));
        let is_current = self.stored.observed_generation == Some(self.generation);
        let is_said =
            |look: &DesiredCondition| stored_condition::status(self.stored(), look.kind) == look.status;
        let is_true = !self.looks.is_empty() && self.looks.iter().all(is_said);
        (is_current && (is_true || Bug::TellTheLastWord.is_planted()))
            .then(|| self.manner.own.iter().filter_map(said).collect())
    }

    /// Since when a condition has this status: as is stored, or else since it was seen to.
    pub(crate) fn since(&self, kind: &str, status: ConditionStatus) -> Option<Timestamp> {
        let stored = || {
            let has_status =
                |condition: &&StoredCondition| *condition.kind == *kind && condition.status() == status;
            Some(self.stored().iter().find(has_status)?.last_transition_time.as_ref()?.0)
        };
        let seen = || {
            let look = self.looks.iter().find(|look| look.kind == kind && look.status == Some(status))?;
            stored_condition::whole_seconds(look.since)
        };
        stored().or_else(seen)
    }

    /// The conditions that say this, among those that are stored.
    pub(crate) fn conditions<'a>(
        &self,
        statements: impl IntoIterator<Item = (&'a str, Option<Statement>)>,
        now: Timestamp,
    ) -> Vec<StoredCondition> {
        let since = |kind: &str, status: ConditionStatus| {
            let is_it = |look: &&DesiredCondition| look.kind == kind && look.status == Some(status);
            self.looks.iter().find(is_it).map_or(now, |look| look.since)
        };
        let manner = (self.manner.own, self.manner.form);
        stored_condition::conditions(self.stored(), manner, statements, self.generation, now, since)
    }

    /// The object has been seen again. Gives back whether its status has to be looked at.
    pub(crate) fn seen(
        &mut self,
        facts: &Facts,
        generation: i64,
        status: &impl Serialize,
        desk: &mut EffectQueue,
    ) -> bool {
        let stored = StoredStatus::of(status);
        if stored != self.stored {
            self.contest.differs(&facts.version);
        }
        let is_same = stored == self.stored && generation == self.generation;
        self.generation = generation;
        self.stored = stored;
        for telling in &mut self.tellings {
            telling.resolve_doubt(&self.stored.conditions, &facts.version, desk);
        }
        self.seen_again(facts) || !is_same
    }

    /// The object has another version, and nothing else about it has changed. Gives back whether its status has to be
    /// looked at.
    pub(crate) fn seen_again(&mut self, facts: &Facts) -> bool {
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
        desk: &mut EffectQueue,
    ) {
        let before = std::mem::take(&mut self.looks);
        let mut turns = is_urgent || self.stored.observed_generation != Some(self.generation);
        for (kind, status) in conditions {
            let stored = stored_condition::status(self.stored(), kind) == status;
            turns |= !stored;
            // Where it is as before, and is not stored so any more, somebody has overwritten it.
            let is_kept = |look: &&DesiredCondition| {
                look.kind == kind && look.status == status && (stored || !look.stored)
            };
            let since = before.iter().find(is_kept).map_or(now, |look| look.since);
            self.looks.push(DesiredCondition { kind, status, since, stored });
        }
        if let Some(until) = self.contest.rests_until(now) {
            desk.at(until, self.timer());
            return self.withdraw(desk);
        }
        let haste = if turns { Urgency::Transition } else { Urgency::MessageOnly };
        desk.effects.push(Effect::Want(self.slot.clone(), Some(haste)));
    }

    /// Nothing is to be written any more.
    pub(crate) fn withdraw(&self, desk: &mut EffectQueue) {
        desk.effects.push(Effect::Want(self.slot.clone(), None));
    }

    /// What has to be written so that the object has this status; nothing if it does, or if somebody who has seen a newer
    /// generation has spoken.
    pub(crate) fn change(&self, status: &impl Serialize) -> Option<Change> {
        let own = self.stored().iter().filter(|condition| self.manner.own.contains(&&*condition.kind));
        let observed = own.map(|condition| condition.observed_generation);
        let observed = observed.chain([self.stored.observed_generation]);
        if self.outdated.as_ref() == Some(&self.version)
            || bellwether_conditions::is_outrun(observed, Some(self.generation))
        {
            return None;
        }
        let patch = self.stored.patch(status)?;
        Some(Change::Status {
            uid: self.uid.clone(),
            version: self.version.clone(),
            told: self.told(&patch),
            patch: Arc::new(patch),
            claims: Box::default(),
        })
    }

    /// The turns that people are told of once this patch is written.
    fn told(&self, patch: &Value) -> Box<[Transition]> {
        let mut patched = StoredStatus::default();
        patched.merge(patch);
        let turn = |telling: &Announcement| {
            let condition = find(&patched.conditions, telling.kind)?;
            let from = stored_condition::status(self.stored(), telling.kind);
            let to = condition.status();
            let since = condition.last_transition_time.as_ref()?.0;
            (from != Some(to)).then(|| Transition {
                object: self.slot.object.clone(),
                uid: self.uid.clone(),
                condition: telling.kind,
                from,
                to,
                since,
                reason: condition.reason.as_deref().unwrap_or_default().into(),
                message: condition.message.as_deref().unwrap_or_default().into(),
                good: telling.good.is_none_or(|good| good == to),
            })
        };
        self.tellings.iter().filter_map(turn).collect()
    }

    /// A write of the status has ended. Gives back the version that the object has now, if that is news.
    pub(crate) fn written(
        &mut self,
        change: &Change,
        outcome: &Outcome,
        now: Timestamp,
        desk: &mut EffectQueue,
    ) -> Option<ResourceVersion> {
        let Change::Status { uid, version: before, patch, told, .. } = change else { return None };
        // An answer may come so late that the name is another object's by now.
        if *uid != self.uid {
            return None;
        }
        match outcome {
            Outcome::Failed(_) => {
                for telling in &mut self.tellings {
                    telling.doubt(told);
                    // That it is stored may have been seen before it was known that no answer comes.
                    telling.resolve_doubt(&self.stored.conditions, &self.version, desk);
                }
            }
            Outcome::Done(version) => {
                for telling in &mut self.tellings {
                    telling.in_doubt = None;
                    if let Some(turn) = told.iter().find(|turn| turn.condition == telling.kind) {
                        telling.tell(turn.clone(), version.as_ref(), desk);
                    }
                }
            }
            Outcome::Conflict if *before == self.version => {
                self.outdated = Some(before.clone());
                if let Ok(time) = now.checked_add(PATIENCE) {
                    desk.at(time, self.timer());
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
        if let Some(way_out) = self.manner.contested
            && self.contest.wrote(version, now)
        {
            desk.effects.push(Effect::Warn(self.warning(way_out)));
        }
        for look in &mut self.looks {
            look.stored = stored_condition::status(&self.stored.conditions, look.kind) == look.status;
        }
        Some(version.clone())
    }

    /// Somebody has set the clock.
    pub(crate) fn clock_set(&mut self, by: SignedDuration) {
        self.contest.clock_set(by);
    }

    fn warning(&self, way_out: &str) -> Warning {
        Warning {
            object: self.slot.object.clone(),
            uid: self.uid.clone(),
            reason: reasons::event::STATUS_OVERWRITTEN,
            message: format!(
                "another controller writes this status, too, and each writes over what the other says: {way_out}; until \
                 then it writes less and less often"
            )
            .into(),
        }
    }

    /// Another version should be known by now, if there is one.
    pub(crate) fn try_again(&mut self) {
        self.outdated = None;
    }

    /// Whether its status has to be looked at after a write has ended so: what was written may not be true any more.
    pub(crate) fn is_behind(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Conflict => true,
            Outcome::Done(_) => self.looks.iter().any(|look| !look.stored),
            Outcome::FieldConflict(_) | Outcome::Absent | Outcome::Refused(_) | Outcome::Failed(_) => false,
        }
    }
}

impl Announcement {
    fn new(kind: &'static str, good: Option<ConditionStatus>) -> Self {
        Self { kind, good, in_doubt: None, told: None, told_of: None }
    }

    /// Nobody has answered to a patch that would have made these turns. An earlier turn may be in doubt still, and whatever
    /// became of it, this attempt does not say.
    fn doubt(&mut self, told: &[Transition]) {
        if let Some(turn) = told.iter().find(|turn| turn.condition == self.kind) {
            self.in_doubt = Some(turn.clone());
        }
    }

    /// A turn that is stored in this version was written, though the answer was lost.
    fn resolve_doubt(
        &mut self,
        stored: &[StoredCondition],
        version: &ResourceVersion,
        desk: &mut EffectQueue,
    ) {
        let status = stored_condition::status(stored, self.kind);
        self.told.take_if(|told| Some(*told) != status);
        let since = find(stored, self.kind).and_then(|condition| condition.last_transition_time.as_ref());
        // Somebody else may have written the same, at another time.
        let is_it = |turn: &mut Transition| {
            status == Some(turn.to) && since.is_some_and(|since| since.0 == turn.since)
        };
        if let Some(turn) = self.in_doubt.take_if(is_it) {
            self.tell(turn, Some(version), desk);
        }
    }

    /// Tells people of a turn, unless they were told already: it may have been tried more than once.
    fn tell(&mut self, turn: Transition, version: Option<&ResourceVersion>, desk: &mut EffectQueue) {
        if version.is_some() && self.told_of.as_ref() == version {
            return;
        }
        self.told_of = version.cloned();
        if self.told.replace(turn.to) != Some(turn.to) {
            desk.effects.push(Effect::Record(turn));
        }
    }
}

fn find<'a>(conditions: &'a [StoredCondition], kind: &str) -> Option<&'a StoredCondition> {
    conditions.iter().find(|condition| *condition.kind == *kind)
}
