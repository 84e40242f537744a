use Status::{Current, Failed, InProgress, Terminating, Unknown};
use bellwether_model::Plan;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::*;

const NOW: &str = "2026-01-01T12:00:00Z";

/// `kind` is `apiVersion Kind`.
fn assessment(kind: &str, fields: &Json) -> Assessment {
    let (version, kind) = kind.split_once(' ').unwrap();
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "it"}});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let json = serde_json::to_vec(&object).unwrap();
    assess(&Object::from_json(&json, &Plan::everything()).unwrap(), NOW.parse().unwrap())
}

/// At most one condition, with the same message.
fn check(kind: &str, fields: &Json, status: Status, reason: &str, message: &str) {
    let condition = |kind| KstatusCondition {
        kind,
        status: ConditionStatus::True,
        reason: reason.to_owned().into(),
        message: message.to_owned().into(),
    };
    let conditions = match status {
        InProgress => vec![condition("Reconciling")],
        Failed => vec![condition("Stalled")],
        Current | Terminating | Unknown => Vec::new(),
    };
    let expected = Assessment { status, message: message.to_owned().into(), conditions };
    assert_eq!(assessment(kind, fields), expected, "{kind} {fields}");
}

fn condition(kind: &str, status: &str, reason: &str) -> Json {
    json!({"type": kind, "status": status, "reason": reason, "message": format!("{kind} is {status}")})
}

#[rstest]
#[case(json!({}), Current, "", "Resource is current")]
#[case(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), Terminating, "", "Resource scheduled for deletion")]
#[case(json!({"metadata": {"deletionTimestamp": ""}}), Current, "", "Resource is current")]
#[case(
    json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 2}}),
    InProgress, "LatestGenerationNotObserved", "Foo generation is 3, but latest observed generation is 2"
)]
#[case(
    json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 3}}),
    InProgress, "LatestGenerationNotObserved", "Foo generation is 2, but latest observed generation is 3"
)]
#[case(json!({"metadata": {"generation": 3}}), Current, "", "Resource is current")]
#[case(json!({"status": {"observedGeneration": 3}}), Current, "", "Resource is current")]
#[case::without_a_generation_the_observed_one_is_ignored(json!({"status": {"observedGeneration": "3"}}), Current, "", "Resource is current")]
#[case(json!({"status": null}), Current, "", "Resource is current")]
fn any_object(#[case] fields: Json, #[case] status: Status, #[case] reason: &str, #[case] message: &str) {
    check("acme.io/v1 Foo", &fields, status, reason, message);
}

#[rstest]
#[case(condition("Ready", "True", ""), Current, "", "Resource is Ready")]
#[case(condition("Ready", "False", "Busy"), InProgress, "Busy", "Ready is False")]
#[case(condition("Ready", "Unknown", "Busy"), InProgress, "Busy", "Ready is Unknown")]
#[case(condition("Ready", "Maybe", "Busy"), Current, "", "Resource is current")]
#[case(condition("Healthy", "False", "Busy"), Current, "", "Resource is current")]
#[case(condition("Reconciling", "True", "Busy"), InProgress, "Busy", "Reconciling is True")]
#[case(condition("Reconciling", "False", "Busy"), Current, "", "Resource is current")]
#[case(condition("Stalled", "True", "Broken"), Failed, "Broken", "Stalled is True")]
#[case(condition("Stalled", "Unknown", "Broken"), Current, "", "Resource is current")]
fn conditions_of_any_object(
    #[case] condition: Json,
    #[case] status: Status,
    #[case] reason: &str,
    #[case] message: &str,
) {
    check("acme.io/v1 Foo", &json!({"status": {"conditions": [condition]}}), status, reason, message);
}

#[test]
fn the_first_condition_decides() {
    let mut conditions = vec![
        condition("Ready", "True", ""),
        condition("Stalled", "True", "Broken"),
        condition("Reconciling", "True", "Busy"),
    ];
    let fields = |conditions: &[Json]| json!({"status": {"conditions": conditions}});
    check("acme.io/v1 Foo", &fields(&conditions), Failed, "Broken", "Stalled is True");
    conditions.reverse();
    check("acme.io/v1 Foo", &fields(&conditions), InProgress, "Busy", "Reconciling is True");
}

#[rstest]
#[case(
    json!({"metadata": {"generation": 1}, "status": {"observedGeneration": "1"}}),
    "looking up status.observedGeneration from resource: .status.observedGeneration accessor error: 1 is of the type string, expected int64"
)]
#[case(
    json!({"metadata": {"generation": 1.5}}),
    "looking up metadata.generation from resource: .metadata.generation accessor error: 1.5 is of the type float64, expected int64"
)]
#[case(
    json!({"metadata": {"generation": 1e21}}),
    "looking up metadata.generation from resource: .metadata.generation accessor error: 1e+21 is of the type float64, expected int64"
)]
#[case(
    json!({"metadata": {"generation": 2e-7}}),
    "looking up metadata.generation from resource: .metadata.generation accessor error: 2e-07 is of the type float64, expected int64"
)]
#[case(
    json!({"metadata": {"deletionTimestamp": null}}),
    "looking up metadata.deletionTimestamp from resource: .metadata.deletionTimestamp accessor error: <nil> is of the type <nil>, expected string"
)]
#[case(
    json!({"metadata": [true]}),
    "looking up metadata.deletionTimestamp from resource: .metadata.deletionTimestamp accessor error: [true] is of the type []interface {}, expected map[string]interface{}"
)]
#[case(
    json!({"metadata": {"generation": {"b": [1, "x"], "a": null}}}),
    "looking up metadata.generation from resource: .metadata.generation accessor error: map[a:<nil> b:[1 x]] is of the type map[string]interface {}, expected int64"
)]
#[case(json!({"status": "fine"}), "cannot restore struct from: string")]
#[case(json!({"status": {"conditions": {"type": "Ready"}}}), "cannot restore slice from map")]
#[case(json!({"status": {"conditions": ["Ready"]}}), "cannot restore struct from: string")]
#[case(json!({"status": {"conditions": [[]]}}), "cannot restore struct from: slice")]
#[case(json!({"status": {"conditions": [{"type": 1}]}}), "cannot convert int64 to string")]
#[case(json!({"status": {"conditions": [{"status": 1}]}}), "cannot convert int64 to v1.ConditionStatus")]
#[case(json!({"status": {"conditions": [{"status": true}]}}), "unrecognized type: string")]
fn an_error_is_unknown(#[case] fields: Json, #[case] message: &str) {
    check("acme.io/v1 Foo", &fields, Unknown, "", message);
}

#[rstest]
#[case("v1 ConfigMap", "Resource is always ready")]
#[case("v1 Secret", "Resource is always ready")]
#[case("batch/v1 CronJob", "Resource is always ready")]
#[case("policy/v1 PodDisruptionBudget", "AllowedDisruptions has been computed.")]
#[case::a_kind_of_the_same_name("acme.io/v1 Secret", "Resource is current")]
#[case::not_in_this_group("extensions/v1beta1 StatefulSet", "Resource is current")]
fn kinds_without_a_state(#[case] kind: &str, #[case] message: &str) {
    check(kind, &json!({}), Current, "", message);
}

#[rstest]
#[case(json!({}), Current, "", "Service is ready")]
#[case(json!({"type": "NodePort"}), Current, "", "Service is ready")]
#[case(json!({"type": "LoadBalancer"}), InProgress, "NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer")]
#[case(json!({"type": "LoadBalancer", "clusterIP": 1}), InProgress, "NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer")]
#[case(json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}), Current, "", "Service is ready")]
fn service(#[case] spec: Json, #[case] status: Status, #[case] reason: &str, #[case] message: &str) {
    check("v1 Service", &json!({"spec": spec}), status, reason, message);
}

#[rstest]
#[case(json!({}), InProgress, "NotBound", "PVC is not Bound. phase: unknown")]
#[case(json!({"phase": "Lost"}), InProgress, "NotBound", "PVC is not Bound. phase: Lost")]
#[case(json!({"phase": "Bound"}), Current, "", "PVC is Bound")]
fn claim(#[case] fields: Json, #[case] status: Status, #[case] reason: &str, #[case] message: &str) {
    check("v1 PersistentVolumeClaim", &json!({"status": fields}), status, reason, message);
}

#[rstest]
#[case(json!({}), InProgress, "PodNotObserved", "Pod phase not available")]
#[case(json!({"phase": "Succeeded"}), Current, "", "Pod has completed successfully")]
#[case(json!({"phase": "Failed"}), Current, "", "Pod has completed, but not successfully")]
#[case(json!({"phase": "Odd"}), Unknown, "", "unknown phase Odd")]
#[case(json!({"phase": "Running", "conditions": [condition("Ready", "True", "")]}), Current, "", "Pod is Ready")]
#[case(json!({"phase": "Running"}), InProgress, "PodRunningNotReady", "Pod is running but is not Ready")]
#[case(
    json!({"phase": "Running", "containerStatuses": [
        {"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        {"name": "b", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
        {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        {"name": "e", "state": {"running": {}}},
        "f",
    ]}),
    Failed, "ContainerCrashLooping", "Containers in CrashLoop state: a,c"
)]
#[case(
    json!({"phase": "Running", "containerStatuses": null}),
    Unknown, "", ".status.containerStatuses accessor error: <nil> is of the type <nil>, expected []interface{}"
)]
#[case(json!({"phase": "Pending"}), InProgress, "PodPending", "Pod is in the Pending phase")]
#[case(
    json!({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "SchedulingGated")]}),
    InProgress, "PodPending", "Pod is in the Pending phase"
)]
#[case::created_at_no_time(
    json!({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]}),
    Failed, "PodUnschedulable", "Pod could not be scheduled"
)]
fn pod(#[case] fields: Json, #[case] status: Status, #[case] reason: &str, #[case] message: &str) {
    check("v1 Pod", &json!({"status": fields}), status, reason, message);
}

#[rstest]
#[case("2026-01-01T11:59:46Z", InProgress, "PodNotScheduled", "Pod has not been scheduled")]
#[case("2026-01-01T11:59:45Z", Failed, "PodUnschedulable", "Pod could not be scheduled")]
fn a_pod_is_unschedulable_after_fifteen_seconds(
    #[case] created: &str,
    #[case] status: Status,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let conditions = [condition("PodScheduled", "False", "Unschedulable")];
    let fields = json!({
        "metadata": {"creationTimestamp": created},
        "status": {"phase": "Pending", "conditions": conditions},
    });
    check("v1 Pod", &fields, status, reason, message);
}

/// Existing, updated, available, ready.
fn replicas(counts: [i64; 4]) -> Json {
    let [all, updated, available, ready] = counts;
    json!({"replicas": all, "updatedReplicas": updated, "availableReplicas": available, "readyReplicas": ready})
}

#[rstest]
#[case([0, 0, 0, 0], InProgress, "LessReplicas", "Replicas: 0/3")]
#[case([3, 1, 0, 0], InProgress, "LessUpdated", "Updated: 1/3")]
#[case([4, 3, 0, 0], InProgress, "ExtraPods", "Pending termination: 1")]
#[case([3, 3, 2, 0], InProgress, "LessAvailable", "Available: 2/3")]
#[case([3, 3, 3, 2], InProgress, "LessReady", "Ready: 2/3")]
#[case([3, 3, 3, 3], InProgress, "DeploymentNotAvailable", "Deployment not Available")]
fn deployment_by_its_replicas(
    #[values("apps/v1", "extensions/v1beta1")] version: &str,
    #[case] counts: [i64; 4],
    #[case] status: Status,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let fields = json!({"spec": {"replicas": 3}, "status": replicas(counts)});
    check(&format!("{version} Deployment"), &fields, status, reason, message);
}

#[rstest]
#[case(None, vec![condition("Available", "True", "")], Current, "", "Deployment is available. Replicas: 1")]
#[case(Some(i32::MAX), vec![condition("Available", "True", "")], Current, "", "Deployment is available. Replicas: 1")]
#[case(Some(600), vec![condition("Available", "True", "")], InProgress, "ReplicaSetNotAvailable", "ReplicaSet not Available")]
#[case(
    Some(600), vec![condition("Progressing", "True", "ReplicaSetUpdated"), condition("Available", "True", "")],
    InProgress, "ReplicaSetNotAvailable", "ReplicaSet not Available"
)]
#[case(
    Some(600), vec![condition("Progressing", "True", "NewReplicaSetAvailable"), condition("Available", "True", "")],
    Current, "", "Deployment is available. Replicas: 1"
)]
#[case(
    Some(600), vec![condition("Progressing", "True", "NewReplicaSetAvailable"), condition("Available", "False", "")],
    InProgress, "DeploymentNotAvailable", "Deployment not Available"
)]
fn deployment_by_its_conditions(
    #[case] deadline: Option<i32>,
    #[case] conditions: Vec<Json>,
    #[case] status: Status,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let mut state = replicas([1, 1, 1, 1]);
    state["conditions"] = conditions.into();
    let fields = json!({"spec": {"progressDeadlineSeconds": deadline}, "status": state});
    check("apps/v1 Deployment", &fields, status, reason, message);
}

#[test]
fn the_condition_of_a_deployment_past_its_deadline_keeps_its_own_message() {
    let conditions = [condition("Progressing", "False", "ProgressDeadlineExceeded")];
    let failed = assessment("apps/v1 Deployment", &json!({"status": {"conditions": conditions}}));
    assert_eq!(
        serde_json::to_value(failed).unwrap(),
        json!({
            "status": "Failed",
            "message": "Progress deadline exceeded",
            "conditions": [{
                "type": "Stalled",
                "status": "True",
                "reason": "ProgressDeadlineExceeded",
                "message": "Progressing is False",
            }],
        })
    );
}

#[rstest]
#[case(json!({}), InProgress, "LessLabelled", "Labelled: 0/2")]
#[case(json!({"fullyLabeledReplicas": 2, "availableReplicas": 1}), InProgress, "LessAvailable", "Available: 1/2")]
#[case(
    json!({"fullyLabeledReplicas": 2, "availableReplicas": 2, "readyReplicas": 1}),
    InProgress, "LessReady", "Ready: 1/2"
)]
#[case(
    json!({"fullyLabeledReplicas": 2, "availableReplicas": 2, "readyReplicas": 2, "replicas": 5}),
    InProgress, "ExtraPods", "Pending termination: 3"
)]
#[case(
    json!({"fullyLabeledReplicas": 2, "availableReplicas": 2, "readyReplicas": 2, "replicas": 2}),
    Current, "", "ReplicaSet is available. Replicas: 2"
)]
#[case(
    json!({"conditions": [condition("ReplicaFailure", "True", "FailedCreate")]}),
    InProgress, "ReplicaFailure", "Replica Failure condition. Check Pods"
)]
#[case(
    json!({"conditions": [condition("ReplicaFailure", "False", "FailedCreate")]}),
    InProgress, "LessLabelled", "Labelled: 0/2"
)]
fn replica_set(#[case] fields: Json, #[case] status: Status, #[case] reason: &str, #[case] message: &str) {
    check("apps/v1 ReplicaSet", &json!({"spec": {"replicas": 2}, "status": fields}), status, reason, message);
}

#[rstest]
#[case(json!({}), json!({}), InProgress, "LessReplicas", "Replicas: 0/2")]
#[case(json!({}), json!({"replicas": 2, "readyReplicas": 1}), InProgress, "LessReady", "Ready: 1/2")]
#[case(json!({}), json!({"replicas": 3, "readyReplicas": 2}), InProgress, "ExtraPods", "Pending termination: 1")]
#[case(json!({}), json!({"replicas": 2, "readyReplicas": 2}), InProgress, "LessCurrent", "current: 0/2")]
#[case(
    json!({}), json!({"replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "currentRevision": "a", "updateRevision": "b"}),
    InProgress, "RevisionMismatch", "Waiting for updated revision to match current"
)]
#[case(
    json!({}), json!({"replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "currentRevision": "b", "updateRevision": "b"}),
    Current, "", "All replicas scheduled as expected. Replicas: 2"
)]
#[case(
    json!({"rollingUpdate": {"partition": 1}}), json!({"replicas": 2, "readyReplicas": 2}),
    InProgress, "PartitionRollout", "updated: 0/1"
)]
#[case(
    json!({"rollingUpdate": {"partition": 1}}), json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 1}),
    Current, "", "Partition rollout complete. updated: 1"
)]
#[case(json!({"type": "OnDelete"}), json!({}), Current, "", "StatefulSet is using the ondelete update strategy")]
fn stateful_set(
    #[case] strategy: Json,
    #[case] fields: Json,
    #[case] status: Status,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let fields = json!({"spec": {"replicas": 2, "updateStrategy": strategy}, "status": fields});
    check("apps/v1 StatefulSet", &fields, status, reason, message);
}

#[rstest]
#[case(json!({}), InProgress, "NoDesiredNumber", "Missing .status.desiredNumberScheduled")]
#[case(json!({"desiredNumberScheduled": 2}), InProgress, "LessCurrent", "Current: 0/2")]
#[case(json!({"desiredNumberScheduled": 2, "currentNumberScheduled": 2}), InProgress, "LessUpdated", "Updated: 0/2")]
#[case(
    json!({"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1}),
    InProgress, "LessAvailable", "Available: 1/2"
)]
#[case(
    json!({"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}),
    InProgress, "LessReady", "Ready: 0/2"
)]
#[case(json!({"desiredNumberScheduled": 0}), Current, "", "All replicas scheduled as expected. Replicas: 0")]
fn daemon_set(#[case] fields: Json, #[case] status: Status, #[case] reason: &str, #[case] message: &str) {
    let mut object = json!({"metadata": {"generation": 1}, "status": fields});
    object["status"]["observedGeneration"] = 1.into();
    check("apps/v1 DaemonSet", &object, status, reason, message);
}

#[rstest]
#[case(json!({}), "NoGeneration", "DaemonSet metadata.generation not found")]
#[case(json!({"metadata": {"generation": 1}}), "NoObservedGeneration", "DaemonSet status.observedGeneration not found")]
fn a_daemon_set_must_have_been_observed(#[case] fields: Json, #[case] reason: &str, #[case] message: &str) {
    check("extensions/v1beta1 DaemonSet", &fields, InProgress, reason, message);
}

#[rstest]
#[case(json!({}), json!({}), InProgress, "JobNotStarted", "Job not started")]
#[case(
    json!({}), json!({"startTime": "2026-01-01T00:00:00Z", "succeeded": 1, "active": 2, "failed": 3}),
    Current, "", "Job in progress. success:1, active: 2, failed: 3"
)]
#[case(
    json!({"completions": 5}), json!({"succeeded": 5, "conditions": [condition("Complete", "True", "")]}),
    Current, "", "Job Completed. succeeded: 5/5"
)]
#[case(
    json!({"parallelism": 4}), json!({"failed": 2, "conditions": [condition("Failed", "True", "")]}),
    Failed, "JobFailed", "Job Failed. failed: 2/4"
)]
#[case(json!({}), json!({"conditions": [condition("Failed", "False", "")]}), InProgress, "JobNotStarted", "Job not started")]
#[case::suspended(
    json!({"suspend": true}), json!({"conditions": [condition("Suspended", "True", "JobSuspended")]}),
    Current, "", "Job is suspended"
)]
#[case::about_to_resume(
    json!({"suspend": false}), json!({"conditions": [condition("Suspended", "True", "")]}),
    InProgress, "JobNotStarted", "Job not started"
)]
fn job(
    #[case] spec: Json,
    #[case] fields: Json,
    #[case] status: Status,
    #[case] reason: &str,
    #[case] message: &str,
) {
    check("batch/v1 Job", &json!({"spec": spec, "status": fields}), status, reason, message);
}

#[rstest]
#[case(vec![], InProgress, "Installing", "Install in progress")]
#[case(vec![condition("Established", "False", "Installing")], InProgress, "Installing", "Install in progress")]
#[case(vec![condition("Established", "False", "Refused")], Failed, "Refused", "Established is False")]
#[case(vec![condition("NamesAccepted", "False", "InUse")], Failed, "InUse", "NamesAccepted is False")]
#[case(
    vec![condition("NamesAccepted", "True", ""), condition("Established", "True", "")],
    Current, "", "CRD is established"
)]
fn resource_definition(
    #[case] conditions: Vec<Json>,
    #[case] status: Status,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let fields = json!({"status": {"conditions": conditions}});
    check("apiextensions.k8s.io/v1 CustomResourceDefinition", &fields, status, reason, message);
}

/// Any value, often of an unexpected type.
fn anything() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "[A-Za-z]{0,8}".prop_map(Json::from),
        Just(json!([{"name": 1, "state": {"waiting": []}}, 2])),
        Just(json!({"type": "OnDelete"})),
    ]
}

proptest! {
    /// Counters of any size and fields of any type: rules wrap around or return an error, but never panic.
    #[test]
    fn no_object_causes_a_panic(
        kind in prop::sample::select(vec![
            "v1 Pod", "apps/v1 Deployment", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "batch/v1 Job",
        ]),
        fields in prop::collection::vec(anything(), 10),
    ) {
        let field = |index: usize| fields[index].clone();
        assessment(kind, &json!({
            "metadata": {"generation": field(0), "creationTimestamp": field(1)},
            "spec": {"replicas": field(2), "updateStrategy": {"rollingUpdate": {"partition": field(3)}}},
            "status": {
                "observedGeneration": field(0),
                "replicas": field(4), "readyReplicas": field(5), "updatedReplicas": field(6),
                "phase": "Running", "containerStatuses": field(7), "conditions": field(8), "startTime": field(9),
            },
        }));
    }
}
