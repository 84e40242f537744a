//! The status of one of our own objects: as the cluster has it, and as it should be.

use std::sync::Arc;

use bellwether_api::{ApplicationStatus, ConditionStatus, HealthRuleStatus};
use bellwether_conditions::Statement;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    desk::Desk,
    effect::{Change, Effect, Part, Slot, Turn},
    event::Outcome,
    facts::{Facts, Version},
    id::ObjectKey,
    patch::{self, field},
    said,
};

/// The status of a kind of ours.
pub(crate) trait Status: Clone + Serialize + DeserializeOwned {
    /// The types of the conditions that are ours.
    const OWN: &'static [&'static str];
    /// The type of the condition whose turns people are told of.
    const TOLD: &'static str;

    fn conditions(&self) -> &[Condition];
    fn observed_generation(&self) -> Option<i64>;

    /// The merge patch of every field in which the other differs.
    fn fields(&self, other: &Self) -> Map<String, Value>;
}

impl Status for ApplicationStatus {
    const OWN: &'static [&'static str] =
        &["Ready", "Settled", "Installed", "Resolved", "HealthCheckValid", "Adopted", "DependencyCycle"];
    const TOLD: &'static str = "Ready";

    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn observed_generation(&self) -> Option<i64> {
        self.observed_generation
    }

    fn fields(&self, other: &Self) -> Map<String, Value> {
        // A field that is not here would never be written: the compiler asks for each.
        let Self {
            observed_generation,
            ready,
            components_ready,
            progress,
            installed,
            missing,
            conditions,
            objects,
            object_counts,
            dependencies,
        } = other;
        [
            field("observedGeneration", &self.observed_generation, observed_generation),
            field("ready", &self.ready, ready),
            field("componentsReady", &self.components_ready, components_ready),
            field("progress", &self.progress, progress),
            field("installed", &self.installed, installed),
            field("missing", &self.missing, missing),
            field("conditions", &self.conditions, conditions),
            field("objects", &self.objects, objects),
            field("objectCounts", &self.object_counts, object_counts),
            field("dependencies", &self.dependencies, dependencies),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Status for HealthRuleStatus {
    const OWN: &'static [&'static str] = &["Valid"];
    const TOLD: &'static str = "Valid";

    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn observed_generation(&self) -> Option<i64> {
        self.observed_generation
    }

    fn fields(&self, other: &Self) -> Map<String, Value> {
        let Self { observed_generation, conditions } = other;
        [
            field("observedGeneration", &self.observed_generation, observed_generation),
            field("conditions", &self.conditions, conditions),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What is published about an object, in its own status.
#[derive(Debug)]
pub(crate) struct Publication<S> {
    slot: Slot,
    pub(crate) uid: Box<str>,
    version: Version,
    pub(crate) generation: i64,
    /// The status as the cluster has it, as far as we know.
    pub(crate) stored: S,
    /// Its conditions as they were last wanted.
    draft: Vec<Condition>,
    /// A turn that may have been written: nobody has answered.
    in_doubt: Option<Turn>,
}

impl<S: Status> Publication<S> {
    /// Of an object that has been found.
    pub(crate) fn new(object: ObjectKey, facts: &Facts, generation: i64, stored: S) -> Self {
        Self {
            slot: Slot { object, part: Part::Status },
            uid: facts.uid.clone(),
            version: facts.version.clone(),
            generation,
            stored,
            draft: Vec::new(),
            in_doubt: None,
        }
    }

    /// The conditions that say this, among those that are stored.
    pub(crate) fn conditions<'a>(
        &self,
        statements: impl IntoIterator<Item = (&'a str, Option<Statement>)>,
        now: Timestamp,
    ) -> Vec<Condition> {
        said::conditions(self.stored.conditions(), &self.draft, S::OWN, statements, self.generation, now)
    }

    /// The object has been seen again.
    pub(crate) fn seen(&mut self, facts: &Facts, generation: i64, stored: &S, desk: &mut Desk) {
        self.version = facts.version.clone();
        self.generation = generation;
        self.stored = stored.clone();
        // So it was written, though the answer was lost.
        let is_written = |turn: &mut Turn| said::status(stored.conditions(), S::TOLD) == Some(turn.to);
        if let Some(turn) = self.in_doubt.take_if(is_written) {
            desk.effects.push(Effect::Record(turn));
        }
    }

    /// The object has another version, and nothing else about it has changed.
    pub(crate) fn seen_again(&mut self, facts: &Facts) {
        self.version = facts.version.clone();
    }

    /// The object should have this status. Nothing is asked for if it does, or if somebody who has seen a newer
    /// generation has spoken.
    pub(crate) fn want(&mut self, status: &S, desk: &mut Desk) {
        self.draft = status.conditions().to_vec();
        let own = self.stored.conditions().iter().filter(|condition| S::OWN.contains(&&*condition.type_));
        let observed = own.map(|condition| condition.observed_generation);
        let observed = observed.chain([self.stored.observed_generation()]);
        let is_outrun = bellwether_conditions::is_outrun(observed, Some(self.generation));
        let patch = if is_outrun { Map::new() } else { self.stored.fields(status) };
        let change = (!patch.is_empty()).then(|| Change::Status {
            uid: self.uid.clone(),
            version: self.version.clone(),
            patch: Arc::new(Value::Object(patch)),
            turns: self.turns(status),
            told: self.told(status).map(Box::new),
        });
        desk.want(self.slot.clone(), change);
    }

    /// Nothing is to be written any more.
    pub(crate) fn withdraw(&self, desk: &mut Desk) {
        desk.want(self.slot.clone(), None);
    }

    /// Whether somebody may wait for the change to this status: a condition turns, or speaks of another generation.
    fn turns(&self, status: &S) -> bool {
        let of = |status: &S, kind: &str| said::status(status.conditions(), kind);
        self.stored.observed_generation() != status.observed_generation()
            || S::OWN.iter().any(|kind| of(&self.stored, kind) != of(status, kind))
    }

    /// The turn that people are told of once this status is written.
    fn told(&self, status: &S) -> Option<Turn> {
        let condition = status.conditions().iter().find(|condition| condition.type_ == S::TOLD)?;
        let from = said::status(self.stored.conditions(), S::TOLD);
        let to = said::status(status.conditions(), S::TOLD)?;
        (from != Some(to)).then(|| Turn {
            object: self.slot.object.clone(),
            uid: self.uid.clone(),
            condition: S::TOLD,
            from,
            to,
            reason: condition.reason.as_str().into(),
            message: condition.message.as_str().into(),
            good: to == ConditionStatus::True,
        })
    }

    /// A write of the status has ended. Gives back the version that the object has now, if that is news.
    pub(crate) fn written(&mut self, change: &Change, outcome: &Outcome, desk: &mut Desk) -> Option<Version> {
        let Change::Status { uid, patch, told, .. } = change else { return None };
        // An answer may come so late that the name is another object's by now.
        if *uid != self.uid {
            return None;
        }
        match outcome {
            Outcome::Failed(_) => self.in_doubt = told.as_deref().cloned(),
            Outcome::Done(_) => {
                self.in_doubt = None;
                desk.effects.extend(told.as_deref().cloned().map(Effect::Record));
            }
            Outcome::Conflict | Outcome::Absent | Outcome::Refused(_) => self.in_doubt = None,
        }
        let Outcome::Done(Some(version)) = outcome else { return None };
        // What a watch has shown since is newer than what we know.
        if version.is_before(&self.version) {
            return None;
        }
        self.stored = patch::applied(&self.stored, patch)?;
        self.version = version.clone();
        Some(version.clone())
    }
}
