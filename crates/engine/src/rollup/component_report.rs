//! What one component contributes to each condition of a Rollup: what it reports, or what has to be assumed.

use bellwether_api::{
    ComponentPresence,
    ConditionStatus::{self, False, True, Unknown},
    State,
};
use bellwether_conditions::{Class, Contribution, Policy, normalise};
use jiff::Timestamp;

use crate::{
    component_conditions::ComponentConditions,
    condition_types::{AVAILABLE, DEGRADED, PROGRESSING},
    event::Unreadable,
    planted::Bug,
    reasons::rollup as reasons,
};

use super::{policies::Policies, triple::Triple};

#[derive(Debug)]
pub(super) struct ComponentReport {
    pub(super) available: Contribution<'static>,
    pub(super) progressing: Contribution<'static>,
    pub(super) degraded: Contribution<'static>,
    /// `None` if it does not report Upgradeable, which means no objection.
    pub(super) upgradeable: Option<Contribution<'static>>,
    /// Whether the component has at least one of the first three conditions.
    has_reported: bool,
}

/// Why an entry has no object whose conditions count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    NotFound,
    /// The named object does not exist, because its kind is not served.
    NotServed,
    /// The object may exist, but its kind cannot be read.
    Unreadable(Unreadable),
    NoObjectsSelected,
    /// The component contains this Rollup, so its status depends on this one.
    Cycle,
    /// The entry of the spec is invalid.
    Invalid {
        reason: &'static str,
        text: String,
    },
}

impl Absence {
    /// How the status stores it, for the next leader; `None` if the object may exist.
    pub(super) fn presence(&self) -> Option<ComponentPresence> {
        match self {
            Self::NotFound => Some(ComponentPresence::Missing),
            Self::NotServed => Some(ComponentPresence::NotServed),
            Self::Unreadable(_) | Self::NoObjectsSelected | Self::Cycle | Self::Invalid { .. } => None,
        }
    }
}

impl From<ComponentPresence> for Absence {
    fn from(presence: ComponentPresence) -> Self {
        match presence {
            ComponentPresence::Missing => Self::NotFound,
            ComponentPresence::NotServed => Self::NotServed,
        }
    }
}

impl ComponentReport {
    pub(super) fn of(policies: &Policies, facts: &ComponentConditions) -> Self {
        facts.with_source(|source| {
            let contribution = |policy: &Policy| {
                let mut reported = normalise(policy, source).into_owned();
                if reported.repeated > 0 {
                    let differ = facts
                        .conditions
                        .iter()
                        .any(|condition| condition.type_ == policy.type_ && condition.contradicted);
                    let what = if differ { " with different status" } else { ", using the first" };
                    let more = format!(" ({} {} conditions{what})", reported.repeated + 1, policy.type_);
                    let more = if reported.message.is_empty() { more.trim_start() } else { &more };
                    reported.message.to_mut().push_str(more);
                }
                reported
            };
            let reports_upgradeable =
                source.conditions.iter().any(|condition| condition.type_ == policies.upgradeable.type_);
            Self {
                available: contribution(&policies.available),
                progressing: contribution(&policies.progressing),
                degraded: contribution(&policies.degraded),
                upgradeable: reports_upgradeable.then(|| contribution(&policies.upgradeable)),
                has_reported: source
                    .conditions
                    .iter()
                    .any(|condition| [AVAILABLE, PROGRESSING, DEGRADED].contains(&condition.type_)),
            }
        })
    }

    /// A terminating component is always Progressing.
    pub(super) fn being_deleted(self, policies: &Policies) -> Self {
        let policy = &policies.progressing;
        let progressing = Contribution {
            status: True,
            class: policy.classify(True),
            reason: reasons::TERMINATING.into(),
            message: "being deleted".into(),
            since: None,
            repeated: 0,
        };
        Self { progressing, ..self }
    }

    /// The kind became unreadable: all conditions are Unknown, and the message quotes the last report. An
    /// objection to an upgrade is possible.
    pub(super) fn unreadable(before: Option<&Self>, policies: &Policies, why: &Unreadable) -> Self {
        let unknown = |policy: &Policy, reported: Option<&Contribution<'_>>| {
            let before = reported.map(|reported| {
                let text = if reported.message.is_empty() { &reported.reason } else { &reported.message };
                format!("; last reported: {text}")
            });
            unknown(policy, why.reason(), format!("{why}{}", before.unwrap_or_default()))
        };
        let upgradeable = before.and_then(|report| report.upgradeable.as_ref());
        Self {
            available: unknown(&policies.available, before.map(|report| &report.available)),
            progressing: unknown(&policies.progressing, before.map(|report| &report.progressing)),
            degraded: unknown(&policies.degraded, before.map(|report| &report.degraded)),
            upgradeable: Some(unknown(&policies.upgradeable, upgradeable)),
            has_reported: true,
        }
    }

    /// The assumed conditions if there is no object.
    pub(super) fn missing(policies: &Policies, absence: &Absence, since: Option<Timestamp>) -> Self {
        let contribution = |policy: &Policy| match absence {
            Absence::NotFound if Bug::MissingIsHealthy.is_planted() => planted_fine(policy),
            Absence::NotFound => Contribution::missing(policy, "not found", since),
            Absence::NotServed => {
                Contribution::missing(policy, "not found: kind not served by the cluster", since)
            }
            // Without a time: it is not stored, so the next leader would take its own start for it.
            Absence::Unreadable(why) => unknown(policy, why.reason(), why.to_string()),
            Absence::NoObjectsSelected => {
                unknown(policy, reasons::NO_OBJECTS_SELECTED, "no object matches the selector".to_owned())
            }
            Absence::Cycle => {
                let text = "component cycle: contains this Rollup".to_owned();
                unknown(policy, reasons::COMPONENT_CYCLE, text)
            }
            Absence::Invalid { reason, text } => unknown(policy, reason, text.clone()),
        };
        // A missing component cannot object to an upgrade; an unreadable or invalid one may.
        let may_block_upgrade = match absence {
            Absence::NotFound | Absence::NotServed | Absence::NoObjectsSelected => false,
            Absence::Unreadable(why) => *why != Unreadable::NotServed,
            Absence::Cycle | Absence::Invalid { .. } => true,
        };
        Self {
            available: contribution(&policies.available),
            progressing: contribution(&policies.progressing),
            degraded: contribution(&policies.degraded),
            upgradeable: may_block_upgrade.then(|| contribution(&policies.upgradeable)),
            has_reported: true,
        }
    }

    pub(super) fn triple(&self) -> Triple {
        Triple {
            available: self.available.status,
            progressing: self.progressing.status,
            degraded: self.degraded.status,
        }
    }

    /// The conditions as a state. A new component is not `Failed` before its operator has reported anything.
    pub(super) fn state(&self) -> State {
        match self.triple().state() {
            State::Failed if !self.has_reported => State::InProgress,
            state => state,
        }
    }

    /// The condition to show for the component.
    pub(super) fn most_significant(&self) -> &Contribution<'static> {
        let order: [(&Contribution<'static>, ConditionStatus); 6] = [
            (&self.available, False),
            (&self.degraded, True),
            (&self.available, Unknown),
            (&self.degraded, Unknown),
            (&self.progressing, Unknown),
            (&self.progressing, True),
        ];
        let found = order.into_iter().find(|(contribution, status)| contribution.status == *status);
        found.map_or(&self.available, |(contribution, _)| contribution)
    }
}

/// For [`Bug::MissingIsHealthy`].
fn planted_fine(policy: &Policy) -> Contribution<'static> {
    let status = policy.status(Class::Fine);
    Contribution { status, class: Class::Fine, ..unknown(policy, reasons::ALL_AS_EXPECTED, String::new()) }
}

fn unknown(policy: &Policy, reason: &'static str, message: String) -> Contribution<'static> {
    Contribution {
        status: Unknown,
        class: policy.classify(Unknown),
        reason: reason.into(),
        message: message.into(),
        since: None,
        repeated: 0,
    }
}
