//! Ways in and out: Gloo, OpenShift's Routes, Contour, load balancers.

use bellwether_model::State::{Failed, InProgress, Ready, Suspended};

use super::{complete, rule};
use crate::builtin::{
    Judge, KindRule,
    clause::{Clause, is, lacks, part_is},
    declarative::{declarative_at_first, unless_it_has_a_status},
};
use crate::{generic, read::Reader, verdict::Verdict};

pub(super) const RULES: &[KindRule] = &[
    complete("gateway.solo.io/*", GLOO, InProgress),
    complete("gloo.solo.io/*", GLOO, InProgress),
    complete("graphql.gloo.solo.io/*", GLOO, InProgress),
    complete("enterprise.gloo.solo.io/*", GLOO, InProgress),
    rule(
        "projectcontour.io/HTTPProxy",
        &[
            is("status.currentStatus", &["valid"], Ready),
            is("status.currentStatus", &["invalid", "orphaned"], Failed),
            lacks("status.currentStatus", InProgress),
        ],
    ),
    rule(
        "getambassador.io/Mapping",
        &[is("status.state", &["Running"], Ready), is("status.state", &["Error", "Inactive"], Failed)],
    ),
    rule(
        "install.istio.io/IstioOperator",
        &[
            is("status.status", &["HEALTHY"], Ready),
            is("status.status", &["ERROR", "ACTION_REQUIRED"], Failed),
            is("status.status", &["NONE", "UPDATING", "RECONCILING"], InProgress),
        ],
    ),
    KindRule { id: "networking.istio.io/*", says: ISTIO, reads: generic::READS, judge: Judge::By(istio) },
    KindRule { id: "security.istio.io/*", says: ISTIO, reads: generic::READS, judge: Judge::By(istio) },
    // Nothing has to happen to these: they are read by others. Some versions report on them all the same.
    declarative_at_first("telemetry.istio.io/Telemetry"),
    declarative_at_first("policy.linkerd.io/Server"),
    declarative_at_first("linkerd.io/ServiceProfile"),
    declarative_at_first("traefik.io/*"),
    declarative_at_first("traefik.containo.us/*"),
    declarative_at_first("metallb.io/*"),
    declarative_at_first("monitoring.coreos.com/AlertmanagerConfig"),
    declarative_at_first("monitoring.coreos.com/ScrapeConfig"),
    declarative_at_first("monitoring.coreos.com/PodMonitor"),
    declarative_at_first("monitoring.coreos.com/Probe"),
    declarative_at_first("monitoring.coreos.com/PrometheusRule"),
    declarative_at_first("monitoring.coreos.com/ServiceMonitor"),
];

/// A state for each component that looks at it, as a word or as its number.
const GLOO: &[Clause] = &[
    part_is("status.statuses", "state", &["Rejected", "2", "Warning", "3"], Failed),
    is("status.state", &["Rejected", "2", "Warning", "3"], Failed),
    // Not validated yet. One could call this a delay; Suspended is what Argo CD's users know it as.
    part_is("status.statuses", "state", &["Pending", "0"], Suspended),
    is("status.state", &["Pending", "0"], Suspended),
    part_is("status.statuses", "state", &["Accepted", "1"], Ready),
    is("status.state", &["Accepted", "1"], Ready),
];

const ISTIO: &str = "Ready as soon as it exists. Where it has a status: failed when its validation found an error, and else what \
                     the generic rules say.";

fn istio(o: &Reader<'_>) -> Verdict {
    let error = o
        .items("status.validationMessages")
        .find(|message| message.text("level").eq_ignore_ascii_case("error"));
    match error {
        Some(error) => {
            let what = [error.text("type.name"), error.text("documentationUrl")];
            let what = what.into_iter().find(|text| !text.is_empty()).unwrap_or("an error");
            Verdict::failed("ValidationFailed", format!("its validation found {what}"))
        }
        None => unless_it_has_a_status(o),
    }
}
