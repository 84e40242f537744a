//! The state of a health check, and when its Pod may be created again.

use std::sync::Arc;

use bellwether_model::ConditionStatus;
use jiff::{SignedDuration, Timestamp};

use crate::{
    effect::{Part, Slot},
    effect_queue::EffectQueue,
    event::Outcome,
    facts::Facts,
    group_ref::GroupRef,
    id::{Cluster, GroupKind, NamespacedName, ObjectKey},
};

/// The label of health-check Pods. Its value is the hash of the template.
pub const HEALTH_CHECK_LABEL: &str = "bellwether.dev/health-check";

/// How long a created Pod may be missing from the watch before it is created again.
const VISIBILITY_TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

/// A Pod that ran longer than this is replaced at once, like the first one.
const STABLE_AFTER: SignedDuration = SignedDuration::from_mins(10);

const FIRST_DELAY: SignedDuration = SignedDuration::from_secs(10);
const MAX_DELAY: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn is_health_check(facts: &Facts) -> bool {
    facts.pod.is_some() && facts.labels.get(HEALTH_CHECK_LABEL).is_some()
}

#[derive(Debug, Default)]
pub(super) struct HealthCheckState {
    /// The name of the Pod for the current template.
    pub(super) pod: Option<NamespacedName>,
    pub(super) validity: Validity,
    /// The Pod's Ready condition, and the message of its verdict.
    pub(super) ready: Option<(ConditionStatus, Arc<str>)>,
    pub(super) alive_since: Option<Timestamp>,
    /// Consecutive Pods that did not live for `STABLE_AFTER`.
    losses: u32,
    /// When the next Pod may be created.
    pub(super) next_create: Option<Timestamp>,
    /// Until when a created Pod may be missing from the watch.
    pub(super) visible_by: Option<Timestamp>,
}

/// Whether the API server accepts the template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Validity {
    /// Not validated yet.
    #[default]
    Unknown,
    Valid,
    Invalid(Arc<str>),
}

impl HealthCheckState {
    /// Withdraws the Pod and resets the state.
    pub(super) fn forget(&mut self, group: &GroupRef, queue: &mut EffectQueue) {
        if let Some(name) = &self.pod {
            queue.request_write(slot(group, name), None);
        }
        *self = Self::default();
    }

    /// All times, to shift them when the clock is set.
    pub(super) fn times(&mut self) -> [&mut Option<Timestamp>; 3] {
        [&mut self.alive_since, &mut self.next_create, &mut self.visible_by]
    }

    /// Schedules a replacement if a Pod was alive.
    pub(super) fn pod_lost(&mut self, now: Timestamp) {
        let Some(alive_since) = self.alive_since.take() else { return };
        if now.duration_since(alive_since) > STABLE_AFTER {
            self.losses = 0;
        }
        self.next_create = later(now, delay(self.losses));
        self.losses = self.losses.saturating_add(1);
    }

    /// Handles the outcome of creating the Pod. Returns whether it was for this health check.
    pub(super) fn written(
        &mut self,
        name: &NamespacedName,
        dry_run: bool,
        outcome: &Outcome,
        now: Timestamp,
    ) -> bool {
        if self.pod.as_ref() != Some(name) {
            return false;
        }
        let visible_by = later(now, VISIBILITY_TIMEOUT);
        match (outcome, dry_run) {
            (Outcome::Written(_), true) => self.validity = Validity::Valid,
            (Outcome::Written(_) | Outcome::Conflict, false) => self.visible_by = visible_by,
            (Outcome::Conflict, true) => {
                self.validity = Validity::Valid;
                self.visible_by = visible_by;
            }
            (Outcome::Rejected(why), _) => self.validity = Validity::Invalid(Arc::clone(why)),
            (Outcome::FieldConflict(_) | Outcome::NotFound | Outcome::Failed(_), _) => {}
        }
        true
    }
}

fn later(now: Timestamp, duration: SignedDuration) -> Option<Timestamp> {
    now.checked_add(duration).ok()
}

fn delay(losses: u32) -> SignedDuration {
    if losses == 0 {
        return SignedDuration::ZERO;
    }
    FIRST_DELAY.saturating_mul(1 << (losses - 1).min(10)).min(MAX_DELAY)
}

pub(super) fn slot(group: &GroupRef, name: &NamespacedName) -> Slot {
    let object = ObjectKey { cluster: Cluster::hub(), kind: GroupKind::pod(), name: name.clone() };
    Slot { object, part: Part::Object(group.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lived_pods_are_replaced_with_backoff() {
        let mut now: Timestamp = "2026-11-14T10:00:00Z".parse().expect("a time");
        let mut check = HealthCheckState::default();
        let mut delays = Vec::new();
        for life in [1, 1, 1, 1, 1, 1, 1, 1, 700, 1].map(SignedDuration::from_secs) {
            check.alive_since = Some(now);
            now += life;
            check.pod_lost(now);
            let next_create = check.next_create.expect("there is a next one");
            delays.push(next_create.duration_since(now).as_secs());
            now = next_create;
        }
        assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300, 0, 10]);
    }
}
