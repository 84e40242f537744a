//! What is a delay at first, and a failure if it lasts.

use bellwether_model::State;
use jiff::{SignedDuration, Timestamp};

use crate::{read::Reader, verdict::Verdict};

/// In progress for a while, then failed; in progress for ever if nobody knows since when.
pub(super) fn after(
    o: &Reader<'_>,
    since: Option<Timestamp>,
    patience: SignedDuration,
    verdict: impl Fn(State) -> Verdict,
) -> Verdict {
    let in_progress = verdict(State::InProgress).since(since);
    match since.and_then(|since| since.checked_add(patience).ok()) {
        None => in_progress,
        Some(deadline) if o.now() >= deadline => verdict(State::Failed).since(since),
        Some(deadline) => in_progress.until(deadline, verdict(State::Failed).since(since)),
    }
}
