//! Pods: phase, scheduling and containers.

use std::cell::LazyCell;

use jiff::{SignedDuration, Timestamp};

use super::{Evaluator, KindRule, grace_period::fail_after};
use crate::{
    generation,
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[KindRule {
    id: "Pod",
    description: "`Unknown` if the node is lost; `Failed` if the phase is Failed, if a container cannot \
                  start, is in `CrashLoopBackOff`, or is not ready for its first 10 minutes after such a back-off \
                  (reason `OOMKilled` if it was OOMKilled last), or if the Pod has been unschedulable for 15 seconds; \
                  `Ready` if condition `Ready` is True or the phase is Succeeded; `Suspended` by scheduling \
                  gates; otherwise `InProgress`.",
    reads: &[
        "spec.nodeName",
        "status.phase",
        "status.reason",
        "status.message",
        "status.observedGeneration",
        "status.conditions",
        "status.initContainerStatuses",
        "status.containerStatuses",
    ],
    evaluator: Evaluator::Function(pod),
}];

/// Grace period of an unschedulable Pod.
const SCHEDULING: SignedDuration = SignedDuration::from_secs(15);

/// Restarts from which on a container that crashes is in a crash loop: the first one has no back-off.
const CRASH_LOOP_RESTARTS: i64 = 2;

/// The kubelet resets the back-off of a container that has run for so long.
const BACK_OFF_RESET: SignedDuration = SignedDuration::from_mins(10);

/// Reasons of terminations of which the exit code is made up.
const UNKNOWN_ENDS: &[&str] = &["ContainerStatusUnknown", "Unknown"];

/// Restarts from which on a ready Pod has a remark.
const MANY_RESTARTS: i64 = 5;

/// Reasons of waiting containers that count as failures.
const FAILED_WAITING: &[&str] = &[
    reasons::CRASH_LOOP_BACK_OFF,
    reasons::IMAGE_PULL_BACK_OFF,
    reasons::ERR_IMAGE_PULL,
    reasons::ERR_IMAGE_NEVER_PULL,
    reasons::INVALID_IMAGE_NAME,
    reasons::IMAGE_INSPECT_ERROR,
    reasons::REGISTRY_UNAVAILABLE,
    reasons::SIGNATURE_VALIDATION_FAILED,
    reasons::CREATE_CONTAINER_CONFIG_ERROR,
    reasons::CREATE_CONTAINER_ERROR,
    reasons::RUN_CONTAINER_ERROR,
    reasons::PRE_START_HOOK_ERROR,
    reasons::POST_START_HOOK_ERROR,
    reasons::START_ERROR,
];

fn pod(o: &Reader<'_>) -> Verdict {
    if o.text("status.reason") == reasons::NODE_LOST {
        return Verdict::unknown(reasons::NODE_LOST, "node not reporting");
    }
    match o.text("status.phase") {
        "Succeeded" => Verdict::ready(reasons::COMPLETED, "completed"),
        "Failed" => failed(o),
        "Unknown" => Verdict::unknown(reasons::POD_UNKNOWN, "phase Unknown, node not reporting"),
        "" => Verdict::not_observed(),
        phase => failed_container(o).unwrap_or_else(|| match phase {
            "Running" => generation::reported_behind(o).unwrap_or_else(|| running(o)),
            "Pending" => pending(o),
            phase => Verdict::unrecognized_phase(phase),
        }),
    }
}

fn failed(o: &Reader<'_>) -> Verdict {
    let (own_reason, own_message) = (o.text("status.reason"), o.text("status.message"));
    let terminated = containers(o).find_map(|container| {
        container.terminated("state").filter(|end| end.code != 0).map(|end| (container, end))
    });
    let since = o.condition("Ready").and_then(|ready| ready.since());
    let verdict = match terminated {
        Some((container, end)) if own_message.is_empty() => {
            let reason = if own_reason.is_empty() { end.reason } else { own_reason };
            Verdict::failed(reason.to_owned(), format!("{}: {}", container.title(), end.describe()))
        }
        _ if own_reason.is_empty() && own_message.is_empty() => {
            Verdict::failed(reasons::POD_FAILED, "phase Failed, no reason reported")
        }
        _ => {
            let reason = if own_reason.is_empty() { reasons::POD_FAILED } else { own_reason };
            let message = if own_message.is_empty() { own_reason } else { own_message };
            Verdict::failed(reason.to_owned(), message.to_owned())
        }
    };
    verdict.since(since)
}

/// The verdict on the first container that cannot start or keeps terminating.
///
/// Such a Pod has failed since it is not ready: the time of the last termination changes with each restart.
fn failed_container(o: &Reader<'_>) -> Option<Verdict> {
    let not_ready_since =
        || o.condition("Ready").filter(|ready| !ready.is_true()).and_then(|ready| ready.since());
    // Of several containers that run between two crashes, the one that started last decides: so the verdict
    // changes only once with time.
    let last_reset =
        LazyCell::new(|| containers(o).filter_map(|container| container.between_crashes()?.ends_at).max());
    containers(o).find_map(|container| {
        let waiting = container.place.text("state.waiting.reason");
        if let Some(reason) = FAILED_WAITING.iter().find(|reason| **reason == waiting) {
            let last = container.terminated("lastState");
            let since = || not_ready_since().or(last.as_ref().and_then(|end| end.at));
            let message = match *reason {
                reasons::CRASH_LOOP_BACK_OFF => {
                    return Some(container.crash_loop(last.as_ref()).since(since()));
                }
                reasons::IMAGE_PULL_BACK_OFF | reasons::ERR_IMAGE_PULL => container.pull_failure(),
                reason => match container.place.text("state.waiting.message") {
                    "" => format!("{}: {reason}", container.title()),
                    message => format!("{}: {message}", container.title()),
                },
            };
            return Some(Verdict::failed(*reason, message).since(since()));
        }
        let CrashLoop { crash, ends_at } = container.between_crashes()?;
        let verdict = container.crash_loop(Some(&crash)).since(not_ready_since().or(crash.at));
        match ends_at {
            None => Some(verdict),
            Some(at) if Some(at) == *last_reset => Some(verdict.until(at, pod(&o.as_of(at)))),
            Some(_) => None,
        }
    })
}

fn running(o: &Reader<'_>) -> Verdict {
    let ready = o.condition("Ready");
    let since = ready.as_ref().and_then(Condition::since);
    if ready.as_ref().is_some_and(Condition::is_true) {
        let message = match containers(o).find_map(|container| container.restarts_often()) {
            Some(remark) => format!("running, ready; {remark}"),
            None => "running, ready".to_owned(),
        };
        return Verdict::ready(reasons::POD_READY, message).since(since);
    }
    let message = match containers(o).find(|container| !container.place.flag("ready")) {
        Some(container) => container.why_not_ready(),
        None => match ready.as_ref().map(Condition::message) {
            None | Some("") => "running, not ready".to_owned(),
            Some(message) => message.to_owned(),
        },
    };
    Verdict::in_progress(reasons::POD_NOT_READY, message).since(since)
}

fn pending(o: &Reader<'_>) -> Verdict {
    if let Some(scheduled) = o.condition("PodScheduled").filter(|scheduled| !scheduled.is_true()) {
        return unscheduled(o, &scheduled);
    }
    if o.text("spec.nodeName").is_empty() && containers(o).next().is_none() {
        return Verdict::in_progress(reasons::NOT_SCHEDULED, "waiting for the scheduler");
    }
    let unfinished = containers(o)
        .find(|container| container.terminated("state").is_none_or(|end| end.code != 0))
        .map(|container| container.why_not_ready());
    let message = unfinished.unwrap_or_else(|| "containers not started".to_owned());
    Verdict::in_progress(reasons::POD_PENDING, message)
}

fn unscheduled(o: &Reader<'_>, scheduled: &Condition<'_>) -> Verdict {
    let message = match scheduled.message() {
        "" => "no node available".to_owned(),
        _ => scheduled.quoted(),
    };
    match scheduled.reason() {
        reasons::SCHEDULING_GATED => {
            Verdict::suspended(reasons::SCHEDULING_GATED, "waiting for scheduling gates")
                .since(scheduled.since())
                .blocks(true)
        }
        reasons::UNSCHEDULABLE => {
            let since = scheduled.since().or_else(|| o.time("metadata.creationTimestamp"));
            fail_after(o, since, SCHEDULING, |state| {
                Verdict::new(state, reasons::UNSCHEDULABLE, message.clone())
            })
        }
        _ => {
            Verdict::in_progress(reasons::NOT_SCHEDULED, "waiting for the scheduler").since(scheduled.since())
        }
    }
}

const INIT: &str = "init container";

/// An entry of `status.containerStatuses` or `status.initContainerStatuses`.
struct Container<'o> {
    what: &'static str,
    place: Reader<'o>,
}

/// A terminated container state.
struct Terminated<'o> {
    reason: &'o str,
    code: i64,
    message: &'o str,
    at: Option<Timestamp>,
}

/// A crash loop of a container that does not wait in `CrashLoopBackOff` at the moment.
struct CrashLoop<'o> {
    /// The last termination.
    crash: Terminated<'o>,
    /// When the kubelet resets the back-off, if the container runs until then. `None` if it does not run.
    ends_at: Option<Timestamp>,
}

/// Init containers first.
fn containers<'o>(o: &Reader<'o>) -> impl Iterator<Item = Container<'o>> + use<'o> {
    let lists = [(INIT, "status.initContainerStatuses"), ("container", "status.containerStatuses")];
    let o = o.clone();
    lists.into_iter().flat_map(move |(what, path)| o.items(path).map(move |place| Container { what, place }))
}

impl<'o> Container<'o> {
    fn title(&self) -> String {
        format!("{} {}", self.what, self.place.text("name"))
    }

    fn terminated(&self, state: &str) -> Option<Terminated<'o>> {
        let end = self.place.at(state).at("terminated");
        end.has("exitCode").then(|| Terminated {
            reason: match end.text("reason") {
                "" => reasons::ERROR,
                reason => reason,
            },
            code: end.int("exitCode").unwrap_or(0),
            message: end.text("message"),
            at: end.time("finishedAt"),
        })
    }

    /// A container in a crash loop runs between two back-offs, which does not mean that it has recovered.
    fn between_crashes(&self) -> Option<CrashLoop<'o>> {
        if self.place.count("restartCount") < CRASH_LOOP_RESTARTS || self.place.flag("ready") {
            return None;
        }
        let last = self.crash("lastState")?;
        if self.place.has("state.terminated") {
            return Some(CrashLoop { crash: self.crash("state")?, ends_at: None });
        }
        let ends_at = self.place.time("state.running.startedAt")?.checked_add(BACK_OFF_RESET).ok()?;
        (ends_at > self.place.now()).then_some(CrashLoop { crash: last, ends_at: Some(ends_at) })
    }

    /// A termination that failed, after a run that was too short to reset the back-off.
    fn crash(&self, state: &str) -> Option<Terminated<'o>> {
        let end = self.terminated(state).filter(|end| end.code != 0)?;
        // After a reboot of the node, the runtime and the kubelet do not know how a container has ended.
        if UNKNOWN_ENDS.contains(&end.reason) {
            return None;
        }
        // The runtime reports the Unix epoch for a container that it could not start.
        let started = self.place.at(state).time("terminated.startedAt");
        let started = started.filter(|started| *started > Timestamp::UNIX_EPOCH);
        let lasted = started.zip(end.at).map(|(started, ended)| ended.duration_since(started));
        lasted.is_none_or(|lasted| lasted < BACK_OFF_RESET).then_some(end)
    }

    /// The kubelet's message in CrashLoopBackOff is about the back-off. The last termination has the cause.
    fn crash_loop(&self, last: Option<&Terminated<'_>>) -> Verdict {
        let title = self.title();
        let Some(last) = last else {
            let message = match self.place.text("state.waiting.message") {
                "" => format!("{title}: CrashLoopBackOff"),
                message => format!("{title}: CrashLoopBackOff: {message}"),
            };
            return Verdict::failed(reasons::CRASH_LOOP_BACK_OFF, message);
        };
        let restarts = self.place.count("restartCount");
        let plural = if restarts == 1 { "" } else { "s" };
        let restarts = format!("{restarts} restart{plural}{}", last.last_crash());
        if last.reason == reasons::OOM_KILLED {
            return Verdict::failed(reasons::OOM_KILLED, format!("{title}: OOMKilled, {restarts}"));
        }
        let (code, said) = (last.exit_code(), last.message_suffix());
        let message = format!("{title}: CrashLoopBackOff, {code}, {restarts}{said}");
        Verdict::failed(reasons::CRASH_LOOP_BACK_OFF, message)
    }

    /// A remark on a container that has restarted often. It changes only with a restart.
    fn restarts_often(&self) -> Option<String> {
        let restarts = self.place.count("restartCount");
        (restarts >= MANY_RESTARTS).then(|| {
            let last = self.terminated("lastState").map_or_else(String::new, |end| end.last_crash());
            format!("{}: {restarts} restarts{last}", self.title())
        })
    }

    /// The kubelet reports `Back-off pulling image "IMAGE"`, newer versions with `: ErrImagePull: CAUSE`.
    fn pull_failure(&self) -> String {
        let message = self.place.text("state.waiting.message").trim();
        let back_off =
            message.strip_prefix("Back-off pulling image \"").and_then(|rest| rest.split_once('"'));
        let (named, cause) = back_off.unwrap_or(("", message));
        let cause = cause.trim_start_matches([':', ' ']);
        let cause = cause.strip_prefix("ErrImagePull: ").unwrap_or(cause);
        let image = match (self.place.text("image"), named) {
            ("", "") => "the image",
            ("", named) => named,
            (image, _) => image,
        };
        let cause = if cause.is_empty() { String::new() } else { format!(": {cause}") };
        format!("{} cannot pull {image}{cause}", self.title())
    }

    fn why_not_ready(&self) -> String {
        let title = self.title();
        match self.place.text("state.waiting.reason") {
            "" if self.place.has("state.running") && self.what == INIT => format!("{title}: running"),
            "" if self.place.has("state.running") && self.place.flag("started") => {
                format!("{title}: running, not ready")
            }
            "" if self.place.has("state.running") => format!("{title}: running, startup not complete"),
            "" => match self.terminated("state") {
                Some(end) => format!("{title}: {}", end.describe()),
                None => format!("{title}: not started"),
            },
            reason => format!("{title}: {reason}"),
        }
    }
}

impl Terminated<'_> {
    fn describe(&self) -> String {
        format!("terminated, {}{}", self.exit_code(), self.message_suffix())
    }

    /// `exit code 137 (OOMKilled)`.
    fn exit_code(&self) -> String {
        match self.reason {
            reasons::ERROR | reasons::COMPLETED => format!("exit code {}", self.code),
            reason => format!("exit code {} ({reason})", self.code),
        }
    }

    /// `, last crash 2026-11-14 11:56 UTC`. Not relative to now: messages change only with the object.
    fn last_crash(&self) -> String {
        match self.at {
            Some(at) => format!(", last crash {}", at.strftime("%Y-%m-%d %H:%M UTC")),
            None => String::new(),
        }
    }

    fn message_suffix(&self) -> String {
        match self.message.trim() {
            "" => String::new(),
            message => format!(": {message}"),
        }
    }
}
