//! The cluster itself: Namespace, Node, APIService, CustomResourceDefinition.

use bellwether_model::{ConditionStatus, State};
use jiff::SignedDuration;

use super::{Judge, KindRule, declarative::declarative, patience::after};
use crate::{
    read::{Condition, Reader},
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "Namespace",
        says: "Ready when active. Terminating when its phase says so, with what is in the way.",
        reads: &["status"],
        judge: Judge::By(namespace),
    },
    KindRule {
        id: "Node",
        says: "Ready when its kubelet says so and nothing is short. Suspended when cordoned. Unknown when the kubelet does \
               not report. Not ready is in progress for 5 minutes, as long as Pods stay on it, and failed then.",
        reads: &["spec.unschedulable", "status.conditions"],
        judge: Judge::By(node),
    },
    KindRule {
        id: "apiregistration.k8s.io/APIService",
        says: "Ready when available. Not available is in progress for a minute, while its server may be starting, and \
               failed then.",
        reads: &["status.conditions"],
        judge: Judge::By(api_service),
    },
    KindRule {
        id: "apiextensions.k8s.io/CustomResourceDefinition",
        says: "Ready when established. Failed when its names are taken, when it cannot be established, or when its schema \
               is not structural.",
        reads: &["status.conditions"],
        judge: Judge::By(definition),
    },
    KindRule {
        id: "flowcontrol.apiserver.k8s.io/FlowSchema",
        says: "Ready unless it is dangling.",
        reads: &["status.conditions"],
        judge: Judge::By(flow_schema),
    },
    declarative("flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration"),
    KindRule {
        id: "certificates.k8s.io/CertificateSigningRequest",
        says: "Ready when there is a certificate. Failed when denied, or when it could not be signed.",
        reads: &["status"],
        judge: Judge::By(signing_request),
    },
];

/// How long Pods stay on a node that is not ready, by default.
const NODE: SignedDuration = SignedDuration::from_mins(5);

/// How long an API server may take to start.
const API_SERVER: SignedDuration = SignedDuration::from_mins(1);

fn namespace(o: &Reader<'_>) -> Verdict {
    match o.text("status.phase") {
        "Active" => Verdict::ready("Active", "it is active"),
        "Terminating" => {
            let in_the_way = o.conditions_at("status.conditions").find(Condition::is_true);
            let verdict = |message| Verdict::new(State::Terminating, "BeingDeleted", message);
            match in_the_way {
                Some(condition) => {
                    condition.look();
                    verdict(format!("it is being deleted: {}", condition.says())).since(condition.since())
                }
                None => verdict("it is being deleted".to_owned()),
            }
        }
        _ => Verdict::in_progress("NotObserved", "it is not active yet"),
    }
}

fn node(o: &Reader<'_>) -> Verdict {
    let Some(ready) = o.condition("Ready") else {
        return Verdict::in_progress("NotObserved", "its kubelet has not reported yet");
    };
    match ready.status() {
        ConditionStatus::Unknown => {
            return Verdict::unknown(ready.reason_or_type().to_owned(), ready.says()).since(ready.since());
        }
        ConditionStatus::False => {
            return after(o, ready.since(), NODE, |state| {
                Verdict::new(state, ready.reason_or_type().to_owned(), ready.says())
            });
        }
        ConditionStatus::True => {}
    }
    let short = ["NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure"]
        .into_iter()
        .find_map(|kind| o.condition(kind).filter(Condition::is_true));
    if let Some(short) = short {
        return Verdict::in_progress(short.kind.to_owned(), short.says()).since(short.since());
    }
    if o.flag("spec.unschedulable") {
        return Verdict::suspended("Cordoned", "it is ready and takes no new Pods");
    }
    Verdict::ready("NodeReady", "its kubelet is ready").since(ready.since())
}

fn api_service(o: &Reader<'_>) -> Verdict {
    match o.condition("Available") {
        None => Verdict::in_progress("NotObserved", "nobody has looked at it yet"),
        Some(available) if available.is_true() => {
            Verdict::ready("Available", available.says()).since(available.since())
        }
        Some(available) => after(o, available.since(), API_SERVER, |state| {
            Verdict::new(state, available.reason_or_type().to_owned(), available.says())
        }),
    }
}

fn flow_schema(o: &Reader<'_>) -> Verdict {
    match o.condition("Dangling").filter(Condition::is_true) {
        Some(dangling) => Verdict::failed("Dangling", dangling.says()).since(dangling.since()),
        None => Verdict::ready("NotDangling", "its priority level exists"),
    }
}

fn signing_request(o: &Reader<'_>) -> Verdict {
    let refused =
        ["Denied", "Failed"].into_iter().find_map(|kind| o.condition(kind).filter(Condition::is_true));
    if let Some(refused) = refused {
        return Verdict::failed(refused.reason_or_type().to_owned(), refused.says()).since(refused.since());
    }
    if !o.text("status.certificate").is_empty() {
        return Verdict::ready("Issued", "its certificate is issued");
    }
    match o.condition("Approved").filter(Condition::is_true) {
        Some(approved) => {
            Verdict::in_progress("Approved", "it is approved and not yet signed").since(approved.since())
        }
        None => Verdict::in_progress("Pending", "it waits for somebody to approve it"),
    }
}

fn definition(o: &Reader<'_>) -> Verdict {
    if let Some(terminating) = o.condition("Terminating").filter(Condition::is_true) {
        return Verdict::new(State::Terminating, "BeingDeleted", terminating.says())
            .since(terminating.since());
    }
    if let Some(refused) = o.condition("NamesAccepted").filter(Condition::is_false) {
        let message = format!("its names are not accepted: {}", refused.says());
        return Verdict::failed(refused.reason_or_type().to_owned(), message).since(refused.since());
    }
    let established = o.condition("Established");
    match established {
        Some(established) if established.is_true() => {
            match o.condition("NonStructuralSchema").filter(Condition::is_true) {
                Some(violations) => {
                    Verdict::failed("NonStructuralSchema", violations.says()).since(violations.since())
                }
                None => {
                    Verdict::ready("Established", "its objects can be created").since(established.since())
                }
            }
        }
        Some(established) if established.is_false() && established.reason() != "Installing" => {
            let message = format!("it is not established: {}", established.says());
            Verdict::failed(established.reason_or_type().to_owned(), message).since(established.since())
        }
        _ => Verdict::in_progress("Installing", "it is being installed"),
    }
}
