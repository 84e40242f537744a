//! The Gateway API: classes, Gateways, routes, policies, sets of listeners.

use bellwether_model::{State, Value};

use super::{Judge, KindRule};
use crate::{
    generic::{conditions::Conditions, worst},
    read::Reader,
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "gateway.networking.k8s.io/GatewayClass",
        says: "Ready when accepted. Failed when refused.",
        reads: &["status.conditions"],
        judge: Judge::By(class),
    },
    KindRule {
        id: "gateway.networking.k8s.io/Gateway",
        says: GATEWAY,
        reads: GATEWAY_READS,
        judge: Judge::By(gateway),
    },
    KindRule {
        id: "gateway.networking.k8s.io/ListenerSet",
        says: GATEWAY,
        reads: GATEWAY_READS,
        judge: Judge::By(gateway),
    },
    KindRule {
        id: "gateway.networking.x-k8s.io/XListenerSet",
        says: GATEWAY,
        reads: GATEWAY_READS,
        judge: Judge::By(gateway),
    },
    route("gateway.networking.k8s.io/HTTPRoute"),
    route("gateway.networking.k8s.io/GRPCRoute"),
    route("gateway.networking.k8s.io/TLSRoute"),
    route("gateway.networking.k8s.io/TCPRoute"),
    route("gateway.networking.k8s.io/UDPRoute"),
    KindRule {
        id: "gateway.networking.k8s.io/BackendTLSPolicy",
        says: "Ready when every ancestor accepts it and resolves its references. Failed when one refuses.",
        reads: &["status.ancestors"],
        judge: Judge::By(policy),
    },
];

/// Four times as many parents as the API allows.
const MOST_PARENTS: usize = 128;

const GATEWAY: &str = "Ready when it is accepted and programmed, and so is each of its listeners, with all references \
                       resolved and no conflict. Failed when one of these is refused.";
const GATEWAY_READS: &[&str] = &["status.conditions", "status.listeners"];

const fn route(id: &'static str) -> KindRule {
    KindRule {
        id,
        says: "Ready when every parent that it still names accepts it and resolves its references. Failed when one \
               refuses. A parent that it no longer names does not count.",
        reads: &["metadata.namespace", "spec.parentRefs", "status.parents"],
        judge: Judge::By(attached),
    }
}

fn class(o: &Reader<'_>) -> Verdict {
    Conditions::of(o).known(o).unwrap_or_else(unreported)
}

fn gateway(o: &Reader<'_>) -> Verdict {
    let Some(own) = Conditions::of(o).known(o) else {
        return unreported();
    };
    let listeners = o.items("status.listeners").filter_map(|listener| {
        let verdict = Conditions::at(o, &listener).known(o)?;
        Some(verdict.about(&format!("listener {}", listener.text("name"))))
    });
    // A listener says more precisely what is wrong than the Gateway as a whole.
    worst(listeners).filter(|listener| listener.state != State::Ready).unwrap_or(own)
}

fn attached(o: &Reader<'_>) -> Verdict {
    let named: Vec<_> = o.items("spec.parentRefs").take(MOST_PARENTS).collect();
    let reported: Vec<_> = o.items("status.parents").take(MOST_PARENTS).collect();
    let answers = reported.iter().filter(|parent| {
        named.is_empty() || named.iter().any(|named| same_parent(o, named, &parent.at("parentRef")))
    });
    let verdicts = answers.filter_map(|parent| {
        let verdict = Conditions::at(o, parent).known(o)?;
        Some(verdict.about(&format!("parent {}", parent.text("parentRef.name"))))
    });
    let silent = named
        .iter()
        .find(|named| !reported.iter().any(|parent| same_parent(o, named, &parent.at("parentRef"))));
    let silent = silent.map(|silent| {
        Verdict::in_progress("NoStatusYet", format!("parent {} has not answered yet", silent.text("name")))
    });
    let more = [&named, &reported].into_iter().any(|parents| parents.len() == MOST_PARENTS);
    let more = more.then(|| Verdict::unknown("TooManyParents", "it has more parents than anybody looks at"));
    worst(verdicts.chain(silent).chain(more)).unwrap_or_else(unreported)
}

/// Whether two references name the same parent; a namespace that is not given is the route's own.
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
    worst(o.items("status.ancestors").filter_map(|ancestor| {
        let verdict = Conditions::at(o, &ancestor).known(o)?;
        Some(verdict.about(&format!("ancestor {}", ancestor.text("ancestorRef.name"))))
    }))
    .unwrap_or_else(unreported)
}

fn unreported() -> Verdict {
    Verdict::in_progress("NoStatusYet", "no controller has reported on it yet")
}
