//! Namespace, Node, APIService, CustomResourceDefinition.

use bellwether_model::{ConditionStatus, State};
use jiff::SignedDuration;

use super::{Evaluator, KindRule, declarative::declarative, grace_period::fail_after};
use crate::{
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "Namespace",
        description: "`Ready` if the phase is Active; `Terminating` if the phase is Terminating; otherwise \
                      `InProgress`.",
        reads: &["status"],
        evaluator: Evaluator::Function(namespace),
    },
    KindRule {
        id: "Node",
        description: "`InProgress` if condition `Ready` is absent; `Unknown` if it is Unknown; \
                      `InProgress`, after 5 minutes `Failed`, if it is False; `InProgress` under \
                      `NetworkUnavailable`, `MemoryPressure`, `DiskPressure` or `PIDPressure`; `Suspended` \
                      if cordoned; otherwise `Ready`.",
        reads: &["spec.unschedulable", "status.conditions"],
        evaluator: Evaluator::Function(node),
    },
    KindRule {
        id: "apiregistration.k8s.io/APIService",
        description: "`InProgress` if condition `Available` is absent; `Ready` if it is True; otherwise \
                      `InProgress`, after 1 minute `Failed`.",
        reads: &["status.conditions"],
        evaluator: Evaluator::Function(api_service),
    },
    KindRule {
        id: "apiextensions.k8s.io/CustomResourceDefinition",
        description: "`Terminating` if condition `Terminating` is True; `Failed` if `NamesAccepted` is \
                      False, `NonStructuralSchema` is True, or `Established` is False with a reason other \
                      than Installing; `Ready` if `Established` is True; otherwise `InProgress`.",
        reads: &["status.conditions"],
        evaluator: Evaluator::Function(definition),
    },
    KindRule {
        id: "flowcontrol.apiserver.k8s.io/FlowSchema",
        description: "`Failed` if condition `Dangling` is True; otherwise `Ready`.",
        reads: &["status.conditions"],
        evaluator: Evaluator::Function(flow_schema),
    },
    declarative("flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration"),
    KindRule {
        id: "certificates.k8s.io/CertificateSigningRequest",
        description: "`Failed` if condition `Denied` or `Failed` is True; `Ready` if the certificate is \
                      issued; otherwise `InProgress`.",
        reads: &["status"],
        evaluator: Evaluator::Function(signing_request),
    },
];

/// Grace period of a Node that is not ready: the default toleration of Pods for `not-ready`.
const NODE: SignedDuration = SignedDuration::from_mins(5);

/// Grace period of an APIService, for the start of its server.
const API_SERVER: SignedDuration = SignedDuration::from_mins(1);

fn namespace(o: &Reader<'_>) -> Verdict {
    match o.text("status.phase") {
        "Active" => Verdict::ready(reasons::ACTIVE, "active"),
        "Terminating" => {
            let blocker = o.conditions_at("status.conditions").find(Condition::is_true);
            let verdict = |message| Verdict::new(State::Terminating, reasons::DELETING, message);
            match blocker {
                Some(condition) => {
                    condition.record();
                    verdict(condition.message_or_reason()).since(condition.since())
                }
                None => verdict("being deleted".to_owned()),
            }
        }
        "" => Verdict::not_observed(),
        phase => Verdict::in_progress(reasons::UNRECOGNIZED_PHASE, format!("unrecognized phase {phase:?}")),
    }
}

fn node(o: &Reader<'_>) -> Verdict {
    let Some(ready) = o.condition("Ready") else {
        return Verdict::not_observed();
    };
    match ready.status() {
        ConditionStatus::Unknown => {
            return Verdict::unknown(ready.reason_or_type().to_owned(), ready.message_or_reason())
                .since(ready.since());
        }
        ConditionStatus::False => {
            return fail_after(o, ready.since(), NODE, |state| {
                Verdict::new(state, ready.reason_or_type().to_owned(), ready.message_or_reason())
            });
        }
        ConditionStatus::True => {}
    }
    let pressure = ["NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure"]
        .into_iter()
        .find_map(|kind| o.condition(kind).filter(Condition::is_true));
    if let Some(pressure) = pressure {
        return Verdict::in_progress(pressure.kind.to_owned(), pressure.message_or_reason())
            .since(pressure.since());
    }
    if o.flag("spec.unschedulable") {
        return Verdict::suspended(reasons::CORDONED, "cordoned");
    }
    Verdict::ready(reasons::NODE_READY, ready.message_or_reason()).since(ready.since())
}

fn api_service(o: &Reader<'_>) -> Verdict {
    match o.condition("Available") {
        None => Verdict::not_observed(),
        Some(available) if available.is_true() => {
            Verdict::ready(reasons::AVAILABLE, available.message_or_reason()).since(available.since())
        }
        Some(available) => fail_after(o, available.since(), API_SERVER, |state| {
            Verdict::new(state, available.reason_or_type().to_owned(), available.message_or_reason())
        }),
    }
}

fn flow_schema(o: &Reader<'_>) -> Verdict {
    match o.condition("Dangling").filter(Condition::is_true) {
        Some(dangling) => {
            Verdict::failed(reasons::DANGLING, dangling.message_or_reason()).since(dangling.since())
        }
        None => Verdict::ready(reasons::NOT_DANGLING, "not dangling"),
    }
}

fn signing_request(o: &Reader<'_>) -> Verdict {
    let refused =
        ["Denied", "Failed"].into_iter().find_map(|kind| o.condition(kind).filter(Condition::is_true));
    if let Some(refused) = refused {
        return Verdict::failed(refused.reason_or_type().to_owned(), refused.message_or_reason())
            .since(refused.since());
    }
    if !o.text("status.certificate").is_empty() {
        return Verdict::ready(reasons::ISSUED, "certificate issued");
    }
    match o.condition("Approved").filter(Condition::is_true) {
        Some(approved) => {
            Verdict::in_progress(reasons::APPROVED, "approved, not signed yet").since(approved.since())
        }
        None => Verdict::in_progress(reasons::PENDING, "waiting for approval"),
    }
}

fn definition(o: &Reader<'_>) -> Verdict {
    if let Some(terminating) = o.condition("Terminating").filter(Condition::is_true) {
        return Verdict::new(State::Terminating, reasons::DELETING, terminating.message_or_reason())
            .since(terminating.since());
    }
    if let Some(refused) = o.condition("NamesAccepted").filter(Condition::is_false) {
        return Verdict::failed(refused.reason_or_type().to_owned(), refused.summary())
            .since(refused.since());
    }
    let established = o.condition("Established");
    match established {
        Some(established) if established.is_true() => {
            match o.condition("NonStructuralSchema").filter(Condition::is_true) {
                Some(violations) => {
                    Verdict::failed(reasons::NON_STRUCTURAL_SCHEMA, violations.message_or_reason())
                        .since(violations.since())
                }
                None => Verdict::ready(reasons::ESTABLISHED, "established").since(established.since()),
            }
        }
        Some(established) if established.is_false() && established.reason() != reasons::INSTALLING => {
            Verdict::failed(established.reason_or_type().to_owned(), established.summary())
                .since(established.since())
        }
        _ => Verdict::in_progress(reasons::INSTALLING, "not established yet"),
    }
}
