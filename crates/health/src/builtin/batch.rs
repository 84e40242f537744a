//! Batch workloads: Job, CronJob.

use super::{Evaluator, KindRule, missing_pods};
use crate::{
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "batch/Job",
        description: "`Ready` if complete; `Failed` if condition `Failed` or `FailureTarget` is True, or if \
                      no Pod has failed and none has been created for a minute; `Suspended` if suspended, or if \
                      `spec.parallelism` is 0; otherwise `InProgress`. Progress counts succeeded completions.",
        reads: &[
            "spec.completions",
            "spec.parallelism",
            "spec.suspend",
            "spec.managedBy",
            "status",
            missing_pods::SUBRESOURCES,
            missing_pods::TIMES,
        ],
        evaluator: Evaluator::Function(job),
    },
    KindRule {
        id: "batch/CronJob",
        description: "`Failed` if the last run failed; otherwise `Ready`, also if suspended.",
        reads: &["spec.schedule", "spec.suspend", "status"],
        evaluator: Evaluator::Function(cron_job),
    },
];

fn job(o: &Reader<'_>) -> Verdict {
    let progress =
        Progress { succeeded: o.count("status.succeeded"), completions: o.int("spec.completions") };
    let (active, failures) = (o.count("status.active"), o.count("status.failed"));
    let holds = |kind| o.condition(kind).filter(Condition::is_true);
    if let Some(complete) = holds("Complete") {
        return Verdict::ready(reasons::COMPLETED, progress.describe()).since(complete.since());
    }
    if let Some(failed) = holds("Failed").or_else(|| holds("FailureTarget")) {
        let message = match failures {
            0 => failed.quoted(),
            failures => format!("{}, {failures} failed: {}", progress.describe(), failed.quoted()),
        };
        return progress
            .of(Verdict::failed(failed.reason_or_type().to_owned(), message).since(failed.since()));
    }
    let suspended = holds("Suspended");
    // The condition Suspended stays True until the controller has observed a resumed Job.
    if o.flag("spec.suspend") || (suspended.is_some() && !o.has("spec.suspend")) {
        let since = suspended.and_then(|suspended| suspended.since());
        let message = format!("suspended, {}", progress.describe());
        return progress.of(Verdict::suspended(reasons::SUSPENDED, message).since(since));
    }
    // The controller creates no Pods until a user increases it.
    if o.int("spec.parallelism") == Some(0) {
        let message = format!("parallelism 0, {}", progress.describe());
        return progress.of(Verdict::suspended(reasons::SUSPENDED, message));
    }
    if !o.has("status.startTime") {
        return Verdict::in_progress(reasons::NOT_STARTED, "not started yet");
    }
    let failed = if failures > 0 { format!(", {failures} failed") } else { String::new() };
    let message = format!("{}, {active} active{failed}", progress.describe());
    let verdict =
        progress.of(Verdict::in_progress(reasons::RUNNING, message).since(o.time("status.startTime")));
    // After a failure, the controller waits before it creates the next Pod. Pods that have ended are not active
    // before the controller has counted them.
    let uncounted = ["succeeded", "failed"]
        .into_iter()
        .any(|end| o.items(&format!("status.uncountedTerminatedPods.{end}")).next().is_some());
    let is_of_others = !matches!(o.text("spec.managedBy"), "" | "kubernetes.io/job-controller");
    if is_of_others || active > 0 || failures > 0 || o.count("status.terminating") > 0 || uncounted {
        return verdict;
    }
    missing_pods::fail_later(o, verdict, format!("{}, no Pod created", progress.describe()))
}

/// A Job with a work queue has no `spec.completions`: it is complete when its Pods decide so.
struct Progress {
    succeeded: i64,
    completions: Option<i64>,
}

impl Progress {
    fn describe(&self) -> String {
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
        return Verdict::ready(reasons::SUSPENDED, "suspended");
    }
    let running = o.items("status.active").count();
    let Some(last) = o.time("status.lastScheduleTime") else {
        return Verdict::ready(
            reasons::SCHEDULED,
            format!("schedule \"{}\", no run yet", o.text("spec.schedule")),
        );
    };
    if running > 0 {
        return Verdict::ready(reasons::RUNNING, format!("{running} active, scheduled at {last}"));
    }
    match o.time("status.lastSuccessfulTime") {
        Some(success) if success >= last => {
            Verdict::ready(reasons::SCHEDULED, format!("last run at {last} succeeded"))
        }
        _ => {
            Verdict::failed(reasons::LAST_RUN_FAILED, format!("last run at {last} failed")).since(Some(last))
        }
    }
}
