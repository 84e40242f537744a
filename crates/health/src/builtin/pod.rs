//! Pods: the phase, and the container that is in its way.

use bellwether_model::State;
use jiff::{SignedDuration, Timestamp};

use super::{Judge, KindRule, patience::after};
use crate::{
    generation,
    read::{Condition, Reader},
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[KindRule {
    id: "Pod",
    says: "Ready when it is, or when it has completed. Failed when it failed, when a container cannot be started, \
           crashes again and again or runs out of memory again and again, and when no node has suited it for 15 \
           seconds. Unknown when its node is lost.",
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
    judge: Judge::By(pod),
}];

/// How long the scheduler may look for a node before that counts as a failure.
const SCHEDULING: SignedDuration = SignedDuration::from_secs(15);

/// How often a container may run out of memory before that counts as a loop.
const MEMORY_LOOP: i64 = 2;

/// Why a container waits, where waiting will not help.
const HOPELESS: &[(&str, &str)] = &[
    ("CrashLoopBackOff", "crashes again and again"),
    ("ImagePullBackOff", "cannot pull its image"),
    ("ErrImagePull", "cannot pull its image"),
    ("ErrImageNeverPull", "may not pull its image, which is not on the node"),
    ("InvalidImageName", "has an image name that is none"),
    ("ImageInspectError", "has an image that cannot be inspected"),
    ("RegistryUnavailable", "has an image whose registry does not answer"),
    ("SignatureValidationFailed", "has an image whose signature is not valid"),
    ("CreateContainerConfigError", "cannot be configured"),
    ("CreateContainerError", "cannot be created"),
    ("RunContainerError", "cannot be run"),
    ("PreStartHookError", "fails in its hook before the start"),
    ("PostStartHookError", "fails in its hook after the start"),
    ("StartError", "cannot be started"),
];

fn pod(o: &Reader<'_>) -> Verdict {
    if o.text("status.reason") == "NodeLost" {
        return Verdict::unknown("NodeLost", "its node does not report any more");
    }
    match o.text("status.phase") {
        "Succeeded" => Verdict::ready("Completed", "it has completed"),
        "Failed" => failed(o),
        "Unknown" => Verdict::unknown("PhaseUnknown", "its node does not report any more"),
        "" => Verdict::in_progress("NotObserved", "nobody has looked at it yet"),
        phase => stuck_container(o).unwrap_or_else(|| match phase {
            "Running" => generation::reported_behind(o).unwrap_or_else(|| running(o)),
            "Pending" => pending(o),
            phase => Verdict::unknown("UnknownPhase", format!("no rule knows its phase {phase}")),
        }),
    }
}

fn failed(o: &Reader<'_>) -> Verdict {
    let (own_reason, own_message) = (o.text("status.reason"), o.text("status.message"));
    let culprit = containers(o).find_map(|container| {
        container.ended("state").filter(|end| end.code != 0).map(|end| (container, end))
    });
    let since = o.condition("Ready").and_then(|ready| ready.since());
    let verdict = match culprit {
        Some((container, end)) if own_message.is_empty() => {
            let reason = if own_reason.is_empty() { end.reason } else { own_reason };
            Verdict::failed(reason.to_owned(), format!("{} {}", container.called(), end.says()))
        }
        _ if own_reason.is_empty() && own_message.is_empty() => Verdict::failed("PodFailed", "it has failed"),
        _ => {
            let reason = if own_reason.is_empty() { "PodFailed" } else { own_reason };
            let message = if own_message.is_empty() { own_reason } else { own_message };
            Verdict::failed(reason.to_owned(), message.to_owned())
        }
    };
    verdict.since(since)
}

/// The first container that cannot start or does not stay up.
fn stuck_container(o: &Reader<'_>) -> Option<Verdict> {
    let not_ready_since =
        || o.condition("Ready").filter(|ready| !ready.is_true()).and_then(|ready| ready.since());
    containers(o).find_map(|container| {
        let waiting = container.place.text("state.waiting.reason");
        let last = container.ended("lastState");
        let restarts = container.place.count("restartCount");
        let since = last.as_ref().and_then(|end| end.at);
        if let Some((reason, trouble)) = HOPELESS.iter().find(|(reason, _)| *reason == waiting) {
            let detail = match (&last, container.place.text("state.waiting.message")) {
                // The message of a crash loop is about the back-off; the last end says why.
                (Some(end), _) if *reason == "CrashLoopBackOff" => {
                    format!(
                        "{trouble}: it {}, {restarts} restart{}",
                        end.says(),
                        if restarts == 1 { "" } else { "s" }
                    )
                }
                (_, "") => (*trouble).to_owned(),
                (_, message) => format!("{trouble}: {message}"),
            };
            let since = since.or_else(not_ready_since);
            return Some(Verdict::failed(*reason, format!("{} {detail}", container.called())).since(since));
        }
        let out_of_memory = last.filter(|end| end.reason == "OOMKilled")?;
        (restarts >= MEMORY_LOOP && !container.place.flag("ready")).then(|| {
            let message =
                format!("{} runs out of memory again and again: {restarts} restarts", container.called());
            Verdict::failed("OOMKilled", message).since(out_of_memory.at)
        })
    })
}

fn running(o: &Reader<'_>) -> Verdict {
    let ready = o.condition("Ready");
    let since = ready.as_ref().and_then(Condition::since);
    if ready.as_ref().is_some_and(Condition::is_true) {
        return Verdict::ready("PodReady", "it is running and ready").since(since);
    }
    let message = match containers(o).find(|container| !container.place.flag("ready")) {
        Some(container) => container.not_ready_because(),
        None => match ready.as_ref().map(Condition::message) {
            None | Some("") => "it is running and not ready".to_owned(),
            Some(message) => message.to_owned(),
        },
    };
    Verdict::in_progress("PodNotReady", message).since(since)
}

fn pending(o: &Reader<'_>) -> Verdict {
    if let Some(scheduled) = o.condition("PodScheduled").filter(|scheduled| !scheduled.is_true()) {
        return unscheduled(o, &scheduled);
    }
    if o.text("spec.nodeName").is_empty() && containers(o).next().is_none() {
        return Verdict::in_progress("NotScheduled", "it waits for the scheduler");
    }
    let unfinished = containers(o)
        .find(|container| container.ended("state").is_none_or(|end| end.code != 0))
        .map(|container| container.not_ready_because());
    let message = unfinished.unwrap_or_else(|| "its containers are being prepared".to_owned());
    Verdict::in_progress("PodPending", message)
}

fn unscheduled(o: &Reader<'_>, scheduled: &Condition<'_>) -> Verdict {
    let message = match scheduled.message() {
        "" => "no node suits it".to_owned(),
        message => format!("no node suits it: {message}"),
    };
    match scheduled.reason() {
        "SchedulingGated" => {
            Verdict::suspended("SchedulingGated", "its scheduling gates are closed").since(scheduled.since())
        }
        "Unschedulable" => {
            let since = scheduled.since().or_else(|| o.time("metadata.creationTimestamp"));
            after(o, since, SCHEDULING, |state| match state {
                State::Failed => Verdict::failed("Unschedulable", message.clone()),
                _ => Verdict::in_progress("NotScheduled", message.clone()),
            })
            .since(since)
        }
        _ => Verdict::in_progress("NotScheduled", "it waits for the scheduler").since(scheduled.since()),
    }
}

/// What a container is called that must be done before the others begin.
const INIT: &str = "init container";

/// A container as its Pod reports it.
struct Container<'o> {
    what: &'static str,
    place: Reader<'o>,
}

/// How a container ended.
struct End<'o> {
    reason: &'o str,
    code: i64,
    message: &'o str,
    at: Option<Timestamp>,
}

/// The containers, those that must be done first before the others.
fn containers<'o>(o: &Reader<'o>) -> impl Iterator<Item = Container<'o>> + use<'o> {
    let lists = [(INIT, "status.initContainerStatuses"), ("container", "status.containerStatuses")];
    let o = o.clone();
    lists.into_iter().flat_map(move |(what, path)| o.items(path).map(move |place| Container { what, place }))
}

impl<'o> Container<'o> {
    fn called(&self) -> String {
        format!("{} {}", self.what, self.place.text("name"))
    }

    fn ended(&self, state: &str) -> Option<End<'o>> {
        let end = self.place.at(state).at("terminated");
        end.has("exitCode").then(|| End {
            reason: match end.text("reason") {
                "" => "Error",
                reason => reason,
            },
            code: end.int("exitCode").unwrap_or(0),
            message: end.text("message"),
            at: end.time("finishedAt"),
        })
    }

    fn not_ready_because(&self) -> String {
        let called = self.called();
        match self.place.text("state.waiting.reason") {
            "" if self.place.has("state.running") && self.what == INIT => format!("{called} is running"),
            "" if self.place.has("state.running") && self.place.flag("started") => {
                format!("{called} is running and not ready")
            }
            "" if self.place.has("state.running") => format!("{called} has not started up yet"),
            "" => match self.ended("state") {
                Some(end) => format!("{called} {}", end.says()),
                None => format!("{called} has not started yet"),
            },
            reason => format!("{called} waits: {reason}"),
        }
    }
}

impl End<'_> {
    fn says(&self) -> String {
        let because = match self.reason {
            "Error" | "Completed" => String::new(),
            reason => format!(" ({reason})"),
        };
        let message = match self.message.trim() {
            "" => String::new(),
            message => format!(": {message}"),
        };
        format!("ended with exit code {}{because}{message}", self.code)
    }
}
