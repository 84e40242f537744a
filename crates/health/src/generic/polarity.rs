//! What condition types are about.
//!
//! This is the place to add a type. A type that is not here, and whose last word is not here, says nothing about health:
//! better no evidence than the wrong one.

use std::{collections::HashMap, sync::LazyLock};

use super::words;

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polarity {
    /// True is the end of it: whatever it was for is done.
    Done,
    /// True is good. False is a delay unless its reason says otherwise.
    Good,
    /// True is good. False is a failure unless its reason says that it is a delay.
    Sound,
    /// True is bad.
    Bad,
    /// True is the contrary of good: a delay or a failure, as its reason says.
    NotGood,
    /// True means that something is under way.
    UnderWay,
    /// True means that somebody stopped it on purpose.
    Stopped,
    /// True means that it is being deleted.
    Leaving,
    /// It says nothing about health, though its last word might.
    Neutral,
}

/// The types whose meaning is known as a whole.
pub(crate) const TYPES: &[(Polarity, &[&str])] = &[
    (Polarity::Done, &["Succeeded", "Complete", "Completed", "Finished"]),
    (
        Polarity::Good,
        &[
            "Ready",
            "Available",
            "Healthy",
            "Running",
            "Online",
            "Operational",
            "Active",
            "Synced",
            "Established",
            "Programmed",
            "ReconcileSuccess",
        ],
    ),
    (Polarity::Sound, &["Accepted", "Admitted", "ResolvedRefs", "Valid"]),
    (Polarity::Bad, &["Degraded", "Failed", "Failure", "Error", "Stalled", "Conflicted"]),
    (Polarity::UnderWay, &["Reconciling", "Progressing", "Pending", "UpdateInProgress", "UpgradeInProgress"]),
    (Polarity::Stopped, &["Suspended", "Paused", "Disabled", "Stopped", "Hibernated"]),
    (Polarity::Leaving, &["Terminating", "Deleting"]),
    (Polarity::Neutral, &["NewVersionAvailable", "UpdateAvailable", "UpgradeAvailable", "Upgradeable"]),
];

/// What the last word of any other type says: `ControlPlaneReady`, `InstallPlanFailed`, `Issuing`.
pub(crate) const ENDINGS: &[(Polarity, &str)] = &[
    (
        Polarity::Good,
        "active alive admitted advertised adopted allocated applied approved assigned attached available bootstrapped bound \
         complete completed configured connected created deployed discoverable established exists functional healthy initialized \
         installed issued joined mounted ok online operating operational programmed provisioned reachable ready reconciled \
         registered resolved running scheduled serving succeeded success successful synced synchronized updated \
         validated verified",
    ),
    (Polarity::Sound, "accepted compliant valid"),
    (
        Polarity::Bad,
        "broken conflict corrupted degraded error errors failed failing failure invalid misconfigured mismatch rejected \
         stalled unhealthy unreachable violated violation violations",
    ),
    (
        Polarity::UnderWay,
        "configuring creating deploying initializing installing issuing migrating pending progressing provisioning \
         reconciling recovering restoring rolling scaling starting syncing unpacking updating upgrading",
    ),
    (Polarity::Stopped, "hibernated paused suspended"),
    (Polarity::Leaving, "deleting terminating uninstalling"),
];

/// What the first word of a type says where its last word says nothing: `InvalidSpec`, `FailedCreatePod`.
const BAD_BEGINNINGS: &[&str] = &["failed", "invalid"];

static BY_ENDING: LazyLock<HashMap<&str, Polarity>> = LazyLock::new(|| {
    ENDINGS
        .iter()
        .flat_map(|(polarity, endings)| endings.split_whitespace().map(|ending| (ending, *polarity)))
        .collect()
});

/// What a condition of this type is about, if that is known.
pub(crate) fn of(kind: &str) -> Option<Polarity> {
    // A prefix says whose condition it is: `example.com/Ready`.
    let kind = kind.rsplit('/').next().unwrap_or(kind);
    if let Some((polarity, _)) = TYPES.iter().find(|(_, types)| types.contains(&kind)) {
        return Some(*polarity);
    }
    let words = words::words(kind);
    let denied = words.iter().any(|word| word == "not" || word == "no");
    let begins_badly = || BAD_BEGINNINGS.contains(&words.first()?.as_str()).then_some(Polarity::Bad);
    Some(match (of_last_word(words.last()?).or_else(begins_badly)?, denied) {
        (Polarity::Good | Polarity::Sound | Polarity::Done, true) => Polarity::NotGood,
        (Polarity::Bad, true) => Polarity::Good,
        (polarity, _) => polarity,
    })
}

/// Whether a type is listed with this meaning, rather than known by its last word.
pub(crate) fn says_outright(wanted: Polarity, kind: &str) -> bool {
    TYPES.iter().any(|(polarity, types)| *polarity == wanted && types.contains(&kind))
}

/// Whether a type is about the end of something: `VolumeBackupsCompleted`.
pub(crate) fn speaks_of_an_end(kind: &str) -> bool {
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
    #[case("Ready", Some(Polarity::Good))]
    #[case("example.com/Ready", Some(Polarity::Good))]
    #[case("EKSControlPlaneReady", Some(Polarity::Good))]
    #[case("PodsRunning", Some(Polarity::Good))]
    #[case("platform.example.com/app-ready", Some(Polarity::Good))]
    #[case("NotReady", Some(Polarity::NotGood))]
    #[case("SpecValid", Some(Polarity::Sound))]
    #[case("InstallPlanFailed", Some(Polarity::Bad))]
    #[case("HasErrors", Some(Polarity::Bad))]
    #[case("InvalidSpec", Some(Polarity::Bad))]
    #[case("NoErrors", Some(Polarity::Good))]
    #[case("Issuing", Some(Polarity::UnderWay))]
    #[case("Paused", Some(Polarity::Stopped))]
    #[case("Upgradeable", Some(Polarity::Neutral))]
    #[case("UpdateAvailable", Some(Polarity::Neutral))]
    // What is not listed is not guessed.
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
    fn no_ending_has_two_meanings() {
        let mut all: Vec<_> = ENDINGS.iter().flat_map(|(_, endings)| endings.split_whitespace()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
