//! A PersistentVolumeClaim that never binds: its Pods are Unschedulable until a PersistentVolume appears.

use std::time::Instant;

use anyhow::Result;
use serde_json::Value;

use super::{ControllerFixture, failing_pods::recorded, text};

const SHOP: &str = "
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  componentKinds:
  - {kind: PersistentVolumeClaim}
  - {group: apps, kind: Deployment}
  - {group: apps, kind: StatefulSet}
  - {group: apps, kind: DaemonSet}
  - {group: batch, kind: Job}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, labels: {app: shop}}
spec:
  serviceName: db
  selector: {matchLabels: {run: db}}
  template:
    metadata: {labels: {run: db}}
    spec: {containers: [{name: server, image: 'shop/db:1', volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data, labels: {app: shop}}
    spec: {storageClassName: missing, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: uploads, labels: {app: shop}}
spec: {storageClassName: missing, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: shop}}
spec:
  selector: {matchLabels: {run: web}}
  template:
    metadata: {labels: {run: web}}
    spec:
      containers: [{name: server, image: 'shop/web:1', volumeMounts: [{name: uploads, mountPath: /uploads}]}]
      volumes: [{name: uploads, persistentVolumeClaim: {claimName: uploads}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, labels: {app: shop}}
spec:
  selector: {matchLabels: {run: agent}}
  template:
    metadata: {labels: {run: agent}}
    spec:
      containers: [{name: agent, image: 'shop/agent:1', volumeMounts: [{name: uploads, mountPath: /uploads}]}]
      volumes: [{name: uploads, persistentVolumeClaim: {claimName: uploads}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: import, labels: {app: shop}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: import, image: 'shop/import:1', volumeMounts: [{name: uploads, mountPath: /uploads}]}]
      volumes: [{name: uploads, persistentVolumeClaim: {claimName: uploads}}]
";

/// `Kind/name state reason`, and the reason of the cause.
fn lines(status: &Value) -> Vec<String> {
    let objects = status["objects"].as_array().into_iter().flatten();
    let line = |object: &Value| {
        let part = |field: &str| text(&object[field]);
        let cause = text(&object["cause"]["reason"]);
        let line = format!("{}/{} {} {} {cause}", part("kind"), part("name"), part("status"), part("reason"));
        line.trim().to_owned()
    };
    let mut lines: Vec<_> = objects.map(line).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn its_workloads_fail_until_a_volume_appears() -> Result<()> {
    let fixture = ControllerFixture::new("unbound").await?;
    let begin = Instant::now();
    fixture.apply(SHOP).await?;
    let failed = [
        "DaemonSet/agent Failed Unschedulable Unschedulable",
        "Deployment/web Failed Unschedulable Unschedulable",
        "Job/import Failed Unschedulable Unschedulable",
        "PersistentVolumeClaim/data-db-0 InProgress Pending",
        "PersistentVolumeClaim/uploads InProgress Pending",
        "StatefulSet/db Failed Unschedulable Unschedulable",
    ];
    let status = fixture.status("shop", "Unschedulable", |status| lines(status) == failed).await?;
    recorded("Deployment, StatefulSet, DaemonSet, Job", "claim", "Failed", begin)?;
    assert_eq!((text(&status["state"]), text(&status["reason"])), ("Failed".into(), "Unschedulable".into()));
    let objects = || status["objects"].as_array().into_iter().flatten();
    for object in objects() {
        let expected = match text(&object["kind"]).as_str() {
            "PersistentVolumeClaim" => "pending (storage class missing)",
            _ => "unbound immediate PersistentVolumeClaims",
        };
        assert!(text(&object["message"]).contains(expected), "{object:#}");
    }

    for claim in ["data-db-0", "uploads"] {
        // PersistentVolumes are cluster-scoped.
        let namespace = &fixture.namespace;
        fixture
            .apply(&format!(
                "
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {namespace}-{claim}}}
spec:
  storageClassName: missing
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteOnce]
  hostPath: {{path: /nowhere}}
  claimRef: {{namespace: {namespace}, name: {claim}}}
"
            ))
            .await?;
    }
    let status = fixture.status("shop", "Ready", |status| status["state"] == "Ready").await?;
    assert_eq!(status["componentsReady"], "6/6", "{status:#}");
    Ok(())
}
