//! The cases that we see differently from those who wrote them, and why.
//!
//! The documentation tells the same by situation: `docs/health-rules.md`.

/// The case, and why our answer stands.
const DEVIATIONS: &[(&str, &str)] = &[
    (
        "kubectl-status/job-suspended",
        "made with a release of kstatus that does not know suspended Jobs; kstatus' own newer test, core_test/SuspendedJob, \
         says Current of the same situation, and no version says both",
    ),
    ("astra.netapp.io/ResticVolumeBackup#3", "it is being deleted"),
    ("kafka.strimzi.io/KafkaBridge#1", "it is being deleted"),
    ("kafka.strimzi.io/KafkaBridge#2", "it is being deleted"),
    (
        "core.spinkube.dev/SpinApp#2",
        "Progressing because of NewReplicaSetAvailable is how a roll-out says that it is over",
    ),
    (
        "gateway.networking.k8s.io/HTTPRoute#4",
        "a parent that the spec still names has not seen the newest generation",
    ),
    ("operator.knative.dev/KnativeEventing#2", "a status that nobody can read is unknown, not broken"),
    ("flink.apache.org/FlinkDeployment#2", "its job was suspended on purpose"),
    ("flink.apache.org/FlinkDeployment#3", "its job was suspended on purpose"),
    ("_.cnrm.cloud.google.com/_#1", "it waits for what it depends on, which nobody has suspended"),
    ("openfaas.com/Function#3", "it is not healthy, and nothing in it says that somebody suspended it"),
    ("rabbitmq.com/Exchange#0", "the conditions speak of an older generation"),
    ("rabbitmq.com/Exchange#2", "the conditions speak of an older generation"),
];

/// Why we see the case differently, if we mean to.
pub(super) fn why(id: &str) -> Option<&'static str> {
    DEVIATIONS.iter().find(|(own, _)| *own == id).map(|(_, why)| *why)
}
