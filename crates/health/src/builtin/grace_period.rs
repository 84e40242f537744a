//! Grace periods: conditions that count as failures only after some time.

use bellwether_model::State;
use jiff::{SignedDuration, Timestamp};

use crate::{read::Reader, verdict::Verdict};

/// `InProgress` during the grace period, `Failed` after it. `InProgress` if the start is unknown.
pub(super) fn fail_after(
    o: &Reader<'_>,
    since: Option<Timestamp>,
    grace_period: SignedDuration,
    verdict: impl Fn(State) -> Verdict,
) -> Verdict {
    let in_progress = verdict(State::InProgress).since(since);
    match since.and_then(|since| since.checked_add(grace_period).ok()) {
        None => in_progress,
        Some(deadline) if o.now() >= deadline => verdict(State::Failed).since(since),
        Some(deadline) => in_progress.until(deadline, verdict(State::Failed).since(since)),
    }
}
