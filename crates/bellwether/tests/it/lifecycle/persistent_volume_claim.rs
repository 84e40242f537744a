//! PersistentVolumeClaim and its PersistentVolume: pending, bound, lost, in use during deletion.

use anyhow::Result;

use super::LifecycleFixture;

const CLAIM: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  storageClassName: ''
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
";

const USER: &str = "
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  schedulerName: no-scheduler
  containers: [{name: server, image: 'shop/db:1'}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
";

#[tokio::test]
async fn persistent_volume_claim() -> Result<()> {
    let mut fixture = LifecycleFixture::new("claim").await?;
    let (data, namespace) = ("persistentvolumeclaim/data", fixture.namespace.clone());
    // PersistentVolumes and StorageClasses are cluster-scoped.
    let volume = format!("persistentvolume/{namespace}");
    let volume_manifest = format!(
        "
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {namespace}}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteOnce]
  hostPath: {{path: /nowhere}}
  claimRef: {{namespace: {namespace}, name: data}}
"
    );
    let class_manifest = format!(
        "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {namespace}}}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
"
    );
    fixture.apply(CLAIM).await?;
    fixture.is("no matching volume", data, "InProgress Pending").await?;
    fixture.apply(&volume_manifest).await?;
    fixture.is("volume created", data, "Ready Bound").await?;
    fixture.is("its volume", &volume, "Ready Bound").await?;
    fixture.kubectl(&format!("delete --wait=false {volume}")).await?;
    fixture.is("volume deleted", &volume, "Terminating").await?;
    fixture.release(&volume).await?;
    fixture.is("volume removed", data, "Failed Lost").await?;

    fixture.apply(USER).await?;
    fixture.bind("pod/user").await?;
    fixture.kubectl("delete --wait=false persistentvolumeclaim/data").await?;
    fixture.is("deleted while a Pod uses it", data, "Terminating").await?;
    fixture.kubectl("delete pod/user").await?;
    fixture.is_gone("Pod removed", data).await?;

    fixture.apply(&class_manifest).await?;
    let of_class = CLAIM.replace("''", &namespace).replace("name: data", "name: later");
    fixture.apply(&of_class).await?;
    fixture
        .is("another, of a class that waits for a Pod", "persistentvolumeclaim/later", "InProgress Pending")
        .await?;
    fixture.kubectl(&format!("delete storageclass/{namespace}")).await?;
    fixture.end("persistent_volume_claim");
    Ok(())
}
