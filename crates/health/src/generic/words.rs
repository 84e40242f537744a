//! Words in phases and reasons, and the state that they mean.
//!
//! Add new words here. Leave a word out if operators use it with different meanings: without a known word the
//! next rule applies, and in the end the object is `Unknown`.

use std::{collections::HashMap, sync::LazyLock};

use bellwether_model::State;

/// In lower case.
pub(crate) const WORDS: &[(State, &str)] = &[
    (
        State::Ready,
        "accepted active allocated applied assigned attached available bound complete completed \
         compliant configured connected deployed done enabled established finished green healthy \
         installed issued joined listening live mounted normal ok online operational passed programmed \
         provisioned ready reconciled registered running serving stable succeed succeeded success \
         successful successfully synced synchronized valid validated verified working",
    ),
    (
        State::InProgress,
        "partial partially pending progress queued requested retry scheduled submitted unready wait yellow",
    ),
    (
        State::Failed,
        "aborted blocked broken canceled cancelled corrupted crash \
         crashed crashing dead degraded denied err error errored errors evicted exceeded \
         exhausted expired fail failed failing fails failure failures fatal faulted faulty \
         forbidden inaccessible inconsistent insufficient invalid killed lost malformed missing \
         misconfiguration misconfigured mismatch noncompliant oom panic red refused \
         rejected stalled stuck unauthenticated unauthorized unhealthy \
         unreachable unresponsive unschedulable unsupported violation violations warn warning \
         warnings",
    ),
    (
        State::Suspended,
        "hibernated hibernating maintenance parked pause paused shelved sleeping suspend suspended",
    ),
    (State::Terminating, "deleted deleting deletion destroying terminating uninstalling"),
];

/// Words that count only on their own: phase `New` is `InProgress`, reason `NewReplicaSetAvailable` is not.
pub(crate) const ALONE: &[(State, &str)] = &[
    (State::Failed, "conflict down timeout unavailable"),
    (State::Ready, "current exists started up updated"),
    (State::InProgress, "initial initialized new restart rollback unknown upgrade"),
];

/// Words in phases of what does not run, whether intended or not: `Suspended` only if the spec says so.
pub(crate) const HALTED: &[&str] = &["disabled", "halted", "inactive", "stopped"];

/// Whether a phase or a reason says that the object does not run.
pub(crate) fn is_halted(phrase: &str) -> bool {
    let words = words(phrase);
    words.iter().any(|word| HALTED.contains(&word.as_str()))
        && !words.iter().any(|word| NEGATIONS.contains(&word.as_str()))
}

/// Phrases that take precedence over their single words.
pub(crate) const PHRASES: &[(State, &[&str])] =
    &[(State::Failed, &["back off", "timed out"]), (State::InProgress, &["in progress", "not yet"])];

/// Words that mean `Failed` after a negation: *not found*. Other good words mean `InProgress`: *not ready*.
pub(crate) const FAILED_IF_NEGATED: &[&str] = &[
    "accepted",
    "allowed",
    "authorized",
    "compliant",
    "found",
    "permitted",
    "supported",
    "valid",
    "exist",
    "exists",
];

/// Words that limit a good word: *partially ready*, *to be installed*, *rollback complete*.
pub(crate) const QUALIFIERS: &[&str] = &[
    "almost",
    "be",
    "delete",
    "false",
    "halfway",
    "partial",
    "partially",
    "previously",
    "rollback",
    "to",
    "was",
];

const NEGATIONS: &[&str] = &["cannot", "no", "non", "not", "never", "without"];

/// Words in *-ing* that do not mean progress.
const NOT_PROGRESS: &[&str] = &["existing", "following", "nothing", "something", "string"];

static MEANINGS: LazyLock<HashMap<&str, State>> = LazyLock::new(|| {
    WORDS.iter().flat_map(|(state, words)| words.split_whitespace().map(|word| (word, *state))).collect()
});

fn of_word(word: &str) -> Option<State> {
    MEANINGS.get(word).copied().or_else(|| {
        let progress = word.len() > 4 && word.ends_with("ing") && !NOT_PROGRESS.contains(&word);
        progress.then_some(State::InProgress)
    })
}

/// The state of a phase or reason: that of its worst word.
pub(crate) fn meaning(phrase: &str) -> Option<State> {
    if phrase.is_empty() {
        return None;
    }
    let words = words(phrase);
    let whole = words.join(" ");
    let padded = format!(" {whole} ");
    let contains = |phrase: &str| padded.contains(&format!(" {phrase} "));
    if let Some((state, _)) =
        PHRASES.iter().find(|(_, phrases)| phrases.iter().any(|phrase| contains(phrase)))
    {
        return Some(*state);
    }
    let alone = |(_, words): &&(State, &str)| words.split_whitespace().any(|word| word == whole);
    if let Some((state, _)) = ALONE.iter().find(alone) {
        return Some(*state);
    }
    // `WaitingForMissingSecret` and `RecoveringFromFailure` mean progress.
    if words.first().is_some_and(|first| of_word(first) == Some(State::InProgress) && first.ends_with("ing"))
    {
        return Some(State::InProgress);
    }
    let mut negated = false;
    let mut worst = None;
    for word in &words {
        if NEGATIONS.contains(&word.as_str()) {
            negated = true;
            continue;
        }
        let known = of_word(word);
        let meaning = match known {
            _ if negated && FAILED_IF_NEGATED.contains(&word.as_str()) => Some(State::Failed),
            Some(State::Ready) if negated => Some(State::InProgress),
            // "Not failing" has no meaning.
            Some(_) if negated => None,
            meaning => meaning,
        };
        negated &= meaning.is_none() && known.is_none();
        worst = worst.into_iter().chain(meaning).max_by_key(|state| weight(*state));
    }
    let qualified = words.iter().any(|word| QUALIFIERS.contains(&word.as_str()));
    if qualified && worst == Some(State::Ready) { Some(State::InProgress) } else { worst }
}

/// Precedence of the words of a phrase.
fn weight(state: State) -> u8 {
    match state {
        State::Ready => 0,
        State::InProgress | State::Unknown | State::Missing => 1,
        State::Suspended => 2,
        State::Terminating => 3,
        State::Failed => 4,
    }
}

/// Whether a phrase has a negation, so that its meaning depends on what is negated.
pub(crate) fn is_negated(phrase: &str) -> bool {
    words(phrase).iter().any(|word| NEGATIONS.contains(&word.as_str()))
}

/// Whether a word has a meaning in phases or reasons.
pub(super) fn is_known(word: &str) -> bool {
    let is_alone = ALONE.iter().any(|(_, words)| words.split_whitespace().any(|known| known == word));
    of_word(word).is_some() || is_alone || is_halted(word)
}

/// Whether a message begins like `failed to …` or `cannot …`.
pub(crate) fn begins_with_failure(sentence: &str) -> bool {
    let first = &sentence[..sentence.floor_char_boundary(24)];
    let words = words(first);
    let first = words.first().map(String::as_str).unwrap_or_default();
    matches!(first, "error" | "failed" | "failure" | "invalid" | "cannot" | "unable")
        || matches!((first, words.get(1).map(String::as_str)), ("could" | "can", Some("not")))
}

/// Phrases of messages that tell a failure.
const FAILURE_PHRASES: &[&str] = &[
    "access denied",
    "can't ",
    "cannot ",
    "does not exist",
    "do not exist",
    "doesn't exist",
    "error:",
    "failed to ",
    "failed with",
    "failing",
    "falling back",
    "is forbidden",
    "is invalid",
    "nodes are available:",
    "not allowed",
    "not been accepted",
    "not found",
    "not permitted",
    "non existing",
    "permission denied",
    "refused",
    "timed out",
    "unable to ",
    "unauthorized",
];

/// Whether a message tells a failure anywhere in its beginning.
pub(crate) fn tells_failure(message: &str) -> bool {
    const BEGINNING: usize = 400;
    let beginning = message[..message.floor_char_boundary(BEGINNING)].to_lowercase();
    // "No key could decrypt", "none of the providers can advertise".
    let none_can = (beginning.starts_with("no ") || beginning.starts_with("none "))
        && [" can ", " could "].iter().any(|can| beginning.contains(can));
    none_can || FAILURE_PHRASES.iter().any(|phrase| beginning.contains(phrase))
}

/// Whether nothing of an object in this state should run.
pub(super) fn is_at_rest(word: &str) -> bool {
    word.starts_with("hibernat") || matches!(word, "parked" | "shelved" | "sleeping") || is_halted(word)
}

/// Whether a reason or a wanted state names a suspension.
pub(super) fn tells_suspension(text: &str) -> bool {
    meaning(text) == Some(State::Suspended) || (is_halted(text) && meaning(text) != Some(State::Failed))
}

/// Whether a condition of unknown polarity reports a failure.
pub(super) fn is_negative(reason: &str, message: &str) -> bool {
    meaning(reason) == Some(State::Failed) || tells_failure(message)
}

/// In bytes. Longer text is prose: the rest is ignored.
const LONGEST: usize = 120;

/// Splits into lower-case words: `ImagePullBackOff` and `image-pull-back-off` are the same.
pub(super) fn words(phrase: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    let phrase = &phrase[..phrase.floor_char_boundary(LONGEST)];
    let mut characters = phrase.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() {
            let next_is_lower = characters.peek().is_some_and(|next| next.is_lowercase());
            let begins = !before.is_alphanumeric()
                || (character.is_uppercase()
                    && (before.is_lowercase() || before.is_numeric() || next_is_lower));
            if begins {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                if character.is_ascii() {
                    word.push(character.to_ascii_lowercase());
                } else {
                    word.extend(character.to_lowercase());
                }
            }
        }
        before = character;
    }
    words
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("ImagePullBackOff", "image pull back off")]
    #[case("OOMKilled", "oom killed")]
    #[case("rolling-update", "rolling update")]
    #[case("InProgress", "in progress")]
    #[case("CREATE_FAILED", "create failed")]
    #[case("READY", "ready")]
    #[case("EKSControlPlaneReady", "eks control plane ready")]
    #[case("", "")]
    fn splitting(#[case] phrase: &str, #[case] expected: &str) {
        assert_eq!(words(phrase).join(" "), expected);
    }

    #[rstest]
    #[case("Running", Some(State::Ready))]
    #[case("READY", Some(State::Ready))]
    #[case("Not Ready", Some(State::InProgress))]
    #[case("NotReady", Some(State::InProgress))]
    #[case("CreatingCluster", Some(State::InProgress))]
    #[case("Creation in progress", Some(State::InProgress))]
    #[case("UpdateFailed", Some(State::Failed))]
    #[case("SecretNotFound", Some(State::Failed))]
    #[case("NotDegraded", None)]
    #[case("Paused", Some(State::Suspended))]
    #[case("Deleting", Some(State::Terminating))]
    #[case("CrashLoopBackOff", Some(State::Failed))]
    #[case("ROLLBACK_COMPLETE", Some(State::InProgress))]
    #[case("PartiallyReady", Some(State::InProgress))]
    #[case("To be installed", Some(State::InProgress))]
    #[case("WaitingForMissingSecret", Some(State::InProgress))]
    #[case("RecoveringFromFailure", Some(State::InProgress))]
    #[case("not ready: failed", Some(State::Failed))]
    #[case("MinimumReplicasUnavailable", None)]
    #[case("Unavailable", Some(State::Failed))]
    #[case("UpdateConflict", None)]
    #[case("main progress failed", Some(State::Failed))]
    #[case("Blue", None)]
    fn meanings(#[case] phrase: &str, #[case] expected: Option<State>) {
        assert_eq!(meaning(phrase), expected);
    }

    #[test]
    fn no_word_has_two_meanings() {
        let all: Vec<_> = WORDS.iter().flat_map(|(_, words)| words.split_whitespace()).collect();
        assert_eq!(all.len(), MEANINGS.len());
    }
}
