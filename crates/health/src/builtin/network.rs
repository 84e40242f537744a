//! Ways in: Service, Ingress.

use super::{Judge, KindRule};
use crate::{read::Reader, verdict::Verdict};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "Service",
        says: "Ready; of type LoadBalancer, when it has an address.",
        reads: &["spec.type", "spec.externalName", "status.loadBalancer.ingress"],
        judge: Judge::By(service),
    },
    KindRule {
        id: "networking.k8s.io/Ingress",
        says: INGRESS,
        reads: INGRESS_READS,
        judge: Judge::By(ingress),
    },
    KindRule { id: "extensions/Ingress", says: INGRESS, reads: INGRESS_READS, judge: Judge::By(ingress) },
];

const INGRESS: &str = "Ready when it has an address.";
const INGRESS_READS: &[&str] = &["spec.ingressClassName", "status.loadBalancer.ingress"];

fn service(o: &Reader<'_>) -> Verdict {
    match o.text("spec.type") {
        "LoadBalancer" => match address(o) {
            Some(address) => Verdict::ready("AddressAssigned", format!("reachable at {address}")),
            None => Verdict::in_progress("NoAddress", "the load balancer has no address yet"),
        },
        "ExternalName" => {
            Verdict::ready("ServiceReady", format!("it is a name for {}", o.text("spec.externalName")))
        }
        _ => Verdict::ready("ServiceReady", "it needs no address from outside the cluster"),
    }
}

fn ingress(o: &Reader<'_>) -> Verdict {
    if let Some(address) = address(o) {
        return Verdict::ready("AddressAssigned", format!("reachable at {address}"));
    }
    let class = match o.text("spec.ingressClassName") {
        "" => String::new(),
        class => format!(" from class {class}"),
    };
    Verdict::in_progress("NoAddress", format!("it has no address{class} yet"))
}

/// The first address by which it can be reached. An entry without one is none.
fn address<'o>(o: &Reader<'o>) -> Option<&'o str> {
    o.items("status.loadBalancer.ingress").find_map(|entry| {
        ["ip", "hostname"].into_iter().map(|field| entry.text(field)).find(|address| !address.is_empty())
    })
}
