//! Workloads: Argo Rollouts, OpenKruise, KEDA, Keycloak, Prometheus, KubeVirt, Numaflow.

use bellwether_model::{
    ConditionStatus::{False, True, Unknown},
    State::{Failed, InProgress, Ready, Suspended, Terminating},
};

use super::rule;
use crate::{
    builtin::{
        Evaluator, KindRule,
        apps::{REPLICA, old_replicas},
        clause::{BuiltinClause, condition, condition_for, fewer, flag, is, label_is, no_condition},
    },
    generation, generic,
    read::Reader,
    reasons,
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "argoproj.io/Rollout",
        description: "`Suspended` if paused; `Failed` if aborted, invalid or past the progress deadline; \
                      `InProgress` until all replicas are updated and available; otherwise the generic \
                      rules apply.",
        reads: &["metadata.annotations[rollout.argoproj.io/workload-generation]", "spec.*", "status"],
        evaluator: Evaluator::Function(rollout),
    },
    KindRule {
        id: "apps.kruise.io/CloneSet",
        description: KRUISE,
        reads: KRUISE_READS,
        evaluator: Evaluator::Function(kruise),
    },
    KindRule {
        id: "apps.kruise.io/StatefulSet",
        description: KRUISE,
        reads: KRUISE_READS,
        evaluator: Evaluator::Function(kruise),
    },
    KindRule {
        id: "apps.kruise.io/DaemonSet",
        description: "`Suspended` if paused; `Ready` if the Pod of every matching node is updated, \
                      available and ready; otherwise `InProgress`.",
        reads: &["spec.updateStrategy.rollingUpdate.paused", "status"],
        evaluator: Evaluator::Function(kruise_daemon_set),
    },
    // KEDA.
    rule("keda.sh/ScaledObject", KEDA),
    rule("keda.sh/ScaledJob", KEDA),
    rule("core.spinkube.dev/SpinApp", &[fewer("status.readyReplicas", "spec.replicas", InProgress)]),
    rule(
        "k8s.keycloak.org/Keycloak",
        &[condition("HasErrors", True, Failed), condition("RollingUpdate", True, InProgress)],
    ),
    rule(
        "monitoring.coreos.com/*",
        &[
            flag("spec.paused", true, Suspended),
            condition("Available", False, Failed),
            condition("Reconciled", False, Failed),
            no_condition("Available", InProgress),
        ],
    ),
    // Knative: the other conditions are steps to Ready.
    rule("eventing.knative.dev/*", KNATIVE),
    rule("flows.knative.dev/*", KNATIVE),
    rule("messaging.knative.dev/*", KNATIVE),
    rule("serving.knative.dev/*", KNATIVE),
    rule("sources.knative.dev/*", KNATIVE),
    // KubeVirt.
    rule(
        "kubevirt.io/VirtualMachine",
        &[
            // These should run.
            stopped_though("spec.runStrategy", "Always"),
            stopped_though("spec.running", "true"),
            is("status.printableStatus", &["Stopped"], Suspended).nothing_runs(),
            is("status.printableStatus", &["Paused"], Suspended),
            is("status.printableStatus", &["Terminating"], Terminating),
            is(
                "status.printableStatus",
                &[
                    "CrashLoopBackOff",
                    "ErrorUnschedulable",
                    "ErrorPvcNotFound",
                    "ErrImagePull",
                    "ImagePullBackOff",
                    "DataVolumeError",
                ],
                Failed,
            ),
            is(
                "status.printableStatus",
                &["Provisioning", "Starting", "Stopping", "Migrating", "Unknown", "WaitingForVolumeBinding"],
                InProgress,
            ),
            condition("Ready", False, InProgress),
            is("status.printableStatus", &["Running"], Ready),
        ],
    ),
    rule(
        "kubevirt.io/VirtualMachineInstance",
        &[
            condition("Paused", True, Suspended),
            is("status.phase", &["Failed"], Failed),
            condition("Ready", True, Ready),
            is("status.phase", &["Succeeded"], Ready),
        ],
    ),
    rule(
        "cdi.kubevirt.io/DataVolume",
        &[
            is("status.phase", &["Succeeded"], Ready),
            is("status.phase", &["Failed", "Unknown"], Failed),
            is("status.phase", &["Paused"], Suspended),
        ],
    ),
    // Numaflow and Numaplane report a failed upgrade only in a label.
    rule("numaflow.numaproj.io/Pipeline", NUMAFLOW),
    rule("numaflow.numaproj.io/MonoVertex", NUMAFLOW),
    rule("numaflow.numaproj.io/InterStepBufferService", NUMAFLOW),
    rule("numaflow.numaproj.io/Vertex", NUMAFLOW),
    rule("numaplane.numaproj.io/*", NUMAPLANE),
];

const KRUISE: &str = "`Suspended` if paused; `Failed` if replicas are missing and a condition whose type \
                      begins with Failed is True; `Suspended` if a partition holds back the rollout; \
                      `Ready` if all replicas are updated and available; otherwise `InProgress`.";
const KRUISE_READS: &[&str] = &["spec.replicas", "spec.updateStrategy", "status"];

const KEDA: &[BuiltinClause] = &[
    condition("Paused", True, Suspended),
    condition_for("Ready", Unknown, &["PartialTriggerError"], Failed),
    condition("Ready", False, Failed),
    condition("Fallback", True, Failed),
    condition("Ready", True, Ready),
    no_condition("Ready", InProgress),
];

const KNATIVE: &[BuiltinClause] = &[no_condition("Ready", InProgress)];

const fn stopped_though(field: &'static str, value: &'static str) -> BuiltinClause {
    is("status.printableStatus", &["Stopped"], InProgress).only_if(field, value)
}

const NUMAFLOW: &[BuiltinClause] = &[
    label_is("numaplane.numaproj.io/upgrade-state", &["failed"], Failed),
    label_is("numaplane.numaproj.io/progressive-result-state", &["failed"], Failed),
    is("status.phase", &["Failed"], Failed),
    condition("Configured", False, Failed),
    condition("Deployed", False, Failed),
    condition("ChildrenResourcesHealthy", False, Failed),
    condition("DaemonServiceHealthy", False, Failed),
    condition("SideInputsManagersHealthy", False, Failed),
    condition("VerticesHealthy", False, Failed),
    condition("PodsHealthy", False, Failed),
    is("status.phase", &["Paused", "Running"], Ready),
    is("status.phase", &["Pausing", "Deleting", "Unknown", ""], InProgress),
];

const NUMAPLANE: &[BuiltinClause] = &[
    is("status.phase", &["Failed"], Failed),
    condition("ProgressiveUpgradeSucceeded", False, Failed),
    is("status.phase", &["Pending", ""], InProgress),
    condition_for("ChildResourcesHealthy", False, &["Progressing"], InProgress),
    condition("ChildResourcesHealthy", False, Failed),
    condition("MonoVertexPausingOrPaused", True, Ready),
    condition("PipelinePausingOrPaused", True, Ready),
];

fn rollout(o: &Reader<'_>) -> Verdict {
    let wanted = o.int("spec.replicas").unwrap_or(1);
    let available = o.count("status.availableReplicas");
    rollout_state(o, wanted)
        .progress(available.min(o.count("status.updatedReplicas")), wanted)
        .blocks(available < wanted)
}

fn rollout_state(o: &Reader<'_>, wanted: i64) -> Verdict {
    let paused = o.condition("Progressing").filter(|progressing| progressing.reason() == "RolloutPaused");
    if o.flag("spec.paused") || paused.is_some() || o.text("status.phase") == "Paused" {
        let message = match o.text("status.message") {
            "" => "paused".to_owned(),
            message => format!("paused: {message}"),
        };
        return Verdict::suspended(reasons::PAUSED, message);
    }
    if !o.has("status") {
        return Verdict::not_observed();
    }
    // Early versions wrote a hash into observedGeneration, which does not parse.
    if let Some(behind) = generation::reported_behind(o) {
        return behind;
    }
    // The generation of the Deployment in spec.workloadRef.
    let workload = o.annotation("rollout.argoproj.io/workload-generation").parse::<i64>().ok();
    let observed = o.int("status.workloadObservedGeneration");
    if let (Some(workload), Some(observed)) = (workload, observed)
        && observed < workload
    {
        return Verdict::in_progress(
            reasons::LATEST_GENERATION_NOT_OBSERVED,
            format!("observed workload generation {observed}, want {workload}"),
        );
    }
    if let Some(generic) = generic::evaluate(o).filter(|verdict| verdict.state == Failed) {
        return generic;
    }
    let updated = o.count("status.updatedReplicas");
    let (existing, available) = (o.count("status.replicas"), o.count("status.availableReplicas"));
    if updated < wanted {
        return Verdict::in_progress(reasons::ROLLING_OUT, format!("{updated} of {wanted} replicas updated"));
    }
    if available < updated {
        return Verdict::in_progress(
            reasons::REPLICAS_NOT_AVAILABLE,
            format!("{available} of {updated} replicas available"),
        );
    }
    if existing > updated {
        return Verdict::in_progress(
            reasons::OLD_REPLICAS_TERMINATING,
            old_replicas(existing - updated, REPLICA),
        );
    }
    generic::evaluate(o).unwrap_or_else(|| {
        Verdict::ready(reasons::REPLICAS_READY, format!("{available} of {wanted} replicas available"))
    })
}

fn kruise(o: &Reader<'_>) -> Verdict {
    if !o.has("status") {
        return Verdict::not_observed();
    }
    if let Some(behind) = generation::reported_behind(o) {
        return behind;
    }
    let wanted = o.int("spec.replicas").unwrap_or(1);
    let available = o.count("status.updatedAvailableReplicas");
    let message = format!("{available} of {wanted} replicas updated and available");
    let strategy = |field: &str| {
        let paths =
            [format!("spec.updateStrategy.{field}"), format!("spec.updateStrategy.rollingUpdate.{field}")];
        paths.into_iter().find(|path| o.has(path)).unwrap_or_default()
    };
    let due = o.int("status.expectedUpdatedReplicas").unwrap_or(wanted - o.count(&strategy("partition")));
    let partitioned = o.count(&strategy("partition")) > 0 && o.count("status.updatedReplicas") >= due;
    let all_available = o.int("status.availableReplicas").is_none_or(|available| available >= wanted);
    let failure = o
        .conditions_at("status.conditions")
        .find(|condition| condition.kind.starts_with("Failed") && condition.is_true() && available < wanted);
    let verdict = if o.flag(&strategy("paused")) {
        Verdict::suspended(reasons::PAUSED, format!("paused, {message}"))
            .blocks(!all_available || failure.is_some())
    } else if let Some(failure) = failure {
        failure.record();
        Verdict::failed(failure.kind.to_owned(), format!("{message}: {}", failure.quoted()))
    } else if partitioned && all_available {
        Verdict::suspended(reasons::PARTITIONED, format!("held by partition, {message}"))
    } else if available >= wanted {
        Verdict::ready(reasons::REPLICAS_READY, message)
    } else {
        Verdict::in_progress(reasons::ROLLING_OUT, message)
    };
    verdict.progress(available, wanted)
}

fn kruise_daemon_set(o: &Reader<'_>) -> Verdict {
    if o.flag("spec.updateStrategy.rollingUpdate.paused") {
        let wanted = o.count("status.desiredNumberScheduled");
        return Verdict::suspended(reasons::PAUSED, "rollout paused")
            .blocks(o.count("status.numberAvailable") < wanted);
    }
    let Some(wanted) = o.int("status.desiredNumberScheduled") else {
        return Verdict::not_observed();
    };
    let counters = ["updatedNumberScheduled", "numberAvailable", "numberReady"];
    let least = counters.into_iter().map(|counter| o.count(&format!("status.{counter}"))).min().unwrap_or(0);
    let message = format!("{least} of {wanted} Pods updated, available and ready");
    let verdict = if least < wanted {
        Verdict::in_progress(reasons::REPLICAS_NOT_READY, message)
    } else {
        Verdict::ready(reasons::REPLICAS_READY, message)
    };
    verdict.progress(least, wanted)
}
