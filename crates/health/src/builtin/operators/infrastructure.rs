//! Clusters and clouds: Crossplane, Cluster API, Config Connector, OLM, Open Cluster Management.

use bellwether_model::{
    ConditionStatus::{False, True},
    State::{Failed, InProgress, Ready, Suspended, Terminating},
};

use super::{complete, rule};
use crate::builtin::{
    Evaluator, KindRule,
    clause::{BuiltinClause, behind, condition, condition_for, flag, has, is, lacks, no_condition, part_is},
    declarative::declarative_unless_status,
};
use crate::{generic, read::Reader, reasons, verdict::Verdict};

pub(super) const RULES: &[KindRule] = &[
    // Crossplane: Synced is about the last reconcile, Ready about the external resource.
    rule("*.crossplane.io/*", CROSSPLANE),
    rule("*.upbound.io/*", CROSSPLANE),
    declarative_unless_status("*.crossplane.io/ProviderConfig"),
    declarative_unless_status("*.crossplane.io/ClusterProviderConfig"),
    declarative_unless_status("*.crossplane.io/StoreConfig"),
    declarative_unless_status("*.upbound.io/ProviderConfig"),
    declarative_unless_status("*.upbound.io/ClusterProviderConfig"),
    declarative_unless_status("*.upbound.io/StoreConfig"),
    declarative_unless_status("apiextensions.crossplane.io/*"),
    rule("pkg.crossplane.io/*", PACKAGE),
    // AWS Controllers for Kubernetes.
    rule(
        "*.services.k8s.aws/*",
        &[
            condition("ACK.Terminal", True, Failed),
            condition("ACK.Recoverable", True, Failed),
            condition("ACK.ResourceSynced", False, InProgress),
            condition("ACK.ResourceSynced", True, Ready),
            no_condition("ACK.ResourceSynced", InProgress),
        ],
    ),
    // Google Config Connector.
    rule(
        "*.cnrm.cloud.google.com/*",
        &[
            condition_for(
                "Ready",
                False,
                &[
                    "UpdateFailed",
                    "CreateFailed",
                    "DeleteFailed",
                    "DependencyNotFound",
                    "DependencyInvalid",
                    "ManagementConflict",
                    "PreconditionFailed",
                ],
                Failed,
            ),
            condition_for("Ready", False, &["DependencyNotReady"], InProgress),
            condition_for("Ready", False, &["Unmanaged"], Suspended),
            flag("status.healthy", false, Failed),
            flag("status.healthy", true, Ready),
            no_condition("Ready", InProgress),
        ],
    ),
    // Cluster API.
    KindRule {
        id: "cluster.x-k8s.io/Cluster",
        description: "The generic rules apply, but `InProgress` instead of `Ready` while `status.phase` is \
                      `Pending` or `Provisioning`, and without one of the conditions `Ready` and `Available`.",
        reads: generic::READS,
        evaluator: Evaluator::Function(cluster),
    },
    rule(
        "cluster.x-k8s.io/Machine",
        &[
            is("status.phase", &["Failed"], Failed),
            is("status.phase", &["Deleting"], Terminating),
            no_condition("Ready", InProgress),
        ],
    ),
    rule(
        "cluster.x-k8s.io/MachineDeployment",
        &[
            flag("spec.paused", true, Suspended),
            is("status.phase", &["Failed"], Failed),
            is("status.phase", &["ScalingUp", "ScalingDown"], InProgress),
        ],
    ),
    rule(
        "controlplane.cluster.x-k8s.io/AWSManagedControlPlane",
        &[
            condition("EKSControlPlaneUpdating", True, InProgress),
            condition("EKSControlPlaneCreating", True, InProgress),
        ],
    ),
    // Operator Lifecycle Manager.
    rule(
        "operators.coreos.com/Subscription",
        &[
            condition("CatalogSourcesUnhealthy", True, Failed),
            condition("InstallPlanFailed", True, Failed),
            condition("ResolutionFailed", True, Failed),
            condition("BundleUnpackFailed", True, Failed),
            condition("BundleUnpacking", True, InProgress),
            condition_for(
                "InstallPlanPending",
                True,
                &["Installing", "InstallPlanNotYetReconciled"],
                InProgress,
            ),
            // Manual approval is the configured behaviour, not a delay.
            condition_for("InstallPlanPending", True, &["RequiresApproval"], Ready),
            is("status.state", &["AtLatestKnown", "UpgradeAvailable"], Ready),
            condition_for("InstallPlanMissing", True, &["ReferencedInstallPlanNotFound"], Ready),
            is("status.state", &["UpgradePending"], InProgress),
            is("status.state", &["UpgradeFailed"], Failed),
            lacks("status.state", InProgress),
        ],
    ),
    rule(
        "operators.coreos.com/ClusterServiceVersion",
        &[
            is("status.phase", &["Succeeded"], Ready),
            is("status.phase", &["Failed"], Failed),
            is("status.phase", &["Deleting"], Terminating),
            is(
                "status.phase",
                &["Pending", "InstallReady", "Installing", "Replacing", "Unknown", ""],
                InProgress,
            ),
        ],
    ),
    rule(
        "operators.coreos.com/InstallPlan",
        &[
            is("status.phase", &["Complete"], Ready),
            is("status.phase", &["Failed"], Failed),
            is("status.phase", &["RequiresApproval"], Suspended),
            is("status.phase", &["Planning", "Installing", ""], InProgress),
        ],
    ),
    rule(
        "operators.coreos.com/CatalogSource",
        &[
            is("status.connectionState.lastObservedState", &["READY"], Ready),
            is("status.connectionState.lastObservedState", &["TRANSIENT_FAILURE", "SHUTDOWN"], Failed),
            is("status.connectionState.lastObservedState", &["CONNECTING", "IDLE"], InProgress),
        ],
    ),
    // Open Cluster Management policies.
    rule(
        "policy.open-cluster-management.io/OperatorPolicy",
        &[
            condition("Compliant", True, Ready),
            condition("Compliant", False, Failed),
            no_condition("Compliant", InProgress),
        ],
    ),
    complete("policy.open-cluster-management.io/*", COMPLIANCE, InProgress),
    rule(
        "nmstate.io/NodeNetworkConfigurationPolicy",
        &[condition("Ignored", True, Suspended).nothing_runs()],
    ),
    // OpenShift.
    rule(
        "machineconfiguration.openshift.io/MachineConfigPool",
        &[
            flag("spec.paused", true, Suspended),
            condition("Degraded", True, Failed),
            condition("Updating", True, InProgress),
            condition("Updated", True, Ready),
        ],
    ),
    rule(
        "hypershift.openshift.io/HostedCluster",
        &[
            condition("Degraded", True, Failed),
            condition("ClusterVersionProgressing", True, InProgress),
            condition("Available", True, Ready),
            condition("Available", False, InProgress),
        ],
    ),
    // Karpenter: Ready=False requires a change by the user.
    rule("karpenter.k8s.aws/EC2NodeClass", &[condition("Ready", False, Failed)]),
    rule("karpenter.sh/NodePool", &[condition("Ready", False, Failed)]),
    // Karmada.
    rule("work.karmada.io/ResourceBinding", KARMADA),
    rule("work.karmada.io/ClusterResourceBinding", KARMADA),
    // NetApp.
    rule("astra.netapp.io/Application", &[condition("Ready", False, Failed)]),
    rule("protect.trident.netapp.io/Application", &[condition("Ready", False, Failed)]),
    rule("astra.netapp.io/ExecHook", HOOK),
    rule("protect.trident.netapp.io/ExecHook", HOOK),
    declarative_unless_status("astra.netapp.io/Schedule"),
    declarative_unless_status("protect.trident.netapp.io/Schedule"),
    rule(
        "trident.netapp.io/TridentBackendConfig",
        &[
            is("status.lastOperationStatus", &["Failed"], Failed),
            is("status.phase", &["Lost", "Failed"], Failed),
            is("status.lastOperationStatus", &["Success"], Ready),
            is("status.lastOperationStatus", &["Progressing", ""], InProgress),
            is("status.phase", &["Deleting"], Terminating),
        ],
    ),
    // Storage.
    rule(
        "snapshot.storage.k8s.io/VolumeSnapshot",
        &[
            has("status.error.message", Failed),
            flag("status.readyToUse", true, Ready),
            flag("status.readyToUse", false, InProgress),
            lacks("status.readyToUse", InProgress),
        ],
    ),
    rule(
        "snapshot.storage.k8s.io/VolumeSnapshotContent",
        &[
            has("status.error.message", Failed),
            flag("status.readyToUse", true, Ready),
            lacks("status.readyToUse", InProgress),
        ],
    ),
    rule(
        "capabilities.3scale.net/*",
        &[
            condition("Orphan", True, Failed),
            condition("Invalid", True, Failed),
            condition("Failed", True, Failed),
            condition("Synced", True, Ready),
        ],
    ),
    // Synced: the Secret exists with the decrypted content.
    rule("bitnami.com/SealedSecret", &[condition("Synced", False, Failed), condition("Synced", True, Ready)]),
    rule(
        "longhorn.io/Volume",
        &[
            condition_for("Scheduled", False, &["ReplicaSchedulingFailure"], Failed),
            is("status.robustness", &["faulted", "degraded"], Failed),
            is("status.robustness", &["healthy"], Ready),
            is("status.state", &["detached"], Suspended).nothing_runs(),
        ],
    ),
];

const CROSSPLANE: &[BuiltinClause] = &[
    condition_for("Synced", False, &["ReconcilePaused"], Suspended),
    condition_for("Ready", False, &["ReconcilePaused"], Suspended),
    condition("LastAsyncOperation", False, Failed),
    condition("Synced", False, Failed),
    no_condition("Ready", InProgress),
];

const PACKAGE: &[BuiltinClause] = &[
    condition_for("Installed", False, &["InactivePackageRevision"], Suspended).nothing_runs(),
    condition("Installed", False, Failed),
    condition("Healthy", False, Failed),
    no_condition("Installed", InProgress),
    no_condition("Healthy", InProgress),
];

const COMPLIANCE: &[BuiltinClause] = &[
    // Some of these kinds use this field instead of observedGeneration.
    behind("status.lastEvaluatedGeneration", InProgress),
    is("status.compliant", &["NonCompliant"], Failed),
    is("status.compliant", &["Compliant"], Ready),
    is("status.compliant", &["Pending"], InProgress),
];

const KARMADA: &[BuiltinClause] = &[
    condition("Scheduled", False, InProgress),
    no_condition("FullyApplied", InProgress),
    condition("FullyApplied", False, InProgress),
    part_is("status.aggregatedStatus", "applied", &["false"], Failed),
    part_is("status.aggregatedStatus", "health", &["Unhealthy"], Failed),
    condition("FullyApplied", True, Ready),
];

const HOOK: &[BuiltinClause] =
    &[flag("spec.enabled", true, Ready), flag("spec.enabled", false, Suspended).nothing_runs()];

fn cluster(o: &Reader<'_>) -> Verdict {
    let verdict = generic::evaluate(o).or_else(|| generic::unreported(o));
    match (verdict, o.text("status.phase")) {
        (Some(verdict), phase @ ("Pending" | "Provisioning")) if verdict.state == Ready => {
            Verdict::in_progress(reasons::PROVISIONING, format!("phase {phase}"))
        }
        // The others are steps to these. Which of them exists depends on the version.
        (Some(verdict), _)
            if verdict.state == Ready
                && ["Ready", "Available"].iter().all(|kind| o.condition(kind).is_none()) =>
        {
            Verdict::in_progress(reasons::NOT_OBSERVED, "no Ready or Available condition")
        }
        (Some(verdict), _) => verdict,
        (None, _) => Verdict::not_observed(),
    }
}
