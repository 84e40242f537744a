//! Polarity of condition types.
//!
//! Add new condition types here. A type is ignored if neither the whole type nor its last word is listed: no
//! evidence is better than wrong evidence.

use std::{collections::HashMap, sync::LazyLock};

use super::words;

/// How a condition type maps to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polarity {
    /// True: `Ready`, the object has run to completion.
    Completion,
    /// True: `Ready`. False: `InProgress`, unless the reason means failure.
    Positive,
    /// True: how far the object is, so not `Ready` without another condition. False: as `Positive`.
    Step,
    /// True: `Ready`. False: `Failed`, unless the reason means progress.
    Validity,
    /// True: `Failed`.
    Negative,
    /// The negation of a positive type, such as `NotReady`. True: `Failed`, unless the reason means progress.
    Negated,
    /// True: `InProgress`.
    Progressing,
    /// True: `Suspended`.
    Suspended,
    /// True: `Suspended` if the spec says that it should not run; else never `Ready`.
    Halted,
    /// True: `Terminating`.
    Deleting,
    /// Ignored, although the last word of the type has a polarity.
    Neutral,
}

impl Polarity {
    /// States for the docs: if the condition is True, and if it is False.
    pub(crate) const fn states(self) -> [&'static str; 2] {
        match self {
            Self::Completion => ["`Ready`, completed", "`InProgress`, unless the reason means failure"],
            Self::Positive => ["`Ready`", "`InProgress`, unless the reason means failure"],
            Self::Step => [
                "`InProgress`, unless another condition means `Ready`",
                "`InProgress`, unless the reason means failure",
            ],
            Self::Validity => ["`Ready`", "`Failed`, unless the reason means progress"],
            Self::Negative => ["`Failed`, unless the reason means `Ready`", "ignored"],
            Self::Negated => ["`Failed`, unless the reason means progress", "ignored"],
            Self::Progressing => {
                ["`InProgress`, unless the reason means `Ready`", "ignored, unless the reason means failure"]
            }
            Self::Suspended => ["`Suspended`", "ignored"],
            Self::Halted => [
                "`Suspended` if the spec says so; else `Failed` if the reason or message means failure; else `InProgress`",
                "ignored",
            ],
            Self::Deleting => ["`Terminating`", "ignored"],
            Self::Neutral => ["ignored", "ignored"],
        }
    }
}

/// In the order of the docs.
pub(crate) const ALL: &[Polarity] = &[
    Polarity::Completion,
    Polarity::Positive,
    Polarity::Step,
    Polarity::Validity,
    Polarity::Negative,
    Polarity::Negated,
    Polarity::Progressing,
    Polarity::Suspended,
    Polarity::Halted,
    Polarity::Deleting,
    Polarity::Neutral,
];

/// Whole condition types.
pub(crate) const TYPES: &[(Polarity, &[&str])] = &[
    (Polarity::Completion, &["Succeeded", "Complete", "Completed", "Finished"]),
    (
        Polarity::Positive,
        &[
            "Ready",
            "Available",
            "Healthy",
            "Running",
            "Online",
            "Operational",
            "Active",
            "Established",
            "Programmed",
            "ReconcileSuccess",
        ],
    ),
    (Polarity::Step, &["Scheduled", "Created", "Initialized", "Synced"]),
    (Polarity::Validity, &["Accepted", "Admitted", "ResolvedRefs", "Valid"]),
    (Polarity::Negative, &["Degraded", "Failed", "Failure", "Error", "Stalled", "Conflicted"]),
    (
        Polarity::Progressing,
        &["Reconciling", "Progressing", "Pending", "UpdateInProgress", "UpgradeInProgress"],
    ),
    (Polarity::Suspended, &["Suspended", "Paused", "Hibernated"]),
    (Polarity::Halted, &["Disabled", "Halted", "Inactive", "Stopped"]),
    (Polarity::Deleting, &["Terminating", "Deleting"]),
    (Polarity::Neutral, &["NewVersionAvailable", "UpdateAvailable", "UpgradeAvailable", "Upgradeable"]),
];

/// Last words of other types: `ControlPlaneReady`, `InstallPlanFailed`, `Issuing`.
pub(crate) const ENDINGS: &[(Polarity, &str)] = &[
    (
        Polarity::Positive,
        "active alive advertised adopted allocated applied attached available bound \
         complete completed connected deployed discoverable established exists functional healthy \
         installed issued joined mounted ok online operating operational programmed provisioned reachable ready reconciled \
         resolved running serving succeeded success successful synchronized updated verified",
    ),
    (
        Polarity::Step,
        "admitted approved assigned bootstrapped configured created initialized queued registered reserved scheduled \
         submitted synced validated",
    ),
    (Polarity::Validity, "accepted compliant valid"),
    (
        Polarity::Negative,
        "broken conflict corrupted degraded error errors failed failing failure invalid misconfigured mismatch rejected \
         stalled unhealthy unreachable violated violation violations",
    ),
    (
        Polarity::Progressing,
        "configuring creating deploying initializing installing issuing migrating pending progressing provisioning \
         reconciling recovering restoring rolling scaling starting syncing unpacking updating upgrading",
    ),
    (Polarity::Suspended, "hibernated paused suspended"),
    (Polarity::Deleting, "deleting terminating uninstalling"),
];

/// First words of types whose last word is not listed: `InvalidSpec`, `FailedCreatePod`.
const NEGATIVE_PREFIXES: &[&str] = &["failed", "invalid"];

static BY_ENDING: LazyLock<HashMap<&str, Polarity>> = LazyLock::new(|| {
    ENDINGS
        .iter()
        .flat_map(|(polarity, endings)| endings.split_whitespace().map(|ending| (ending, *polarity)))
        .collect()
});

/// `None` if the type is not known.
pub(crate) fn of(kind: &str) -> Option<Polarity> {
    // A type may have a prefix: `example.com/Ready`.
    let kind = kind.rsplit('/').next().unwrap_or(kind);
    if let Some((polarity, _)) = TYPES.iter().find(|(_, types)| types.contains(&kind)) {
        return Some(*polarity);
    }
    let words = words::words(kind);
    // `PartiallyReady`, `PartialSuccess`.
    if words.iter().any(|word| word == "partial" || word == "partially") {
        return Some(Polarity::Progressing);
    }
    let negated = words.iter().any(|word| word == "not" || word == "no");
    let by_prefix = || NEGATIVE_PREFIXES.contains(&words.first()?.as_str()).then_some(Polarity::Negative);
    Some(match (of_last_word(words.last()?).or_else(by_prefix)?, negated) {
        (Polarity::Positive | Polarity::Step | Polarity::Validity | Polarity::Completion, true) => {
            Polarity::Negated
        }
        (Polarity::Negative, true) => Polarity::Positive,
        (polarity, _) => polarity,
    })
}

/// Whether a condition of this type counts for the generic rules.
pub(crate) fn is_known(kind: &str) -> bool {
    of(kind).is_some_and(|polarity| polarity != Polarity::Neutral)
}

/// Whether the whole type is listed with this polarity.
pub(crate) fn is_listed(wanted: Polarity, kind: &str) -> bool {
    TYPES.iter().any(|(polarity, types)| *polarity == wanted && types.contains(&kind))
}

/// Whether a type is about completion: `VolumeBackupsCompleted`.
pub(crate) fn is_completion(kind: &str) -> bool {
    ["Complete", "Completed", "Finished", "Succeeded"].iter().any(|end| kind.ends_with(end))
}

fn of_last_word(word: &str) -> Option<Polarity> {
    BY_ENDING.get(word).copied()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Ready", Some(Polarity::Positive))]
    #[case("example.com/Ready", Some(Polarity::Positive))]
    #[case("EKSControlPlaneReady", Some(Polarity::Positive))]
    #[case("PodsRunning", Some(Polarity::Positive))]
    #[case("platform.example.com/app-ready", Some(Polarity::Positive))]
    #[case("NotReady", Some(Polarity::Negated))]
    #[case("SpecValid", Some(Polarity::Validity))]
    #[case("InstallPlanFailed", Some(Polarity::Negative))]
    #[case("Initialized", Some(Polarity::Step))]
    #[case("PodScheduled", Some(Polarity::Step))]
    #[case("PartiallyAvailable", Some(Polarity::Progressing))]
    #[case("HasErrors", Some(Polarity::Negative))]
    #[case("InvalidSpec", Some(Polarity::Negative))]
    #[case("NoErrors", Some(Polarity::Positive))]
    #[case("Issuing", Some(Polarity::Progressing))]
    #[case("Paused", Some(Polarity::Suspended))]
    #[case("Stopped", Some(Polarity::Halted))]
    #[case("ConfigSynced", Some(Polarity::Step))]
    #[case("Upgradeable", Some(Polarity::Neutral))]
    #[case("UpdateAvailable", Some(Polarity::Neutral))]
    // Not listed.
    #[case("Blocked", None)]
    #[case("Compromised", None)]
    #[case("Encrypted", None)]
    #[case("Deprecated", None)]
    #[case("CanaryChecksSucceeding", None)]
    #[case("", None)]
    fn polarities(#[case] kind: &str, #[case] polarity: Option<Polarity>) {
        assert_eq!(of(kind), polarity);
    }

    #[test]
    fn no_last_word_has_two_polarities() {
        let mut all: Vec<_> = ENDINGS.iter().flat_map(|(_, endings)| endings.split_whitespace()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
