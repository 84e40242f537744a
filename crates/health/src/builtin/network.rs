//! Service, Ingress.

use super::{Evaluator, KindRule};
use crate::{read::Reader, reasons, verdict::Verdict};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "Service",
        description: "Type LoadBalancer: `Ready` if an address is assigned, otherwise `InProgress`. Other \
                      types: always `Ready`.",
        reads: &["spec.type", "spec.externalName", "status.loadBalancer.ingress"],
        evaluator: Evaluator::Function(service),
    },
    KindRule {
        id: "networking.k8s.io/Ingress",
        description: INGRESS,
        reads: INGRESS_READS,
        evaluator: Evaluator::Function(ingress),
    },
    KindRule {
        id: "extensions/Ingress",
        description: INGRESS,
        reads: INGRESS_READS,
        evaluator: Evaluator::Function(ingress),
    },
];

const INGRESS: &str = "`Ready` if an address is assigned; otherwise `InProgress`.";
const INGRESS_READS: &[&str] = &["spec.ingressClassName", "status.loadBalancer.ingress"];

fn service(o: &Reader<'_>) -> Verdict {
    match o.text("spec.type") {
        "LoadBalancer" => match address(o) {
            Some(address) => Verdict::ready(reasons::ADDRESS_ASSIGNED, format!("address {address}")),
            None => {
                Verdict::in_progress(reasons::ADDRESS_NOT_ASSIGNED, "load balancer has no external address")
            }
        },
        "ExternalName" => {
            let message = format!("ExternalName {}", o.text("spec.externalName"));
            Verdict::ready(reasons::SERVICE_READY, message.trim_end().to_owned())
        }
        "" => Verdict::ready(reasons::SERVICE_READY, "ClusterIP"),
        other => Verdict::ready(reasons::SERVICE_READY, other.to_owned()),
    }
}

fn ingress(o: &Reader<'_>) -> Verdict {
    if let Some(address) = address(o) {
        return Verdict::ready(reasons::ADDRESS_ASSIGNED, format!("address {address}"));
    }
    let class = match o.text("spec.ingressClassName") {
        "" => String::new(),
        class => format!(" (class {class})"),
    };
    Verdict::in_progress(reasons::ADDRESS_NOT_ASSIGNED, format!("no address assigned{class}"))
}

/// The first IP or hostname. Entries without one are skipped.
fn address<'o>(o: &Reader<'o>) -> Option<&'o str> {
    o.items("status.loadBalancer.ingress").find_map(|entry| {
        ["ip", "hostname"].into_iter().map(|field| entry.text(field)).find(|address| !address.is_empty())
    })
}
