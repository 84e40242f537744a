//! Workloads whose Pods the API server refuses, for example because of a ResourceQuota.
//!
//! The controllers of StatefulSets, DaemonSets and Jobs report that only in Events. In the object, Pods are
//! missing although all others are available, and the status stays as it is. When it was written last is in
//! `metadata.managedFields`.

use jiff::{SignedDuration, Timestamp};

use crate::{read::Reader, reasons, verdict::Verdict};

/// Paths that a rule must read.
pub(super) const SUBRESOURCES: &str = "metadata.managedFields.subresource";
pub(super) const TIMES: &str = "metadata.managedFields.time";

/// These controllers create the next Pod as soon as the others are available. Between attempts that fail, they
/// wait longer and longer.
const GRACE_PERIOD: SignedDuration = SignedDuration::from_secs(60);

/// `verdict` until the grace period is over, then `Failed` with the message.
pub(super) fn fail_later(o: &Reader<'_>, verdict: Verdict, message: String) -> Verdict {
    let written = status_written(o);
    let Some(deadline) = written.and_then(|written| written.checked_add(GRACE_PERIOD).ok()) else {
        return verdict;
    };
    let failed = Verdict::failed(reasons::FAILED_CREATE, message).since(written);
    let failed = Verdict { progress: verdict.progress, ..failed };
    if o.now() >= deadline { failed } else { verdict.until(deadline, failed) }
}

/// When a field of the status changed last. Unknown where a client has removed the managed fields.
fn status_written(o: &Reader<'_>) -> Option<Timestamp> {
    let entries = o.items("metadata.managedFields");
    let of_status = entries.filter(|entry| entry.text("subresource") == "status");
    of_status.filter_map(|entry| entry.time("time")).max()
}
