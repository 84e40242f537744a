//! Known deviations: cases where Bellwether's verdict differs on purpose.
//!
//! `docs/health-rules.md` documents them for users.

/// The case, and the reason.
const DEVIATIONS: &[(&str, &str)] = &[
    (
        "kubectl-status/job-suspended",
        "recorded with a release of kstatus without support for suspended Jobs; the newer test core_test/SuspendedJob of \
         kstatus expects Current",
    ),
    ("astra.netapp.io/ResticVolumeBackup#3", "the object is being deleted"),
    ("kafka.strimzi.io/KafkaBridge#1", "the object is being deleted"),
    ("kafka.strimzi.io/KafkaBridge#2", "the object is being deleted"),
    (
        "core.spinkube.dev/SpinApp#2",
        "Progressing=True with reason NewReplicaSetAvailable means that the rollout is complete",
    ),
    ("gateway.networking.k8s.io/HTTPRoute#4", "a parent in the spec has not observed the latest generation"),
    ("operator.knative.dev/KnativeEventing#2", "an invalid status is Unknown, not Failed"),
    ("flink.apache.org/FlinkDeployment#2", "the user suspended the job"),
    ("flink.apache.org/FlinkDeployment#3", "the user suspended the job"),
    ("_.cnrm.cloud.google.com/_#1", "the object waits for a dependency that is not suspended"),
    ("openfaas.com/Function#3", "not healthy, and no field says that it is suspended"),
    ("rabbitmq.com/Exchange#0", "the conditions are about an older generation"),
    ("rabbitmq.com/Exchange#2", "the conditions are about an older generation"),
];

pub(super) fn why(id: &str) -> Option<&'static str> {
    DEVIATIONS.iter().find(|(own, _)| *own == id).map(|(_, why)| *why)
}
