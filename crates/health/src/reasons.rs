//! Reasons that Bellwether's rules give in verdicts.
//!
//! Reasons are API: scripts and alerts match them. The doc line of each constant is also its line in
//! `docs/health-rules.md`.
//!
//! Not listed here: reasons that a rule passes on from the object, those of user rules, and those of the
//! dialects of kstatus and Argo CD.

use bellwether_model::text::capitalised;

/// A reason, for the docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The text in verdicts.
    pub name: &'static str,
    /// In Markdown.
    pub meaning: &'static str,
}

/// Defines a constant for each reason, and `ALL` in the same order. The doc line of a reason is its meaning.
#[macro_export]
macro_rules! reasons {
    ($(#[doc = $meaning:literal] $name:ident = $value:expr;)*) => {
        $(#[doc = $meaning] pub const $name: &str = $value;)*

        /// All reasons of this module, in order.
        pub const ALL: &[$crate::reasons::Reason] =
            &[$($crate::reasons::Reason { name: $name, meaning: $meaning.trim_ascii_start() }),*];
    };
}

reasons! {
    /// Namespace: the phase is Active.
    ACTIVE = "Active";
    /// Service of type LoadBalancer, Ingress: an address is assigned.
    ADDRESS_ASSIGNED = "AddressAssigned";
    /// Service of type LoadBalancer, Ingress: no address is assigned yet.
    ADDRESS_NOT_ASSIGNED = "AddressNotAssigned";
    /// ResourceClaim: devices are allocated.
    ALLOCATED = "Allocated";
    /// CertificateSigningRequest: approved, not signed yet.
    APPROVED = "Approved";
    /// VolumeAttachment: the status has an attach error.
    ATTACH_FAILED = "AttachFailed";
    /// VolumeAttachment: the volume is attached.
    ATTACHED = "Attached";
    /// APIService: condition `Available` is True. PersistentVolume: the phase is Available.
    AVAILABLE = "Available";
    /// PersistentVolume, PersistentVolumeClaim: the phase is Bound.
    BOUND = "Bound";
    /// Job: condition `Complete` is True. Pod: the phase is Succeeded.
    COMPLETED = "Completed";
    /// Two conditions of one type have different status.
    CONTRADICTORY_CONDITIONS = "ContradictoryConditions";
    /// Node: `spec.unschedulable` is true.
    CORDONED = "Cordoned";
    /// Pod: a container keeps terminating, and the kubelet delays its restarts.
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff";
    /// Pod: the configuration of a container is invalid, or refers to a missing ConfigMap or Secret.
    CREATE_CONTAINER_CONFIG_ERROR = "CreateContainerConfigError";
    /// Pod: the container runtime cannot create a container.
    CREATE_CONTAINER_ERROR = "CreateContainerError";
    /// FlowSchema: condition `Dangling` is True, the priority level does not exist.
    DANGLING = "Dangling";
    /// The object is being deleted.
    DELETING = "Deleting";
    /// VolumeAttachment: the status has a detach error.
    DETACH_FAILED = "DetachFailed";
    /// PodDisruptionBudget: currentHealthy is at least desiredHealthy.
    ENOUGH_PODS = "EnoughPods";
    /// Pod: the image of a container is not on the node, and its pull policy is Never.
    ERR_IMAGE_NEVER_PULL = "ErrImageNeverPull";
    /// Pod: the kubelet cannot pull the image of a container.
    ERR_IMAGE_PULL = "ErrImagePull";
    /// The status has an error. Pod: a container terminated with an exit code other than 0.
    ERROR = "Error";
    /// CustomResourceDefinition: condition `Established` is True.
    ESTABLISHED = "Established";
    /// StatefulSet, DaemonSet, Job: Pods have not been created for a minute; the Events of the object say why.
    FAILED_CREATE = "FailedCreate";
    /// A condition or a phase is good, but the status reports a failure; the message quotes it.
    FAILURE_REPORTED = "FailureReported";
    /// Pod: the container runtime cannot inspect the image of a container.
    IMAGE_INSPECT_ERROR = "ImageInspectError";
    /// Pod: the kubelet cannot pull the image of a container, and delays the next attempt.
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff";
    /// CustomResourceDefinition: not established yet.
    INSTALLING = "Installing";
    /// The flag `valid` in the status is false.
    INVALID = "Invalid";
    /// Pod: the image name of a container is invalid.
    INVALID_IMAGE_NAME = "InvalidImageName";
    /// CertificateSigningRequest: the certificate is issued.
    ISSUED = "Issued";
    /// CronJob: the last run failed.
    LAST_RUN_FAILED = "LastRunFailed";
    /// The controller has not observed the latest generation.
    LATEST_GENERATION_NOT_OBSERVED = "LatestGenerationNotObserved";
    /// PersistentVolumeClaim: the volume is lost.
    LOST = "Lost";
    /// Cluster of Cassandra: a member of a rack is not ready.
    MEMBERS_NOT_READY = "MembersNotReady";
    /// Cluster of Cassandra: all members of all racks are ready.
    MEMBERS_READY = "MembersReady";
    /// User rule: no CEL clause matches.
    NO_CLAUSE_TRUE = "NoClauseTrue";
    /// The rule reads only errors, and the status has none.
    NO_ERROR_REPORTED = "NoErrorReported";
    /// User rule: no Flux expression is true.
    NO_EXPRESSION_TRUE = "NoExpressionTrue";
    /// BindingPolicy: no condition is False.
    NO_FAILED_CONDITION = "NoFailedCondition";
    /// DaemonSet: no node matches.
    NO_MATCHING_NODES = "NoMatchingNodes";
    /// No rule can evaluate the object.
    NO_RULE = "NoRule";
    /// The object has no status, and none is expected for its kind.
    NO_STATUS_EXPECTED = "NoStatusExpected";
    /// Pod: the node does not report.
    NODE_LOST = "NodeLost";
    /// Node: condition `Ready` is True.
    NODE_READY = "NodeReady";
    /// CustomResourceDefinition: condition `NonStructuralSchema` is True.
    NON_STRUCTURAL_SCHEMA = "NonStructuralSchema";
    /// ResourceClaim: no devices are allocated yet.
    NOT_ALLOCATED = "NotAllocated";
    /// VolumeAttachment: the volume is not attached yet.
    NOT_ATTACHED = "NotAttached";
    /// FlowSchema: condition `Dangling` is not True.
    NOT_DANGLING = "NotDangling";
    /// The controller has not reported a status yet, or not the part of it that the rule reads.
    NOT_OBSERVED = "NotObserved";
    /// A flag in the status, such as `ready`, is false.
    NOT_READY = "NotReady";
    /// Pod: the scheduler has not assigned a node yet.
    NOT_SCHEDULED = "NotScheduled";
    /// Job: not started yet.
    NOT_STARTED = "NotStarted";
    /// Pod: a container is in a crash loop, and was OOMKilled last.
    OOM_KILLED = "OOMKilled";
    /// All replicas are updated, and old ones are pending termination.
    OLD_REPLICAS_TERMINATING = "OldReplicasTerminating";
    /// CloneSet, StatefulSet of OpenKruise: a partition holds back the rollout.
    PARTITIONED = "Partitioned";
    /// A condition or a phase is good, but a part of the object is not; the message quotes it.
    PARTS_NOT_READY = "PartsNotReady";
    /// Nothing but counters of what is ready is known, and they have the wanted values.
    PARTS_READY = "PartsReady";
    /// The rollout is paused.
    PAUSED = "Paused";
    /// PersistentVolume, PersistentVolumeClaim: not bound yet. CertificateSigningRequest: not approved yet.
    PENDING = "Pending";
    /// Pod: the phase is Failed, and the Pod reports no reason.
    POD_FAILED = "PodFailed";
    /// Pod: running, not ready.
    POD_NOT_READY = "PodNotReady";
    /// Pod: scheduled, containers not started yet.
    POD_PENDING = "PodPending";
    /// Pod: running, ready.
    POD_READY = "PodReady";
    /// Pod: the phase is Unknown.
    POD_UNKNOWN = "PodUnknown";
    /// Pod: the postStart hook of a container failed.
    POST_START_HOOK_ERROR = "PostStartHookError";
    /// Pod: the kubelet cannot prepare the start of a container.
    PRE_START_HOOK_ERROR = "PreStartHookError";
    /// Deployment: the progress deadline is exceeded.
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded";
    /// Cluster of Cluster API: the phase is Pending or Provisioning.
    PROVISIONING = "Provisioning";
    /// A flag in the status, such as `ready`, is true.
    READY = "Ready";
    /// PersistentVolume: the phase is Failed.
    RECLAIM_FAILED = "ReclaimFailed";
    /// Pod: the registry of an image is not available.
    REGISTRY_UNAVAILABLE = "RegistryUnavailable";
    /// PersistentVolume: released, not reclaimed yet.
    RELEASED = "Released";
    /// Fewer replicas are available than wanted.
    REPLICAS_NOT_AVAILABLE = "ReplicasNotAvailable";
    /// Fewer replicas are ready than wanted.
    REPLICAS_NOT_READY = "ReplicasNotReady";
    /// All replicas are ready.
    REPLICAS_READY = "ReplicasReady";
    /// PersistentVolume: released, with reclaim policy Retain.
    RETAINED = "Retained";
    /// Fewer replicas are updated than wanted.
    ROLLING_OUT = "RollingOut";
    /// User rule: evaluation on the object failed; the message says why.
    RULE_ERROR = "RuleError";
    /// User rule: invalid, and no valid version of it is known.
    RULE_INVALID = "RuleInvalid";
    /// User rule: evaluation on the object exceeded a limit.
    RULE_TOO_EXPENSIVE = "RuleTooExpensive";
    /// Any kind: HealthRules may exist and cannot be read.
    RULES_UNREADABLE = "RulesUnreadable";
    /// Pod: the container runtime cannot run a container.
    RUN_CONTAINER_ERROR = "RunContainerError";
    /// Job: started, not complete. CronJob: a run is active.
    RUNNING = "Running";
    /// The workload is scaled to 0.
    SCALED_TO_ZERO = "ScaledToZero";
    /// HorizontalPodAutoscaler: scaling is active.
    SCALING_ACTIVE = "ScalingActive";
    /// HorizontalPodAutoscaler: scaling is disabled, because the target is scaled to 0.
    SCALING_DISABLED = "ScalingDisabled";
    /// More replicas exist than wanted.
    SCALING_DOWN = "ScalingDown";
    /// CronJob: the last run succeeded, or no run has started yet.
    SCHEDULED = "Scheduled";
    /// Pod: waiting for scheduling gates.
    SCHEDULING_GATED = "SchedulingGated";
    /// Service of a type other than LoadBalancer.
    SERVICE_READY = "ServiceReady";
    /// Pod: the signature of an image is invalid.
    SIGNATURE_VALIDATION_FAILED = "SignatureValidationFailed";
    /// Pod: the container runtime cannot start a container.
    START_ERROR = "StartError";
    /// The object is suspended by `spec.suspend` or a similar field.
    SUSPENDED = "Suspended";
    /// PodDisruptionBudget: its controller cannot compute the status.
    SYNC_FAILED = "SyncFailed";
    /// PodDisruptionBudget: currentHealthy is less than desiredHealthy.
    TOO_FEW_PODS = "TooFewPods";
    /// The status has too many conditions to evaluate all.
    TOO_MANY_CONDITIONS = "TooManyConditions";
    /// Route of the Gateway API: too many parents to evaluate all.
    TOO_MANY_PARENTS = "TooManyParents";
    /// The lists and maps in the status have too many entries to evaluate all.
    TOO_MANY_STATUS_ENTRIES = "TooManyStatusEntries";
    /// The flag `healthy` in the status is false.
    UNHEALTHY = "Unhealthy";
    /// The phase is unknown to the rule.
    UNRECOGNIZED_PHASE = "UnrecognizedPhase";
    /// The rule finds no known phase or condition in the status.
    UNRECOGNIZED_STATUS = "UnrecognizedStatus";
    /// Pod: the scheduler finds no suitable node.
    UNSCHEDULABLE = "Unschedulable";
    /// The object reports a reason or a phase without any letter.
    UNSPECIFIED = bellwether_model::text::UNSPECIFIED;
    /// Kinds of Istio: `status.validationMessages` has an error.
    VALIDATION_FAILED = "ValidationFailed";
}

/// Reasons with the name of a field or a condition type, sorted by name.
pub const FAMILIES: &[Reason] = &[
    Reason {
        name: "<Field>",
        meaning: "The field is true, set or greater than 0: `Enabled` for `spec.enabled`.",
    },
    Reason {
        name: "No<Field>",
        meaning: "The field or condition is absent, and the rule does not wait for it: `NoApplicationsSelected`.",
    },
    Reason { name: "Not<Field>", meaning: "The field is false: `NotReadyToUse` for `status.readyToUse`." },
    Reason {
        name: "TooFew<Field>",
        meaning: "The counter is lower than wanted: `TooFewReadyReplicas` for `status.readyReplicas`.",
    },
];

/// Reasons of `Failed` that last until a user changes the object or its template.
const PERMANENT: &[&str] = &[
    ERR_IMAGE_NEVER_PULL,
    INVALID_IMAGE_NAME,
    LOST,
    // Of a Job that has failed.
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
];

/// Whether an object that is `Failed` for this reason cannot heal by itself. Waiting for it is useless.
pub fn is_permanent(reason: &str) -> bool {
    PERMANENT.contains(&reason)
}

/// `No<Field>`.
pub(crate) fn no(name: &str) -> String {
    format!("No{}", capitalised(name))
}

/// `Not<Field>`.
pub(crate) fn not(field: &str) -> String {
    format!("Not{}", capitalised(field))
}

/// `TooFew<Field>`.
pub(crate) fn too_few(field: &str) -> String {
    format!("TooFew{}", capitalised(field))
}

#[cfg(test)]
mod tests {
    use bellwether_model::text::legal_reason;

    use super::*;

    #[test]
    fn reasons_are_legal_sorted_and_unique() {
        for reason in ALL {
            assert_eq!(legal_reason(reason.name), reason.name);
            assert!(reason.name.starts_with(|first: char| first.is_ascii_uppercase()), "{}", reason.name);
        }
        for pair in [ALL, FAMILIES].iter().flat_map(|reasons| reasons.windows(2)) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
    }

    #[test]
    fn what_waiting_does_not_heal_is_permanent() {
        for (reason, permanent) in [
            (INVALID_IMAGE_NAME, true),
            (ERR_IMAGE_NEVER_PULL, true),
            ("BackoffLimitExceeded", true),
            (CRASH_LOOP_BACK_OFF, false),
            (IMAGE_PULL_BACK_OFF, false),
            (CREATE_CONTAINER_CONFIG_ERROR, false),
            (UNSCHEDULABLE, false),
            (PROGRESS_DEADLINE_EXCEEDED, false),
        ] {
            assert_eq!(is_permanent(reason), permanent, "{reason}");
        }
    }

    #[test]
    fn meanings_are_sentences() {
        for reason in ALL.iter().chain(FAMILIES) {
            assert!(reason.meaning.ends_with('.'), "{}: {:?}", reason.name, reason.meaning);
        }
    }
}
