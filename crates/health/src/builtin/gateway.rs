//! Gateway API: GatewayClass, Gateway, ListenerSet, routes, BackendTLSPolicy.

use std::collections::HashSet;

use bellwether_model::{ConditionStatus, State, Value};
use jiff::Timestamp;

use super::{Evaluator, KindRule};
use crate::{
    generic::conditions::Conditions,
    read::{Condition, Reader},
    reasons,
    verdict::{Verdict, worst},
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "gateway.networking.k8s.io/GatewayClass",
        description: "`Ready` if accepted; `Failed` if rejected; otherwise `InProgress`.",
        reads: &["status.conditions"],
        evaluator: Evaluator::Function(class),
    },
    KindRule {
        id: "gateway.networking.k8s.io/Gateway",
        description: GATEWAY,
        reads: GATEWAY_READS,
        evaluator: Evaluator::Function(gateway),
    },
    KindRule {
        id: "gateway.networking.k8s.io/ListenerSet",
        description: GATEWAY,
        reads: GATEWAY_READS,
        evaluator: Evaluator::Function(gateway),
    },
    KindRule {
        id: "gateway.networking.x-k8s.io/XListenerSet",
        description: GATEWAY,
        reads: GATEWAY_READS,
        evaluator: Evaluator::Function(gateway),
    },
    route("gateway.networking.k8s.io/HTTPRoute"),
    route("gateway.networking.k8s.io/GRPCRoute"),
    route("gateway.networking.k8s.io/TLSRoute"),
    route("gateway.networking.k8s.io/TCPRoute"),
    route("gateway.networking.k8s.io/UDPRoute"),
    KindRule {
        id: "gateway.networking.k8s.io/BackendTLSPolicy",
        description: "`Ready` if every ancestor accepts the policy and resolves its references; `Failed` if \
                      one rejects it; otherwise `InProgress`.",
        reads: &["status.ancestors"],
        evaluator: Evaluator::Function(policy),
    },
];

/// Four times the limit of the API. Bounds the comparison of all pairs.
const MAX_PARENTS: usize = 128;

const GATEWAY: &str = "`Ready` if the object and all listeners in `spec.listeners` are accepted and programmed, without \
                       conflict and with all references resolved; `Failed` if one of these is rejected; \
                       otherwise `InProgress`.";
const GATEWAY_READS: &[&str] = &["spec.listeners.name", "status.conditions", "status.listeners"];

const fn route(id: &'static str) -> KindRule {
    KindRule {
        id,
        description: "`Ready` if every parent in `spec.parentRefs` accepts the route and resolves its \
                      references; `Failed` if one rejects it; otherwise `InProgress`. Other parents in the \
                      status are ignored.",
        reads: &["metadata.namespace", "spec.parentRefs", "status.parents"],
        evaluator: Evaluator::Function(attached),
    }
}

fn class(o: &Reader<'_>) -> Verdict {
    decided(o, &Conditions::of(o), &["Accepted"])
}

/// By the worst of the known conditions. `Ready` waits for those that mean it.
fn decided(o: &Reader<'_>, conditions: &Conditions<'_>, awaited: &[&str]) -> Verdict {
    let Some(verdict) = conditions.decided(o).filter(|_| !conditions.all(is_default)) else {
        return Verdict::not_observed();
    };
    match awaited.iter().find(|kind| !conditions.has(kind)).filter(|_| verdict.state == State::Ready) {
        Some(missing) => Verdict::in_progress(reasons::NOT_OBSERVED, format!("no {missing} condition")),
        None => verdict,
    }
}

/// Whether the API server wrote the condition: the CRDs have `Unknown` conditions as the default of a status.
fn is_default(condition: &Condition<'_>) -> bool {
    condition.status() == ConditionStatus::Unknown
        && condition.reason() == "Pending"
        && condition.since() == Some(Timestamp::UNIX_EPOCH)
}

fn gateway(o: &Reader<'_>) -> Verdict {
    let own = decided(o, &Conditions::of(o), PROGRAMMED);
    if own.reason == reasons::NOT_OBSERVED {
        return own;
    }
    let reported: Vec<_> = o.items("status.listeners").filter(Reader::is_map).collect();
    let verdicts = reported.iter().map(|listener| {
        let verdict = decided(o, &Conditions::at(o, listener), PROGRAMMED);
        verdict.about(&format!("listener {}", listener.text("name")))
    });
    let names: HashSet<_> = reported.iter().map(|listener| listener.text("name")).collect();
    let specified: Vec<_> = o.items("spec.listeners").map(|listener| listener.text("name")).collect();
    let silent = specified.into_iter().find(|name| !names.contains(name));
    let silent = silent.map(|name| Verdict::not_observed().about(&format!("listener {name}")));
    // A listener has a more precise reason than the Gateway.
    worst(verdicts.chain(silent)).filter(|listener| listener.state != State::Ready).unwrap_or(own)
}

/// A data plane serves what is accepted only when it is programmed.
const PROGRAMMED: &[&str] = &["Accepted", "Programmed"];

fn attached(o: &Reader<'_>) -> Verdict {
    let named: Vec<_> = o.items("spec.parentRefs").take(MAX_PARENTS).collect();
    let reported: Vec<_> = o.items("status.parents").take(MAX_PARENTS).collect();
    let answers = reported.iter().filter(|parent| {
        named.is_empty() || named.iter().any(|named| same_parent(o, named, &parent.at("parentRef")))
    });
    let verdicts = answers.map(|parent| {
        let verdict = decided(o, &Conditions::at(o, parent), &["Accepted"]);
        verdict.about(&format!("parent {}", parent.text("parentRef.name")))
    });
    let silent = named
        .iter()
        .find(|named| !reported.iter().any(|parent| same_parent(o, named, &parent.at("parentRef"))));
    let silent =
        silent.map(|silent| Verdict::not_observed().about(&format!("parent {}", silent.text("name"))));
    let more = [&named, &reported].into_iter().any(|parents| parents.len() == MAX_PARENTS);
    let more = more.then(|| {
        let message = format!("too many parents, only the first {MAX_PARENTS} are evaluated");
        Verdict::unknown(reasons::TOO_MANY_PARENTS, message)
    });
    worst(verdicts.chain(silent).chain(more)).unwrap_or_else(Verdict::not_observed)
}

/// Whether two references name the same parent. The namespace defaults to that of the route.
fn same_parent(o: &Reader<'_>, named: &Reader<'_>, reported: &Reader<'_>) -> bool {
    let own = o.text("metadata.namespace");
    let namespace = |reference: &Reader<'_>| match reference.text("namespace").to_owned() {
        namespace if namespace.is_empty() => own.to_owned(),
        namespace => namespace,
    };
    let port = |reference: &Reader<'_>| reference.at("port").value().and_then(Value::as_int);
    let kind = |reference: &Reader<'_>| match reference.text("kind").to_owned() {
        kind if kind.is_empty() => "Gateway".to_owned(),
        kind => kind,
    };
    let name = reported.text("name");
    (name.is_empty() || name == named.text("name"))
        && named.text("sectionName") == reported.text("sectionName")
        && namespace(named) == namespace(reported)
        && port(named) == port(reported)
        && kind(named) == kind(reported)
}

fn policy(o: &Reader<'_>) -> Verdict {
    worst(o.items("status.ancestors").map(|ancestor| {
        let verdict = decided(o, &Conditions::at(o, &ancestor), &["Accepted"]);
        verdict.about(&format!("ancestor {}", ancestor.text("ancestorRef.name")))
    }))
    .unwrap_or_else(Verdict::not_observed)
}
