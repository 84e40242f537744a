//! Counters of replicas, for kinds that have nothing else to say.

use crate::{read::Reader, verdict::Verdict};

/// Where kinds say how many replicas they want, and how many are ready.
pub(crate) const WANTED: &[&str] = &["spec.replicas", "spec.size", "spec.instances", "status.replicas"];
/// Where they say how many are ready.
pub(crate) const READY: &[&str] =
    &["status.readyReplicas", "status.availableReplicas", "status.readyInstances"];

/// What the counters say, if there are counters.
pub(crate) fn judge(o: &Reader<'_>) -> Option<Verdict> {
    let counted =
        ["status.replicas", "status.updatedReplicas"].iter().chain(READY).any(|path| o.int(path).is_some());
    if !counted {
        return None;
    }
    let wanted = WANTED.iter().find_map(|path| o.int(path))?;
    let ready = READY.iter().filter_map(|path| o.int(path)).min().unwrap_or(0);
    let updated = o.int("status.updatedReplicas").filter(|updated| *updated < wanted);
    let verdict = match updated {
        Some(updated) => {
            Verdict::in_progress("RollingOut", format!("{updated} of {wanted} replicas updated"))
        }
        None if ready < wanted => {
            Verdict::in_progress("ReplicasNotReady", format!("{ready} of {wanted} replicas ready"))
        }
        None => Verdict::ready("ReplicasReady", format!("{ready} of {wanted} replicas ready")),
    };
    Some(verdict.progress(ready, wanted))
}

/// Whether it says how many are ready. A counter that is left out may be zero, or may not exist for this kind.
pub(crate) fn counts_the_ready(o: &Reader<'_>) -> bool {
    READY.iter().any(|path| o.int(path).is_some())
}
