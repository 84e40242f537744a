//! HorizontalPodAutoscaler. Its controller syncs every 15 seconds, so the test has two at the same time.

use anyhow::Result;
use jiff::SignedDuration;

use super::LifecycleFixture;

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
      schedulerName: no-scheduler
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
    let mut fixture = LifecycleFixture::new("autoscaler").await?;
    let web = "horizontalpodautoscaler/web";
    fixture.accepted("accepted", &autoscaler("web")).await?;
    fixture.apply(DEPLOYMENT).await?;
    fixture.apply(&autoscaler("web")).await?;
    fixture.apply(&autoscaler("nothing")).await?;
    let pod = fixture.next_pod().await?;
    fixture.bind(&pod).await?;
    fixture.is("target does not exist", "horizontalpodautoscaler/nothing", "Failed").await?;
    let minute = SignedDuration::from_mins(1);
    fixture.is_after(minute, "no metrics server, after 1 minute", web, "InProgress FailedGet").await?;
    fixture.is_after(5 * minute, "no metrics server, after 5 minutes", web, "Failed FailedGet").await?;

    fixture.apply(METRICS).await?;
    fixture
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
    fixture.apply(&metrics).await?;
    fixture.is("metrics above the target", web, "Ready").await?;
    fixture.is("its target", "deployment/web", "InProgress ReplicasNotReady 50%").await?;
    fixture.kubectl("scale deployment/web --replicas=0").await?;
    fixture.is("target scaled to 0", web, "Ready ScalingDisabled").await?;
    fixture.kubectl("delete --wait=false horizontalpodautoscaler/web").await?;
    fixture.is("deleted", web, "Terminating").await?;
    fixture.release(web).await?;
    fixture.is_gone("finalizer removed", web).await?;
    fixture.kubectl("delete customresourcedefinition/pods.metrics.k8s.io").await?;
    fixture.end("horizontal_pod_autoscaler");
    Ok(())
}
