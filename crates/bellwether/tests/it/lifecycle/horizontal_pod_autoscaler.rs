//! HorizontalPodAutoscaler. Its controller syncs every 15 seconds, so the test has two at the same time.

use anyhow::Result;
use jiff::SignedDuration;

use super::Story;

fn autoscaler(name: &str) -> String {
    format!(
        "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {name}, finalizers: [example.com/hold]}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  minReplicas: 1
  maxReplicas: 2
  metrics: [{{type: Resource, resource: {{name: memory, target: {{type: AverageValue, averageValue: 1Gi}}}}}}]
"
    )
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      schedulerName: the-story
      containers: [{name: server, image: 'shop/web:1'}]
";

/// Stands in for the metrics server.
const METRICS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pods.metrics.k8s.io
  annotations: {api-approved.kubernetes.io: 'unapproved, in tests only'}
spec:
  group: metrics.k8s.io
  scope: Namespaced
  names: {plural: pods, kind: PodMetrics}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[tokio::test]
async fn horizontal_pod_autoscaler() -> Result<()> {
    let mut story = Story::begin("autoscaler").await?;
    let web = "horizontalpodautoscaler/web";
    story.accepted("accepted", &autoscaler("web")).await?;
    story.apply(DEPLOYMENT).await?;
    story.apply(&autoscaler("web")).await?;
    story.apply(&autoscaler("nothing")).await?;
    let pod = story.next_pod().await?;
    story.bind(&pod).await?;
    story.is("target does not exist", "horizontalpodautoscaler/nothing", "Failed").await?;
    let minute = SignedDuration::from_mins(1);
    story.is_after(minute, "no metrics server, after 1 minute", web, "InProgress FailedGet").await?;
    story.is_after(5 * minute, "no metrics server, after 5 minutes", web, "Failed FailedGet").await?;

    story.apply(METRICS).await?;
    story
        .kubectl("wait --for=condition=Established customresourcedefinition/pods.metrics.k8s.io --timeout=5m")
        .await?;
    let name = pod.trim_start_matches("pod/");
    let metrics = format!(
        "
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {{name: {name}, labels: {{app: web}}}}
timestamp: '2024-01-01T10:00:00Z'
window: 30s
containers: [{{name: server, usage: {{cpu: 1m, memory: 2Gi}}}}]
"
    );
    story.apply(&metrics).await?;
    story.is("metrics above the target", web, "Ready").await?;
    story.is("its target", "deployment/web", "InProgress ReplicasNotReady 50%").await?;
    story.kubectl("scale deployment/web --replicas=0").await?;
    story.is("target scaled to 0", web, "Ready ScalingDisabled").await?;
    story.kubectl("delete --wait=false horizontalpodautoscaler/web").await?;
    story.is("deleted", web, "Terminating").await?;
    story.release(web).await?;
    story.is_gone("finalizer removed", web).await?;
    story.kubectl("delete customresourcedefinition/pods.metrics.k8s.io").await?;
    story.end("horizontal_pod_autoscaler");
    Ok(())
}
