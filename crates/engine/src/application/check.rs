//! What is known of a health check, and when its Pod may be made again.

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

/// The label of health-check Pods; its value is the hash of their template.
pub const HEALTH_CHECK_LABEL: &str = "bellwether.dev/health-check";

/// How long a Pod that was made may stay out of sight.
const VISIBILITY_TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

/// After so long a life, a Pod that goes is replaced as if it were the first.
const STABLE_AFTER: SignedDuration = SignedDuration::from_mins(10);

const FIRST_DELAY: SignedDuration = SignedDuration::from_secs(10);
const MAX_DELAY: SignedDuration = SignedDuration::from_mins(5);

/// Whether an object is the Pod of a health check.
pub(super) fn is_health_check(facts: &Facts) -> bool {
    facts.pod.is_some() && facts.labels.get(HEALTH_CHECK_LABEL).is_some()
}

/// What is known of the health check of an Application.
#[derive(Debug, Default)]
pub(super) struct Check {
    /// The name of the Pod that there should be.
    pub(super) pod: Option<NamespacedName>,
    pub(super) validity: Validity,
    /// The readiness of the Pod, and what is said of it.
    pub(super) ready: Option<(ConditionStatus, Arc<str>)>,
    /// Since when the Pod has been there.
    pub(super) alive_since: Option<Timestamp>,
    /// How many were lost.
    losses: u32,
    /// When the next one may be made.
    pub(super) next_create: Option<Timestamp>,
    /// Until when one that was made may stay out of sight.
    pub(super) visible_by: Option<Timestamp>,
}

/// Whether the template makes a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Validity {
    /// Nobody has answered yet.
    #[default]
    Unknown,
    /// It does.
    Valid,
    /// It does not.
    Invalid(Arc<str>),
}

impl Check {
    /// There is no Pod to be made any more.
    pub(super) fn forget(&mut self, group: &GroupRef, queue: &mut EffectQueue) {
        if let Some(name) = &self.pod {
            queue.want(slot(group, name), None);
        }
        *self = Self::default();
    }

    /// All times that it counts from, or waits for.
    pub(super) fn times(&mut self) -> [&mut Option<Timestamp>; 3] {
        [&mut self.alive_since, &mut self.next_create, &mut self.visible_by]
    }

    /// The Pod is gone, if it was there.
    pub(super) fn pod_lost(&mut self, now: Timestamp) {
        let Some(alive_since) = self.alive_since.take() else { return };
        if now.duration_since(alive_since) > STABLE_AFTER {
            self.losses = 0;
        }
        self.next_create = later(now, delay(self.losses));
        self.losses = self.losses.saturating_add(1);
    }

    /// Takes note of how making the Pod ended. Gives back whether it was about this health check.
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
            (Outcome::Done(_), true) => self.validity = Validity::Valid,
            (Outcome::Done(_) | Outcome::Conflict, false) => self.visible_by = visible_by,
            (Outcome::Conflict, true) => {
                self.validity = Validity::Valid;
                self.visible_by = visible_by;
            }
            (Outcome::Refused(why), _) => self.validity = Validity::Invalid(Arc::clone(why)),
            (Outcome::FieldConflict(_) | Outcome::Absent | Outcome::Failed(_), _) => {}
        }
        true
    }
}

/// So much later, if there is such a time.
fn later(now: Timestamp, duration: SignedDuration) -> Option<Timestamp> {
    now.checked_add(duration).ok()
}

/// How long to wait after so many losses.
fn delay(losses: u32) -> SignedDuration {
    if losses == 0 {
        return SignedDuration::ZERO;
    }
    FIRST_DELAY.saturating_mul(1 << (losses - 1).min(10)).min(MAX_DELAY)
}

/// Where it is said whether a Pod is there.
pub(super) fn slot(group: &GroupRef, name: &NamespacedName) -> Slot {
    let object = ObjectKey { cluster: Cluster::hub(), kind: GroupKind::pod(), name: name.clone() };
    Slot { object, part: Part::Existence(group.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_do_not_live_long_are_replaced_later_and_later() {
        let mut now: Timestamp = "2026-11-14T10:00:00Z".parse().expect("a time");
        let mut check = Check::default();
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
