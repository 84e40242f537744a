//! Work that ends: Job, CronJob.

use super::{Judge, KindRule};
use crate::{
    read::{Condition, Reader},
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "batch/Job",
        says: "Ready when complete. Failed when it has failed or is about to. Suspended while suspended. Before that: in \
               progress, as far as completions have succeeded.",
        reads: &["spec.completions", "spec.suspend", "status"],
        judge: Judge::By(job),
    },
    KindRule {
        id: "batch/CronJob",
        says: "Ready while it keeps to its schedule, also while suspended. Failed when its last run has ended without \
               success.",
        reads: &["spec.schedule", "spec.suspend", "status"],
        judge: Judge::By(cron_job),
    },
];

fn job(o: &Reader<'_>) -> Verdict {
    let progress =
        Progress { succeeded: o.count("status.succeeded"), completions: o.int("spec.completions") };
    let (active, failures) = (o.count("status.active"), o.count("status.failed"));
    let holds = |kind| o.condition(kind).filter(Condition::is_true);
    if let Some(complete) = holds("Complete") {
        return Verdict::ready("Completed", progress.says()).since(complete.since());
    }
    if let Some(failed) = holds("Failed").or_else(|| holds("FailureTarget")) {
        let message = match failures {
            0 => failed.says(),
            failures => format!("{}, {failures} failed: {}", progress.says(), failed.says()),
        };
        return progress
            .of(Verdict::failed(failed.reason_or_type().to_owned(), message).since(failed.since()));
    }
    let suspended = holds("Suspended");
    // A Job that was resumed is no longer stopped on purpose, though its controller may not have seen that yet.
    if o.flag("spec.suspend") || (suspended.is_some() && !o.has("spec.suspend")) {
        let since = suspended.and_then(|suspended| suspended.since());
        let message = format!("suspended with {}", progress.says());
        return progress.of(Verdict::suspended("Suspended", message).since(since));
    }
    if !o.has("status.startTime") {
        return Verdict::in_progress("NotStarted", "it has not been started yet");
    }
    let failures = if failures > 0 { format!(", {failures} failed") } else { String::new() };
    let message = format!("{}, {active} active{failures}", progress.says());
    progress.of(Verdict::in_progress("Running", message).since(o.time("status.startTime")))
}

/// How far a Job is. One that works on a queue has no number of completions: it is done when its Pods say so.
struct Progress {
    succeeded: i64,
    completions: Option<i64>,
}

impl Progress {
    fn says(&self) -> String {
        match self.completions {
            Some(completions) => format!("{} of {completions} completed", self.succeeded),
            None => format!("{} completed", self.succeeded),
        }
    }

    fn of(&self, verdict: Verdict) -> Verdict {
        match self.completions {
            Some(completions) => verdict.progress(self.succeeded, completions),
            None => verdict,
        }
    }
}

fn cron_job(o: &Reader<'_>) -> Verdict {
    if o.flag("spec.suspend") {
        return Verdict::ready("Suspended", "its schedule is suspended");
    }
    let running = o.items("status.active").count();
    let Some(last) = o.time("status.lastScheduleTime") else {
        return Verdict::ready(
            "Scheduled",
            format!("it runs at \"{}\", and has not yet", o.text("spec.schedule")),
        );
    };
    if running > 0 {
        return Verdict::ready("Running", format!("{running} running, scheduled for {last}"));
    }
    match o.time("status.lastSuccessfulTime") {
        Some(success) if success >= last => {
            Verdict::ready("Scheduled", format!("its last run, scheduled for {last}, succeeded"))
        }
        _ => {
            Verdict::failed("LastRunFailed", format!("its last run, scheduled for {last}, has not succeeded"))
                .since(Some(last))
        }
    }
}
