//! Networking: Gloo, Contour, Ambassador, Istio, Linkerd, Traefik, MetalLB; Prometheus configuration.

use bellwether_model::State::{Failed, InProgress, Ready, Suspended};

use super::{complete, rule};
use crate::builtin::{
    Evaluator, KindRule,
    clause::{BuiltinClause, is, lacks, part_is},
    declarative::{declarative_unless_status, ready_unless_status},
};
use crate::{generic, read::Reader, reasons, verdict::Verdict};

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
    KindRule {
        id: "networking.istio.io/*",
        description: ISTIO,
        reads: generic::READS,
        evaluator: Evaluator::Function(istio),
    },
    KindRule {
        id: "security.istio.io/*",
        description: ISTIO,
        reads: generic::READS,
        evaluator: Evaluator::Function(istio),
    },
    // Configuration that other components read. Only some versions report a status.
    declarative_unless_status("telemetry.istio.io/Telemetry"),
    declarative_unless_status("policy.linkerd.io/Server"),
    declarative_unless_status("linkerd.io/ServiceProfile"),
    declarative_unless_status("traefik.io/*"),
    declarative_unless_status("traefik.containo.us/*"),
    declarative_unless_status("metallb.io/*"),
    declarative_unless_status("monitoring.coreos.com/AlertmanagerConfig"),
    declarative_unless_status("monitoring.coreos.com/ScrapeConfig"),
    declarative_unless_status("monitoring.coreos.com/PodMonitor"),
    declarative_unless_status("monitoring.coreos.com/Probe"),
    declarative_unless_status("monitoring.coreos.com/PrometheusRule"),
    declarative_unless_status("monitoring.coreos.com/ServiceMonitor"),
];

/// A state per reporting component, as a name or as an enum number.
const GLOO: &[BuiltinClause] = &[
    part_is("status.statuses", "state", &["Rejected", "2", "Warning", "3"], Failed),
    is("status.state", &["Rejected", "2", "Warning", "3"], Failed),
    // Not validated yet. Suspended, as in Argo CD.
    part_is("status.statuses", "state", &["Pending", "0"], Suspended),
    is("status.state", &["Pending", "0"], Suspended),
    part_is("status.statuses", "state", &["Accepted", "1"], Ready),
    is("status.state", &["Accepted", "1"], Ready),
];

const ISTIO: &str = "`Failed` if `status.validationMessages` has an error; `Ready` without a status; \
                     otherwise the generic rules apply.";

fn istio(o: &Reader<'_>) -> Verdict {
    let error = o
        .items("status.validationMessages")
        .find(|message| message.text("level").eq_ignore_ascii_case("error"));
    match error {
        Some(error) => {
            let texts = [error.text("type.name"), error.text("documentationUrl")];
            let message = match texts.into_iter().find(|text| !text.is_empty()) {
                Some(text) => format!("validation error: {text}"),
                None => "validation error".to_owned(),
            };
            Verdict::failed(reasons::VALIDATION_FAILED, message)
        }
        None => ready_unless_status(o),
    }
}
