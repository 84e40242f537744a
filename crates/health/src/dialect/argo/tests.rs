use HealthStatusCode::{Degraded, Healthy, Progressing, Suspended, Unknown};
use bellwether_model::Plan;
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::*;

/// `kind` is `apiVersion Kind`.
fn health(kind: &str, fields: &Json) -> Option<Health> {
    let (version, kind) = kind.split_once(' ').unwrap();
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "it"}});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let json = serde_json::to_vec(&object).unwrap();
    assess(&Object::from_json(&json, &Plan::everything()).unwrap())
}

fn check(kind: &str, fields: &Json, status: HealthStatusCode, message: &str) {
    let expected = Health { status, message: message.to_owned().into() };
    assert_eq!(health(kind, fields), Some(expected), "{kind} {fields}");
}

fn condition(kind: &str, status: &str, reason: &str) -> Json {
    json!({"type": kind, "status": status, "reason": reason, "message": format!("{kind} is {status}")})
}

#[rstest]
#[case("acme.io/v1 Foo")]
#[case("argoproj.io/v1alpha1 Application")]
#[case("v1 ConfigMap")]
#[case("batch/v1 CronJob")]
#[case("extensions/v1beta1 Deployment")]
fn no_opinion(#[case] kind: &str) {
    assert_eq!(health(kind, &json!({"status": {"phase": "Failed"}})), None);
}

#[rstest]
#[case("v1 Pod")]
#[case("apps/v1beta1 Deployment")]
#[case("acme.io/v1 Foo")]
fn an_object_with_a_deletion_timestamp_is_progressing(#[case] kind: &str) {
    let fields =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["acme.io/keep"]}});
    check(kind, &fields, Progressing, "Pending deletion");
}

#[test]
fn a_hook_that_is_being_deleted_has_the_health_of_its_result() {
    let fields = json!({
        "metadata": {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["argocd.argoproj.io/hook-finalizer"],
        },
        "status": {"conditions": [condition("Complete", "True", "")]},
    });
    check("batch/v1 Job", &fields, Healthy, "Complete is True");
}

#[rstest]
#[case("apps/v1beta1 Deployment", "unsupported Deployment GVK: apps/v1beta1, Kind=Deployment")]
#[case("apps/v1beta2 ReplicaSet", "unsupported ReplicaSet GVK: apps/v1beta2, Kind=ReplicaSet")]
#[case("v2 Pod", "unsupported Pod GVK: /v2, Kind=Pod")]
#[case(
    "autoscaling/v2beta2 HorizontalPodAutoscaler",
    "unsupported HPA GVK: autoscaling/v2beta2, Kind=HorizontalPodAutoscaler"
)]
fn an_unsupported_version_is_unknown(#[case] kind: &str, #[case] message: &str) {
    check(kind, &json!({}), Unknown, message);
}

#[rstest]
#[case("apps/v1 Deployment", json!({"spec": {"replicas": "three"}}), "failed to convert unstructured Deployment to typed: unrecognized type: int32")]
#[case("apps/v1 Deployment", json!({"spec": {"replicas": 1.5}}), "failed to convert unstructured Deployment to typed: cannot convert float64 to int32")]
#[case("apps/v1 Deployment", json!({"spec": {"paused": "no"}}), "failed to convert unstructured Deployment to typed: unrecognized type: bool")]
#[case("apps/v1 StatefulSet", json!({"status": {"observedGeneration": true}}), "failed to convert unstructured StatefulSet to typed: unrecognized type: int64")]
#[case("v1 Pod", json!({"status": []}), "failed to convert unstructured Pod to typed: cannot restore struct from: slice")]
#[case("v1 Pod", json!({"metadata": {"annotations": {"a": true}}}), "failed to convert unstructured Pod to typed: unrecognized type: string")]
#[case("v1 Pod", json!({"metadata": {"labels": "a"}}), "failed to convert unstructured Pod to typed: cannot restore map from string")]
#[case("v1 Service", json!({"status": {"conditions": [{"type": 1}]}}), "failed to convert unstructured Service to typed: cannot convert int64 to string")]
#[case("v1 Service", json!({"status": {"loadBalancer": {"ingress": {}}}}), "failed to convert unstructured Service to typed: cannot restore slice from map")]
fn a_decoding_error_is_unknown(#[case] kind: &str, #[case] fields: Json, #[case] message: &str) {
    check(kind, &fields, Unknown, message);
}

#[rstest]
#[case(json!({}), Healthy, "")]
#[case::null_counts_as_absent(json!({"spec": null, "status": {"conditions": null}}), Healthy, "")]
#[case(json!({"spec": {"paused": true}}), Suspended, "Deployment is paused")]
#[case(
    json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}),
    Progressing, "Waiting for rollout to finish: observed deployment generation less than desired generation"
)]
#[case(
    json!({"status": {"conditions": [condition("Progressing", "False", "ProgressDeadlineExceeded")]}}),
    Degraded, "Deployment \"it\" exceeded its progress deadline"
)]
#[case(
    json!({"spec": {"replicas": 3}, "status": {"updatedReplicas": 1}}),
    Progressing, "Waiting for rollout to finish: 1 out of 3 new replicas have been updated..."
)]
#[case(
    json!({"spec": {"replicas": 3}, "status": {"updatedReplicas": 3, "replicas": 5}}),
    Progressing, "Waiting for rollout to finish: 2 old replicas are pending termination..."
)]
#[case(
    json!({"spec": {"replicas": 3}, "status": {"updatedReplicas": 3, "replicas": 3, "availableReplicas": 2}}),
    Progressing, "Waiting for rollout to finish: 2 of 3 updated replicas are available..."
)]
#[case(json!({"spec": {"replicas": 3}, "status": {"updatedReplicas": 3, "replicas": 3, "availableReplicas": 3}}), Healthy, "")]
#[case::a_whole_number_may_have_a_point(json!({"spec": {"replicas": 3.0}, "status": {"updatedReplicas": 3, "availableReplicas": 3}}), Healthy, "")]
fn deployment(#[case] fields: Json, #[case] status: HealthStatusCode, #[case] message: &str) {
    check("apps/v1 Deployment", &fields, status, message);
}

#[rstest]
#[case(json!({}), Healthy, "")]
#[case(
    json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}),
    Progressing, "Waiting for rollout to finish: observed replica set generation less than desired generation"
)]
#[case(json!({"status": {"conditions": [condition("ReplicaFailure", "True", "Quota")]}}), Degraded, "ReplicaFailure is True")]
#[case(json!({"status": {"conditions": [condition("ReplicaFailure", "False", "Quota")]}}), Healthy, "")]
#[case(
    json!({"spec": {"replicas": 3}, "status": {"availableReplicas": 1}}),
    Progressing, "Waiting for rollout to finish: 1 out of 3 new replicas are available..."
)]
#[case(json!({"spec": {"replicas": 3}, "status": {"availableReplicas": 3}}), Healthy, "")]
fn replica_set(#[case] fields: Json, #[case] status: HealthStatusCode, #[case] message: &str) {
    check("apps/v1 ReplicaSet", &fields, status, message);
}

#[rstest]
#[case(json!({"spec": {}, "status": {}}), Progressing, "Waiting for statefulset spec update to be observed...")]
#[case(
    json!({"metadata": {"generation": 2}, "spec": {}, "status": {"observedGeneration": 1}}),
    Progressing, "Waiting for statefulset spec update to be observed..."
)]
#[case(
    json!({"spec": {"replicas": 3}, "status": {"observedGeneration": 1, "readyReplicas": 1}}),
    Progressing, "Waiting for 2 pods to be ready..."
)]
#[case(
    json!({
        "spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
        "status": {"observedGeneration": 1, "readyReplicas": 3, "updatedReplicas": 1},
    }),
    Progressing, "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated..."
)]
#[case(
    json!({
        "spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
        "status": {"observedGeneration": 1, "readyReplicas": 3, "updatedReplicas": 2},
    }),
    Healthy, "partitioned roll out complete: 2 new pods have been updated..."
)]
#[case(
    json!({
        "spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}}},
        "status": {"observedGeneration": 1, "updatedReplicas": 2},
    }),
    Healthy, "partitioned roll out complete: 2 new pods have been updated..."
)]
#[case(
    json!({"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": {"observedGeneration": 1, "readyReplicas": 3}}),
    Healthy, "statefulset has 3 ready pods"
)]
#[case(
    json!({
        "spec": {"updateStrategy": {"type": "RollingUpdate"}},
        "status": {"observedGeneration": 1, "updatedReplicas": 1, "currentRevision": "old", "updateRevision": "new"},
    }),
    Progressing, "waiting for statefulset rolling update to complete 1 pods at revision new..."
)]
#[case(
    json!({"status": {"observedGeneration": 1, "currentReplicas": 3, "currentRevision": "new", "updateRevision": "new"}}),
    Healthy, "statefulset rolling update complete 3 pods at revision new..."
)]
fn stateful_set(#[case] fields: Json, #[case] status: HealthStatusCode, #[case] message: &str) {
    check("apps/v1 StatefulSet", &fields, status, message);
}

#[rstest]
#[case(json!({}), Healthy, "")]
#[case(
    json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}),
    Progressing, "Waiting for rollout to finish: observed daemon set generation less than desired generation"
)]
#[case(
    json!({
        "spec": {"updateStrategy": {"type": "OnDelete"}},
        "status": {"desiredNumberScheduled": 3, "updatedNumberScheduled": 1},
    }),
    Healthy, "daemon set 1 out of 3 new pods have been updated"
)]
#[case(
    json!({"status": {"desiredNumberScheduled": 3, "updatedNumberScheduled": 1}}),
    Progressing, "Waiting for daemon set \"it\" rollout to finish: 1 out of 3 new pods have been updated..."
)]
#[case(
    json!({
        "metadata": {"name": "log"},
        "status": {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 2},
    }),
    Progressing, "Waiting for daemon set \"log\" rollout to finish: 2 of 3 updated pods are available..."
)]
#[case(json!({"status": {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}}), Healthy, "")]
fn daemon_set(#[case] fields: Json, #[case] status: HealthStatusCode, #[case] message: &str) {
    check("apps/v1 DaemonSet", &fields, status, message);
}

#[rstest]
#[case(vec![], Progressing, "")]
#[case(vec![condition("Complete", "True", "")], Healthy, "Complete is True")]
#[case::the_status_is_ignored(vec![condition("Complete", "False", "")], Healthy, "Complete is False")]
#[case(vec![condition("Failed", "True", "")], Degraded, "Failed is True")]
#[case(vec![condition("Failed", "True", ""), condition("Complete", "True", "")], Degraded, "Failed is True")]
#[case(vec![condition("Suspended", "True", "")], Suspended, "")]
#[case::resumed(vec![condition("Suspended", "False", "")], Healthy, "Suspended is False")]
fn job(#[case] conditions: Vec<Json>, #[case] status: HealthStatusCode, #[case] message: &str) {
    check("batch/v1 Job", &json!({"status": {"conditions": conditions}}), status, message);
}

fn waiting(reason: &str) -> Json {
    json!({"name": "main", "state": {"waiting": {"reason": reason, "message": format!("it waits: {reason}")}}})
}

#[rstest]
#[case("Always", json!({}), Unknown, "")]
#[case("Always", json!({"phase": "Pending", "message": "text"}), Progressing, "text")]
#[case("Always", json!({"phase": "Succeeded", "message": "text"}), Healthy, "text")]
#[case("Always", json!({"phase": "Odd", "message": "text"}), Unknown, "text")]
#[case("Always", json!({"phase": "Running", "containerStatuses": [waiting("ErrImagePull")]}), Degraded, "it waits: ErrImagePull")]
#[case("Always", json!({"phase": "Pending", "containerStatuses": [waiting("CreateContainerConfigError")]}), Degraded, "it waits: CreateContainerConfigError")]
#[case(
    "Always", json!({"containerStatuses": [waiting("ImagePullBackOff"), waiting("ContainerCreating"), waiting("CrashLoopBackOff")]}),
    Degraded, "it waits: ImagePullBackOff, it waits: CrashLoopBackOff"
)]
#[case("Always", json!({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}), Progressing, "")]
#[case("Never", json!({"phase": "Pending", "containerStatuses": [waiting("ImagePullBackOff")]}), Progressing, "")]
#[case("Always", json!({"phase": "Running", "conditions": [condition("Ready", "True", "")]}), Healthy, "")]
#[case("Always", json!({"phase": "Running", "conditions": [condition("Ready", "False", "")]}), Progressing, "")]
#[case("Always", json!({"phase": "Running", "containerStatuses": [{"lastState": {"terminated": {"exitCode": 1}}}]}), Degraded, "")]
#[case("Always", json!({"phase": "Running", "containerStatuses": [{"lastState": {"terminated": null}}]}), Progressing, "")]
#[case("OnFailure", json!({"phase": "Running", "conditions": [condition("Ready", "True", "")]}), Progressing, "")]
#[case("Never", json!({"phase": "Running", "message": "text"}), Progressing, "text")]
#[case("", json!({"phase": "Running", "message": "text"}), Unknown, "text")]
#[case("Never", json!({"phase": "Failed", "message": "evicted"}), Degraded, "evicted")]
#[case("Never", json!({"phase": "Failed"}), Degraded, "")]
#[case(
    "Never", json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 1, "message": "no disk"}}}]}),
    Degraded, "no disk"
)]
#[case(
    "Never", json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}),
    Degraded, "OOMKilled"
)]
#[case(
    "Never", json!({
        "phase": "Failed",
        "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 0}}}],
        "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 2}}}],
    }),
    Degraded, "container \"main\" failed with exit code 2"
)]
#[case(
    "Never", json!({
        "phase": "Failed",
        "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 3}}}],
        "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 2}}}],
    }),
    Degraded, "container \"init\" failed with exit code 3"
)]
fn pod(#[case] policy: &str, #[case] fields: Json, #[case] status: HealthStatusCode, #[case] message: &str) {
    check("v1 Pod", &json!({"spec": {"restartPolicy": policy}, "status": fields}), status, message);
}

#[rstest]
#[case(json!({}), Healthy)]
#[case(json!({"argocd.argoproj.io/hook": "PostSync"}), Progressing)]
#[case(json!({"argocd.argoproj.io/hook": "Skip"}), Healthy)]
#[case(json!({"helm.sh/hook": "post-install"}), Progressing)]
#[case(json!({"helm.sh/hook": "crd-install"}), Healthy)]
#[case::the_hook_of_argo_counts(json!({"argocd.argoproj.io/hook": "Skip", "helm.sh/hook": "post-install"}), Healthy)]
fn a_pod_may_ignore_its_restart_policy(#[case] mut annotations: Json, #[case] status: HealthStatusCode) {
    annotations["argocd.argoproj.io/ignore-restart-policy"] = "true".into();
    let fields = json!({
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never"},
        "status": {"phase": "Running", "conditions": [condition("Ready", "True", "")]},
    });
    check("v1 Pod", &fields, status, "");
}

#[rstest]
#[case("v1 Service", json!({}), Healthy)]
#[case("v1 Service", json!({"spec": {"type": "LoadBalancer"}}), Progressing)]
#[case("v1 Service", json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": []}}}), Progressing)]
#[case("v1 Service", json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "::1"}]}}}), Healthy)]
#[case("networking.k8s.io/v1 Ingress", json!({}), Progressing)]
#[case("networking.k8s.io/v1 Ingress", json!({"status": {"loadBalancer": {"ingress": [{}]}}}), Healthy)]
#[case("networking.k8s.io/v1 Ingress", json!({"status": {"loadBalancer": "none"}}), Progressing)]
#[case("extensions/v1beta1 Ingress", json!({"status": {"loadBalancer": {"ingress": [{}]}}}), Healthy)]
#[case("v1 PersistentVolumeClaim", json!({"status": {"phase": "Bound"}}), Healthy)]
#[case("v1 PersistentVolumeClaim", json!({"status": {"phase": "Pending"}}), Progressing)]
#[case("v1 PersistentVolumeClaim", json!({"status": {"phase": "Lost"}}), Degraded)]
#[case("v1 PersistentVolumeClaim", json!({}), Unknown)]
fn kinds_without_messages(#[case] kind: &str, #[case] fields: Json, #[case] status: HealthStatusCode) {
    check(kind, &fields, status, "");
}

#[rstest]
#[case(vec![], Progressing, "Waiting to be processed")]
#[case(vec![condition("Available", "True", "Passed")], Healthy, "Passed: Available is True")]
#[case(vec![condition("Available", "False", "NoEndpoints")], Progressing, "NoEndpoints: Available is False")]
fn api_service(
    #[values("v1", "v1beta1")] version: &str,
    #[case] conditions: Vec<Json>,
    #[case] status: HealthStatusCode,
    #[case] message: &str,
) {
    let kind = format!("apiregistration.k8s.io/{version} APIService");
    check(&kind, &json!({"status": {"conditions": conditions}}), status, message);
}

#[rstest]
#[case("", Progressing)]
#[case("Pending", Progressing)]
#[case("Running", Progressing)]
#[case("Succeeded", Healthy)]
#[case("Failed", Degraded)]
#[case("Error", Degraded)]
#[case("Odd", Unknown)]
fn workflow(#[case] phase: &str, #[case] status: HealthStatusCode) {
    let fields = json!({"status": {"phase": phase, "message": "text"}});
    check("argoproj.io/v1alpha1 Workflow", &fields, status, "text");
}

#[rstest]
#[case(vec![], Progressing, "Waiting to Autoscale")]
#[case(vec![condition("ScalingActive", "True", "ValidMetricFound")], Progressing, "Waiting to Autoscale")]
#[case(vec![condition("AbleToScale", "True", "ReadyForNewScale")], Healthy, "AbleToScale is True")]
#[case(vec![condition("AbleToScale", "False", "BackoffBoth")], Progressing, "Waiting to Autoscale")]
#[case(vec![condition("ScalingLimited", "True", "TooFewReplicas")], Healthy, "ScalingLimited is True")]
#[case(vec![condition("AbleToScale", "False", "FailedGetScale")], Degraded, "AbleToScale is False")]
#[case(vec![condition("AbleToScale", "False", "FailedUpdateScale")], Degraded, "AbleToScale is False")]
#[case::the_reason_counts_with_its_type(vec![condition("AbleToScale", "False", "InvalidSelector")], Progressing, "Waiting to Autoscale")]
#[case(
    vec![condition("AbleToScale", "True", "SucceededGetScale"), condition("ScalingActive", "False", "FailedGetObjectMetric")],
    Degraded, "ScalingActive is False"
)]
fn autoscaler(#[case] conditions: Vec<Json>, #[case] status: HealthStatusCode, #[case] message: &str) {
    let kind = |version| format!("autoscaling/{version} HorizontalPodAutoscaler");
    check(&kind("v2"), &json!({"status": {"conditions": conditions}}), status, message);
    let annotation = Json::from(conditions).to_string();
    let fields =
        json!({"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/conditions": annotation}}});
    check(&kind("v1"), &fields, status, message);
}

#[rstest]
#[case("FailedGetResourceMetric")]
#[case("FailedGetObjectMetric")]
#[case("FailedGetPodsMetric")]
#[case("FailedGetExternalMetric")]
#[case("FailedComputeMetricsReplicas")]
#[case("InvalidSelector")]
fn an_autoscaler_without_metrics(#[case] reason: &str) {
    let fields = json!({"status": {"conditions": [condition("ScalingActive", "False", reason)]}});
    check("autoscaling/v2 HorizontalPodAutoscaler", &fields, Degraded, "ScalingActive is False");
}

#[rstest]
#[case(None, Progressing)]
#[case(Some("null"), Progressing)]
#[case(Some("[null]"), Progressing)]
#[case(Some("["), Unknown)]
#[case(Some("[{\"type\": 1}]"), Unknown)]
fn the_annotation_of_an_old_autoscaler(#[case] annotation: Option<&str>, #[case] status: HealthStatusCode) {
    let mut fields = json!({"metadata": {"annotations": {}}});
    if let Some(annotation) = annotation {
        fields["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/conditions"] = annotation.into();
    }
    let health = health("autoscaling/v1 HorizontalPodAutoscaler", &fields).unwrap();
    assert_eq!(health.status, status, "{health:?}");
}
