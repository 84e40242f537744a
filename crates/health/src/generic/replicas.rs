//! Replica counters.

use crate::{read::Reader, reasons, verdict::Verdict};

/// Fields for the desired number of replicas, in order of precedence.
pub(crate) const WANTED: &[&str] = &["spec.replicas", "spec.size", "spec.instances", "status.replicas"];
/// Fields for the number of ready replicas. The lowest counts.
pub(crate) const READY: &[&str] = &[
    "status.readyReplicas",
    "status.availableReplicas",
    "status.readyInstances",
    "status.updatedReadyReplicas",
    "status.updatedAvailableReplicas",
];

/// `None` without counters.
pub(crate) fn evaluate(o: &Reader<'_>) -> Option<Verdict> {
    let counted =
        ["status.replicas", "status.updatedReplicas"].iter().chain(READY).any(|path| o.int(path).is_some());
    if !counted {
        return None;
    }
    let wanted = WANTED.iter().find_map(|path| o.int(path))?;
    let ready = READY.iter().filter_map(|path| o.int(path)).min().unwrap_or(0);
    let updated = o.int("status.updatedReplicas").filter(|updated| *updated < wanted);
    let done = ready.min(updated.unwrap_or(ready));
    let s = if wanted == 1 { "" } else { "s" };
    let verdict = match updated {
        Some(updated) => {
            Verdict::in_progress(reasons::ROLLING_OUT, format!("{updated} of {wanted} replica{s} updated"))
        }
        None if ready < wanted => {
            Verdict::in_progress(reasons::REPLICAS_NOT_READY, format!("{ready} of {wanted} replica{s} ready"))
        }
        None => Verdict::ready(reasons::REPLICAS_READY, format!("{ready} of {wanted} replica{s} ready")),
    };
    Some(verdict.progress(done, wanted))
}

/// Whether the wanted number of replicas is ready, also if not all are updated. `None` without counters.
pub(crate) fn are_ready(o: &Reader<'_>) -> Option<bool> {
    let wanted = WANTED.iter().find_map(|path| o.int(path))?;
    let ready = ["status.readyReplicas", "status.availableReplicas", "status.readyInstances"];
    Some(ready.iter().filter_map(|path| o.int(path)).min()? >= wanted)
}

/// An absent counter may be 0, or may not exist for this kind.
pub(crate) fn has_ready_counter(o: &Reader<'_>) -> bool {
    READY.iter().any(|path| o.int(path).is_some())
}
