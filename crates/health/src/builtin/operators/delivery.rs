//! Delivery: Argo, Flux, Flagger, Keptn, GitOps Promoter, certificates, policies.

use bellwether_model::{
    ConditionStatus::{False, True, Unknown},
    State::{Failed, InProgress, Ready, Suspended},
};

use super::{complete, rule};
use crate::builtin::{
    KindRule,
    clause::{
        BuiltinClause, condition, condition_for, flag, has, is, lacks, no_condition, part_has, part_is,
    },
    declarative::declarative_unless_status,
};

pub(super) const RULES: &[KindRule] = &[
    // Argo.
    complete(
        "argoproj.io/CronWorkflow",
        &[
            flag("spec.suspend", true, Suspended),
            condition("SpecError", True, Failed),
            condition("SubmissionError", True, Failed),
        ],
        Ready,
    ),
    rule(
        "argoproj.io/ApplicationSet",
        &[
            condition("ErrorOccurred", True, Failed),
            condition("RolloutProgressing", True, InProgress),
            condition("ResourcesUpToDate", True, Ready),
        ],
    ),
    rule(
        "argoproj.io/Application",
        &[
            is("status.health.status", &["Healthy"], Ready),
            is("status.health.status", &["Degraded"], Failed),
            is("status.health.status", &["Suspended"], Suspended),
            is("status.health.status", &["Progressing", "Missing", "Unknown"], InProgress),
            lacks("status.health.status", InProgress),
        ],
    ),
    declarative_unless_status("argoproj.io/AppProject"),
    declarative_unless_status("argoproj.io/WorkflowTemplate"),
    declarative_unless_status("argoproj.io/ClusterWorkflowTemplate"),
    declarative_unless_status("argoproj.io/AnalysisTemplate"),
    declarative_unless_status("argoproj.io/ClusterAnalysisTemplate"),
    declarative_unless_status("tekton.dev/Task"),
    declarative_unless_status("tekton.dev/Pipeline"),
    declarative_unless_status("kyverno.io/PolicyException"),
    declarative_unless_status("notification.toolkit.fluxcd.io/Alert"),
    declarative_unless_status("notification.toolkit.fluxcd.io/Provider"),
    // Flux: Ready=False is a failure that Flux retries, unless the reason is Progressing.
    rule("*.toolkit.fluxcd.io/*", FLUX),
    rule("kustomize.toolkit.fluxcd.io/Kustomization", FLUX_WITH_DEPENDENCIES),
    rule("helm.toolkit.fluxcd.io/HelmRelease", FLUX_WITH_DEPENDENCIES),
    complete(
        "source.toolkit.fluxcd.io/HelmRepository",
        &[
            flag("spec.suspend", true, Suspended),
            condition_for("Ready", Unknown, &["Progressing"], InProgress),
            condition_for("Ready", False, &["Progressing"], InProgress),
            condition("Ready", True, Ready),
            condition("Ready", False, Failed),
            // An OCI registry is only contacted when a chart is pulled: there is no status to wait for.
            is("spec.type", &["oci"], Ready),
        ],
        InProgress,
    ),
    rule(
        "flagger.app/Canary",
        &[
            is("status.phase", &["Failed"], Failed),
            is("status.phase", &["Succeeded", "Initialized"], Ready),
            is("status.phase", &["WaitingPromotion"], Suspended),
            is(
                "status.phase",
                &["Initializing", "Waiting", "Progressing", "Promoting", "Finalising"],
                InProgress,
            ),
        ],
    ),
    // Keptn.
    complete(
        "metrics.keptn.sh/KeptnMetric",
        &[has("status.errMsg", Failed), has("status.value", Ready)],
        InProgress,
    ),
    // GitOps Promoter.
    rule(
        "promoter.argoproj.io/ArgoCDCommitStatus",
        &[
            no_condition("Ready", InProgress),
            condition("Ready", False, Failed),
            lacks("status.applicationsSelected", Failed).message("no applications selected"),
        ],
    ),
    rule("promoter.argoproj.io/GitCommitStatus", PROMOTION_CHECK),
    rule("promoter.argoproj.io/WebRequestCommitStatus", PROMOTION_CHECK),
    rule("promoter.argoproj.io/TimedCommitStatus", PROMOTION_CHECK),
    rule("promoter.argoproj.io/*", &[no_condition("Ready", InProgress), condition("Ready", False, Failed)]),
    // Secrets and certificates.
    rule(
        "cert-manager.io/Certificate",
        &[
            condition("Issuing", True, InProgress),
            condition_for(
                "Ready",
                False,
                &["DoesNotExist", "MissingData", "Pending", "InProgress"],
                InProgress,
            ),
            no_condition("Ready", InProgress),
        ],
    ),
    rule(
        "cert-manager.io/CertificateRequest",
        &[
            condition("Denied", True, Failed),
            condition("InvalidRequest", True, Failed),
            condition_for("Ready", False, &["Failed", "Denied"], Failed),
            no_condition("Ready", InProgress),
        ],
    ),
    rule("cert-manager.io/*", &[no_condition("Ready", InProgress)]),
    rule(
        "networking.gke.io/ManagedCertificate",
        &[
            part_is(
                "status.domainStatus",
                "status",
                &["FailedNotVisible", "FailedCaaChecking", "FailedCaaForbidden", "FailedRateLimited"],
                Failed,
            ),
            part_is("status.domainStatus", "status", &["Provisioning"], InProgress),
            is("status.certificateStatus", &["Active"], Ready),
        ],
    ),
    // The last stage of Grafana is `complete`.
    rule(
        "grafana.integreatly.org/Grafana",
        &[
            is("status.stageStatus", &["failed"], Failed),
            is("status.stage", &["complete"], Ready),
            has("status.stage", InProgress),
        ],
    ),
    rule("proclaim.dogmatiq.io/DNSSDServiceInstance", &[condition("Adopted", False, Failed)]),
    // Coralogix: RemoteSynced is the only condition, about the resource in Coralogix.
    rule(
        "coralogix.com/*",
        &[condition("RemoteSynced", True, Ready), no_condition("RemoteSynced", InProgress)],
    ),
    // Terraform.
    rule(
        "infra.contrib.fluxcd.io/Terraform",
        &[
            condition_for("Ready", Unknown, &["TerraformPlannedWithChanges"], Suspended),
            condition("Ready", False, Failed),
        ],
    ),
    rule("kyverno.io/*", &[condition("Ready", False, Failed), flag("status.ready", false, InProgress)]),
    rule(
        "templates.gatekeeper.sh/ConstraintTemplate",
        &[
            part_has("status.byPod", "errors", Failed),
            flag("status.created", true, Ready),
            lacks("status.created", InProgress),
        ],
    ),
    rule(
        "core.humio.com/*",
        &[
            is("status.state", &["Exists", "Running"], Ready),
            // NotFound: the operator is creating or replacing it.
            is("status.state", &["NotFound", "Restarting", "Upgrading", "Pending", "Unknown"], InProgress),
            is("status.state", &["ConfigError"], Failed),
        ],
    ),
];

const FLUX: &[BuiltinClause] = &[
    flag("spec.suspend", true, Suspended),
    condition("Stalled", True, Failed),
    condition("Ready", True, Ready),
    condition("Ready", Unknown, InProgress),
    condition_for("Reconciling", True, &["Progressing"], InProgress),
    condition_for("Ready", False, &["Progressing"], InProgress),
    condition("Ready", False, Failed),
    no_condition("Ready", InProgress),
];

/// For kinds with `spec.dependsOn`.
const FLUX_WITH_DEPENDENCIES: &[BuiltinClause] = &[
    flag("spec.suspend", true, Suspended),
    condition("Stalled", True, Failed),
    condition("Ready", True, Ready),
    condition("Ready", Unknown, InProgress),
    condition_for("Reconciling", True, &["Progressing"], InProgress),
    condition_for("Ready", False, &["Progressing", "DependencyNotReady", "SourceNotReady"], InProgress),
    condition("Ready", False, Failed),
    no_condition("Ready", InProgress),
];

const PROMOTION_CHECK: &[BuiltinClause] = &[
    no_condition("Ready", InProgress),
    condition("Ready", False, Failed),
    part_is("status.environments", "phase", &["failure"], Failed),
    part_is("status.environments", "phase", &["pending"], InProgress),
];
