//! Delivery: Argo, Flux, Keptn, GitOps promotion, secrets and certificates that others keep.

use bellwether_model::{
    ConditionStatus::{False, True, Unknown},
    State::{Failed, InProgress, Ready, Suspended},
};

use super::{complete, rule};
use crate::builtin::{
    KindRule,
    clause::{Clause, condition, condition_for, flag, has, is, lacks, no_condition, part_has, part_is},
    declarative::declarative_at_first,
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
        ],
    ),
    declarative_at_first("argoproj.io/AppProject"),
    declarative_at_first("argoproj.io/WorkflowTemplate"),
    declarative_at_first("argoproj.io/ClusterWorkflowTemplate"),
    declarative_at_first("argoproj.io/AnalysisTemplate"),
    declarative_at_first("argoproj.io/ClusterAnalysisTemplate"),
    declarative_at_first("tekton.dev/Task"),
    declarative_at_first("tekton.dev/Pipeline"),
    declarative_at_first("kyverno.io/PolicyException"),
    declarative_at_first("notification.toolkit.fluxcd.io/Alert"),
    declarative_at_first("notification.toolkit.fluxcd.io/Provider"),
    // Flux: not ready is a failure that it retries, unless it says that it is still at it.
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
            // A registry is asked when a chart is; there is nothing to reconcile.
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
            lacks("status.applicationsSelected", Failed).because("it selects no application"),
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
        ],
    ),
    rule(
        "cert-manager.io/CertificateRequest",
        &[
            condition("Denied", True, Failed),
            condition("InvalidRequest", True, Failed),
            condition_for("Ready", False, &["Failed", "Denied"], Failed),
        ],
    ),
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
    // Grafana goes through stages, of which `complete` is the last.
    rule(
        "grafana.integreatly.org/Grafana",
        &[
            is("status.stageStatus", &["failed"], Failed),
            is("status.stage", &["complete"], Ready),
            has("status.stage", InProgress),
        ],
    ),
    rule("proclaim.dogmatiq.io/DNSSDServiceInstance", &[condition("Adopted", False, Failed)]),
    // Terraform and Pulumi.
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
            // It is not there yet, or not any more: its operator is at it.
            is("status.state", &["NotFound", "Restarting", "Upgrading", "Pending", "Unknown"], InProgress),
            is("status.state", &["ConfigError"], Failed),
        ],
    ),
];

const FLUX: &[Clause] = &[
    flag("spec.suspend", true, Suspended),
    condition("Stalled", True, Failed),
    condition("Ready", True, Ready),
    condition("Ready", Unknown, InProgress),
    condition_for("Reconciling", True, &["Progressing"], InProgress),
    condition_for("Ready", False, &["Progressing"], InProgress),
    condition("Ready", False, Failed),
];

/// These wait for others of their kind before they begin.
const FLUX_WITH_DEPENDENCIES: &[Clause] = &[
    flag("spec.suspend", true, Suspended),
    condition("Stalled", True, Failed),
    condition("Ready", True, Ready),
    condition("Ready", Unknown, InProgress),
    condition_for("Reconciling", True, &["Progressing"], InProgress),
    condition_for("Ready", False, &["Progressing", "DependencyNotReady", "SourceNotReady"], InProgress),
    condition("Ready", False, Failed),
];

const PROMOTION_CHECK: &[Clause] = &[
    no_condition("Ready", InProgress),
    condition("Ready", False, Failed),
    part_is("status.environments", "phase", &["failure"], Failed),
    part_is("status.environments", "phase", &["pending"], InProgress),
];
