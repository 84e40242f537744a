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
    reasons::application as reasons,
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
    facts.pod().is_some() && facts.labels.get(HEALTH_CHECK_LABEL).is_some()
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
    /// The template may be valid, but the Pod may not be created: the reason, and what denies it.
    Denied(&'static str, Arc<str>),
}

impl Validity {
    /// From the error of the API server, which tells its admission plug-ins apart by text alone.
    fn of_rejection(why: &Arc<str>) -> Self {
        if why.contains("exceeded quota") || why.contains("failed quota") {
            return Self::Denied(reasons::QUOTA_EXCEEDED, Arc::clone(why));
        }
        let is_denied = ["is forbidden:", ": forbidden.", "denied the request", "denied request"];
        if is_denied.iter().any(|text| why.contains(text)) {
            return Self::Denied(reasons::POD_FORBIDDEN, Arc::clone(why));
        }
        Self::Invalid(Arc::clone(why))
    }
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
            (Outcome::Rejected(why), _) => self.validity = Validity::of_rejection(why),
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
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::quota(
        r#"pods "web-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3"#,
        Some("QuotaExceeded")
    )]
    #[case::limits_required(
        r#"pods "web-1" is forbidden: failed quota: small: must specify limits.cpu for: c"#,
        Some("QuotaExceeded")
    )]
    #[case::pod_security(
        r#"pods "web-1" is forbidden: violates PodSecurity "restricted:latest""#,
        Some("PodForbidden")
    )]
    #[case::webhook(r#"admission webhook "images.acme.io" denied the request: no tag"#, Some("PodForbidden"))]
    #[case::rbac(
        "cannot create pods in namespace shop: forbidden. Grant Bellwether the verb create on pods in the core API group",
        Some("PodForbidden")
    )]
    #[case::invalid("spec.containers[0].image: Required value", None)]
    #[case::another_forbidden(r#"Pod "web-1" is invalid: spec.hostNetwork: Forbidden: not here"#, None)]
    fn a_denied_pod_is_not_an_invalid_template(#[case] why: &str, #[case] reason: Option<&str>) {
        match Validity::of_rejection(&why.into()) {
            Validity::Denied(actual, _) => assert_eq!(Some(actual), reason),
            other => assert!(reason.is_none() && matches!(other, Validity::Invalid(_)), "{other:?}"),
        }
    }

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
